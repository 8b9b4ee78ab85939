package rabbitmq

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/keyseq/keyseq/jms"
	amqp "github.com/rabbitmq/amqp091-go"
)

// outlet is one publishing connection with one channel in confirm mode, used by all commits at once.
type outlet struct {
	*link
	channel  *amqp.Channel
	returns  chan amqp.Return
	settle   chan struct{} // taken by listen when it has recorded every return that came before
	dead     chan struct{} // the channel or the connection is gone
	reason   *amqp.Error   // why; valid after dead, nil for an orderly close
	blocked  atomic.Pointer[string]
	mu       sync.Mutex
	returned map[string]*amqp.Return // by message ID, of the sends under way; nil until one comes back
	known    map[string]bool         // queues seen to exist
}

func newOutlet(ctx context.Context, l *link) (*outlet, error) {
	o := &outlet{
		link: l, returns: make(chan amqp.Return), settle: make(chan struct{}), dead: make(chan struct{}),
		returned: map[string]*amqp.Return{}, known: map[string]bool{},
	}
	err := bounded(ctx, l, func() error {
		var err error
		if o.channel, err = l.Channel(); err != nil {
			return err
		}
		return o.channel.Confirm(false)
	})
	if err != nil {
		return nil, err
	}
	closed, blocked := make(chan *amqp.Error, 1), make(chan amqp.Blocking)
	o.channel.NotifyClose(closed)
	o.channel.NotifyReturn(o.returns)
	l.NotifyBlocked(blocked)
	go o.listen(closed, blocked)
	return o, nil
}

// listen records what the broker says on its own. The broker returns a message before it confirms it, and the client library hands the
// return over before it looks at the confirmation, so a return is recorded here before settle can be taken after the confirmation.
func (o *outlet) listen(closed <-chan *amqp.Error, blocked <-chan amqp.Blocking) {
	returns := o.returns
	for {
		select {
		case r, ok := <-returns:
			if !ok {
				returns = nil
				continue
			}
			o.mu.Lock()
			if _, waiting := o.returned[r.MessageId]; waiting {
				o.returned[r.MessageId] = &r
			}
			o.mu.Unlock()
		case b, ok := <-blocked:
			switch {
			case !ok:
				blocked = nil
			case b.Active:
				o.blocked.Store(&b.Reason)
			default:
				o.blocked.Store(nil)
			}
		case o.settle <- struct{}{}:
		case o.reason = <-closed:
			close(o.dead)
			if !o.IsClosed() { // only the channel: the connection goes too, so that the next commit begins anew
				_ = o.end(time.Now().Add(time.Second))
			}
			o.cut()
			return
		}
	}
}

func (o *outlet) alive() bool {
	select {
	case <-o.dead:
		return false
	default:
		return !o.IsClosed()
	}
}

func (o *outlet) close(deadline time.Time) {
	_ = o.end(deadline)
	<-o.dead
}

// free says whether the broker takes messages at all.
func (o *outlet) free(queue string) error {
	if reason := o.blocked.Load(); reason != nil {
		return problem(jms.ErrBusy, queue, fmt.Errorf("the broker takes no messages now: %s alarm", *reason), "free memory or disk on the broker")
	}
	return nil
}

// exists looks once whether a queue is there. Nothing was sent, so whatever goes wrong leaves the commit as it was.
func (o *outlet) exists(ctx context.Context, queue string) error {
	o.mu.Lock()
	known := o.known[queue]
	o.mu.Unlock()
	if known {
		return nil
	}
	if err := o.free(queue); err != nil {
		return err
	}
	_, err := aside(ctx, func() (amqp.Queue, error) {
		return onChannel(o.link, func(ch *amqp.Channel) (amqp.Queue, error) {
			return ch.QueueDeclarePassive(queue, true, false, false, false, nil)
		})
	})
	if err == nil {
		o.mu.Lock()
		o.known[queue] = true
		o.mu.Unlock()
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	advice, meaning := refusal(err)
	if meaning == jms.ErrConnectionLost {
		meaning = jms.ErrBusy
	}
	return problem(meaning, queue, fmt.Errorf("as a queue to send to: %w", err), advice)
}

// send publishes in order, then waits for the fate of each message.
func (o *outlet) send(ctx context.Context, source string, messages []jms.Outgoing, ready []amqp.Publishing) error {
	o.mu.Lock()
	for i := range ready {
		ready[i].MessageId = messageID()
		o.returned[ready[i].MessageId] = nil
	}
	o.mu.Unlock()
	defer func() {
		o.mu.Lock()
		for i := range ready {
			delete(o.returned, ready[i].MessageId)
		}
		o.mu.Unlock()
	}()

	confirms, err := o.write(ctx, messages, ready)
	if err != nil && len(confirms) == 0 { // not one complete message has left
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return problem(jms.ErrBusy, source, fmt.Errorf("the connection for sending is lost: %w", err), "")
	}
	for i, c := range confirms {
		select {
		case <-c.Done():
		case <-ctx.Done():
			return problem(jms.ErrCommitUnknown, source, fmt.Errorf("no confirmation from the broker for the message sent to queue %q: %w",
				messages[i].Queue, ctx.Err()), o.blockedAdvice())
		}
	}
	select {
	case <-o.settle:
	case <-o.dead:
	}
	return o.verdict(source, messages, ready, confirms)
}

// write publishes until the first failure. The client library knows no context while it writes; cutting the link ends it.
func (o *outlet) write(ctx context.Context, messages []jms.Outgoing, ready []amqp.Publishing) ([]*amqp.DeferredConfirmation, error) {
	stop := context.AfterFunc(ctx, o.cut)
	defer stop()
	confirms := make([]*amqp.DeferredConfirmation, 0, len(ready))
	for i := range ready {
		c, err := o.channel.PublishWithDeferredConfirm("", messages[i].Queue, true, false, ready[i])
		if err != nil {
			return confirms, err
		}
		confirms = append(confirms, c)
	}
	return confirms, nil
}
