package rabbitmq

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/keyseq/keyseq/jms"
	amqp "github.com/rabbitmq/amqp091-go"
)

// connection is one AMQP connection with one channel and one consumer. It is never repaired: a delivery tag counts from 1 on every channel, so
// an acknowledgement that survived a repair would remove somebody else's message.
type connection struct {
	*settings
	link         *link
	channel      *amqp.Channel // set under lossMu; there when subscribed is closed without a loss
	signs        chan signs    // of channel's end, for watch
	queue        facts
	publisher    *publisher
	capabilities jms.Capabilities

	subscribe  sync.Once
	subscribed chan struct{} // closed when deliveries is there; a failure is a loss
	deliveries <-chan amqp.Delivery

	done    chan struct{} // lost
	torn    chan struct{} // lost, and what stood of it is closed
	lossMu  sync.Mutex
	loss    error
	closing chan struct{} // Close has begun
	ended   chan struct{} // Close has finished
	closed  error         // its result, valid after ended

	acks    acks
	settled settledTags // only whoever writes acknowledgements touches it

	// settling is held for reading while acknowledgements are written and for writing when closing begins: the broker ignores what comes
	// after channel.close, so an acknowledgement after it would be a lie.
	settling sync.RWMutex
	lastAck  atomic.Int64 // when, as Unix nanoseconds; kept where settleGrace needs it
}

var (
	_ jms.Connection   = (*connection)(nil)
	_ jms.QueueChecker = (*connection)(nil)
	_ jms.CleanStarter = (*connection)(nil)
)

func (c *connection) OpenSession(ctx context.Context) (jms.Session, error) {
	if err := c.gone(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return &session{c: c}, nil
}

func (c *connection) Capabilities() jms.Capabilities { return c.capabilities }

func (c *connection) Done() <-chan struct{} { return c.done }

func (c *connection) Err() error {
	c.lossMu.Lock()
	defer c.lossMu.Unlock()
	return c.loss
}

// CheckQueue implements jms.QueueChecker by a passive declaration.
func (c *connection) CheckQueue(ctx context.Context, queue string) error {
	if err := c.gone(); err != nil {
		return err
	}
	return c.publisher.check(ctx, queue)
}

// CleanStart implements jms.CleanStarter: a queue without a consumer has none that is dead and not found out. (Who reads with basic.get is not
// seen; nothing of this package does.)
func (c *connection) CleanStart(ctx context.Context) (bool, error) {
	if err := c.gone(); err != nil {
		return false, err
	}
	q, err := aside(ctx, func() (amqp.Queue, error) {
		return onChannel(c.link, func(ch *amqp.Channel) (amqp.Queue, error) {
			return ch.QueueDeclarePassive(c.sub.Queue, true, false, false, false, nil)
		})
	})
	if err != nil {
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		return false, refused(c.sub.Queue, err)
	}
	return q.Consumers == 0, nil
}

// gone says why the connection can no longer be used; nil if it can.
func (c *connection) gone() error {
	select {
	case <-c.done:
		return c.Err()
	case <-c.closing:
		return problem(jms.ErrConnectionLost, c.sub.Queue, errors.New("the connection was closed by this side"), "")
	default:
		return nil
	}
}

// consume begins to consume, once. It goes on when the Receive that caused it has ended: a subscription that is half made cannot be taken back.
func (c *connection) consume() {
	defer close(c.subscribed)
	var deliveries <-chan amqp.Delivery
	var err error
	if c.exclusive {
		deliveries, err = c.stand()
	} else {
		deliveries, err = c.channel.Consume(c.sub.Queue, "", false, false, false, false, nil)
	}
	switch {
	case err == nil:
		c.deliveries = deliveries // nil if the connection has ended
	case isRefused(err):
		c.lose(problem(jms.ErrConfig, c.sub.Queue, err, "the user needs read permission on the queue (rabbitmqctl set_permissions)"))
	default:
		c.lose(problem(jms.ErrConnectionLost, c.sub.Queue, err, ""))
	}
}

func isRefused(err error) bool {
	var reply *amqp.Error
	return errors.As(err, &reply) && reply.Server && reply.Code == amqp.AccessRefused
}

// present is gone, and finds out what the client library has not noticed yet.
func (c *connection) present() error {
	if c.link.socket.stale() {
		c.lose(problem(jms.ErrConnectionLost, c.sub.Queue, errSilent, "the link or the broker is down, or this process was frozen"))
	}
	return c.gone()
}

// broken waits for the reason that the watcher finds, which says more than the error of the call that met it.
func (c *connection) broken(err error) error {
	select {
	case <-c.done:
		return c.Err()
	case <-c.closing:
		return c.gone()
	case <-time.After(time.Second): // the client library does not know of a write that was kept back
		c.lose(problem(jms.ErrConnectionLost, c.sub.Queue, err, ""))
		return c.Err()
	}
}

// watch waits for the first sign that the consumer is gone. Any end of the channel is the end of the connection: with deliveries
// under way the client library closes it anyway.
func (c *connection) watch() {
	var consumer signs // none before there is a channel
	var why error
	for why == nil {
		select {
		case consumer = <-c.signs:
		case reason := <-c.link.closed:
			why = lost(c.sub.Queue, reason, "the connection was")
		case reason := <-consumer.closed:
			why = lost(c.sub.Queue, reason, "the channel was")
		case _, told := <-consumer.canceled:
			if !told { // the channel has ended, and the other sign says why
				consumer.canceled = nil
				continue
			}
			why = problem(jms.ErrConnectionLost, c.sub.Queue, errors.New("the broker cancelled the consumer (basic.cancel)"),
				"the queue was deleted or its leader moved")
		case <-c.closing:
			return
		}
	}
	select {
	case <-c.closing: // the closes above are our own
		return
	default:
	}
	c.lose(why)
}
