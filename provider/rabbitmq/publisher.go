package rabbitmq

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/keyseq/keyseq/jms"
	amqp "github.com/rabbitmq/amqp091-go"
)

// publisher sends, over a connection of its own that is opened when it is first needed and again after it was lost.
type publisher struct {
	*settings
	stop chan struct{}
	once sync.Once
	turn chan struct{} // taken while out is looked at or replaced; a channel, because dialling is waiting
	out  *outlet
}

func newPublisher(s *settings) *publisher {
	return &publisher{settings: s, turn: make(chan struct{}, 1), stop: make(chan struct{})}
}

var errClosed = errors.New("the connection was closed by this side")

// outlet gives the publishing connection that stands, or opens one. Any failure but a refusal is ErrBusy: nothing was sent, and it is for the
// consuming connection to say that the broker is gone.
func (p *publisher) outlet(ctx context.Context) (*outlet, error) {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-p.stop:
		return nil, errClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case <-p.stop:
		return nil, errClosed
	default:
	}
	if p.out != nil && p.out.alive() {
		return p.out, nil
	}
	dialing, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-p.stop:
			cancel()
		case <-dialing.Done():
		}
	}()
	l, err := p.dial(dialing, "publisher")
	if err == nil {
		if p.out, err = newOutlet(dialing, l); err == nil {
			return p.out, nil
		}
		_ = l.end(time.Now().Add(time.Second))
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	advice, meaning := dialMeaning(err)
	if meaning == jms.ErrConnectionLost {
		meaning = jms.ErrBusy
	}
	return nil, problem(meaning, p.sub.Queue, fmt.Errorf("opening the connection for sending: %w", err), advice)
}

// close ends the publishing connection; nothing can be sent afterwards. It waits until the deadline.
func (p *publisher) close(deadline time.Time) {
	p.once.Do(func() { close(p.stop) })
	p.turn <- struct{}{} // whoever has it was told to stop
	defer func() { <-p.turn }()
	if p.out != nil {
		p.out.close(deadline)
	}
}

// check says whether messages can be sent to the queue.
func (p *publisher) check(ctx context.Context, queue string) error {
	if queue == "" || len(queue) > maxShortString {
		return problem(jms.ErrConfig, queue, fmt.Errorf("the name has %d bytes", len(queue)), "must have 1 to 255")
	}
	out, err := p.outlet(ctx)
	if err == nil {
		err = out.exists(ctx, queue)
	}
	return p.orClosed(err)
}

// orClosed says that the connection was closed, rather than what came of that.
func (p *publisher) orClosed(err error) error {
	if err == nil || jms.EndsSession(err) {
		return err
	}
	select {
	case <-p.stop:
		return problem(jms.ErrConnectionLost, p.sub.Queue, errClosed, "")
	default:
		return err
	}
}

// publish sends all messages and returns nil when the broker has confirmed every one and returned none.
func (p *publisher) publish(ctx context.Context, messages []jms.Outgoing) error {
	return p.orClosed(p.try(ctx, messages))
}

func (p *publisher) try(ctx context.Context, messages []jms.Outgoing) error {
	out, err := p.outlet(ctx)
	if err != nil {
		return err
	}
	ready := make([]amqp.Publishing, len(messages))
	var problems []error
	for i := range messages {
		if ready[i], err = publishing(&messages[i], out.Config.FrameSize); err != nil {
			problems = append(problems, problem(jms.ErrConfig, messages[i].Queue, fmt.Errorf("message to send: %w", err), ""))
		}
	}
	if len(problems) > 0 {
		return errors.Join(problems...)
	}
	if err := out.free(p.sub.Queue); err != nil {
		return err
	}
	for i := range messages { // so that of several messages none is sent when a queue is missing
		if err := out.exists(ctx, messages[i].Queue); err != nil {
			return err
		}
	}
	return out.send(ctx, p.sub.Queue, messages, ready)
}

// messageID is unique for ever, so that a return can be told from others, and consumers can tell a repeated send from a repeated delivery.
func messageID() string { return rand.Text() }
