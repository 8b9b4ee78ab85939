package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/keyseq/keyseq/jms"
	amqp "github.com/rabbitmq/amqp091-go"
)

// settleGrace is how long a close waits after the last acknowledgement on a quorum queue. The broker's channel keeps more than about 32
// acknowledgements in its memory until the queue has applied the earlier ones, and a close drops them: of 500 written at once 467 came again
// after a close without a pause, some after 20 ms, none after 100 ms (RabbitMQ 3.10, one node).
const settleGrace = 250 * time.Millisecond

// closeTimeout bounds the orderly close of a connection whose Close has a context without an end.
const closeTimeout = 10 * time.Second

// publisherGrace bounds the orderly close of the connection for sending, which has nothing to lose: every commit has waited for its confirms.
const publisherGrace = time.Second

// connection is one AMQP connection with one channel and one consumer. It is never repaired: a delivery tag counts from 1 on every channel, so
// an acknowledgement that survived a repair would remove somebody else's message.
type connection struct {
	*settings
	link          *link
	channel       *amqp.Channel
	queue         facts
	publisher     *publisher
	capabilities  jms.Capabilities
	channelClosed chan *amqp.Error
	canceled      chan string

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

	// settling is held for reading while an acknowledgement is written and for writing when closing begins: the broker ignores what comes
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
	deliveries, err := c.channel.Consume(c.sub.Queue, "", false, false, false, false, nil)
	switch {
	case err == nil:
		c.deliveries = deliveries
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

// acknowledge writes the acknowledgement of one delivery. When it returns nil the acknowledgement is on its way before anything that the caller does
// next; the broker does not answer it.
func (c *connection) acknowledge(tag uint64) error {
	c.settling.RLock()
	defer c.settling.RUnlock()
	if err := c.present(); err != nil {
		return err
	}
	if err := c.channel.Ack(tag, false); err != nil {
		return c.broken(err)
	}
	if c.queue.buffersAcks() {
		c.lastAck.Store(time.Now().UnixNano())
	}
	return nil
}

// settle waits until no acknowledgement is under way any more, on this side or in the broker's channel; no longer than the deadline.
func (c *connection) settle(deadline time.Time) {
	c.settling.Lock()
	at := time.Unix(0, c.lastAck.Load()).Add(settleGrace)
	c.settling.Unlock()
	if deadline.Before(at) {
		at = deadline
	}
	select {
	case <-time.After(time.Until(at)):
	case <-c.torn:
	}
}

// broken waits for the reason that the watcher finds, which says more than the error of the call that met it.
func (c *connection) broken(err error) error {
	select {
	case <-c.done:
		return c.Err()
	case <-c.closing:
		return c.gone()
	case <-time.After(time.Second):
		return problem(jms.ErrConnectionLost, c.sub.Queue, err, "")
	}
}

// watch waits for the first sign that the consumer is gone. Any end of the channel is the end of the connection: with deliveries
// under way the client library closes it anyway.
func (c *connection) watch() {
	var why error
	select {
	case reason := <-c.link.closed:
		why = lost(c.sub.Queue, reason, "the connection was")
	case reason := <-c.channelClosed:
		why = lost(c.sub.Queue, reason, "the channel was")
	case <-c.canceled:
		why = problem(jms.ErrConnectionLost, c.sub.Queue, errors.New("the broker cancelled the consumer (basic.cancel)"),
			"the queue was deleted or its leader moved")
	case <-c.closing:
		return
	}
	select {
	case <-c.closing: // the closes above are our own
		return
	default:
	}
	c.lose(why)
}

// lose ends the connection for good: Done first, so that nobody waits for the rest, then whatever of it still stands.
func (c *connection) lose(why error) {
	c.lossMu.Lock()
	defer c.lossMu.Unlock()
	if c.loss != nil {
		return
	}
	c.loss = why
	close(c.done)
	go func() {
		defer close(c.torn)
		if c.link.IsClosed() {
			c.link.cut() // a write may still be waiting for a broker that does not read
		}
		deadline := time.Now().Add(closeTimeout)
		if !c.channel.IsClosed() {
			c.settle(deadline)
		}
		_ = c.link.end(deadline)
		c.publisher.close(time.Now().Add(publisherGrace))
	}()
}

// giveBack returns everything unsettled to the queue, the only way that keeps the order: by ending the connection.
func (c *connection) giveBack(ctx context.Context) error {
	c.lose(problem(jms.ErrConnectionLost, c.sub.Queue, errors.New("a message was given back, and with it all of the connection"), ""))
	select {
	case <-c.torn:
	case <-ctx.Done():
		c.link.cut()
	}
	return c.Err()
}

// Close implements jms.Connection: the channel first, which puts everything unsettled back in order and releases the role, then the
// connections.
func (c *connection) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	c.lossMu.Lock()
	first := false
	select {
	case <-c.closing:
	default:
		first = true
		close(c.closing)
	}
	c.lossMu.Unlock()
	if first {
		deadline, _ := ctx.Deadline()
		go c.close(deadline)
	}
	select {
	case <-c.ended:
		return c.closed
	case <-ctx.Done():
	}
	c.link.cut() // ends whatever c.close waits for
	return problem(jms.ErrConnectionLost, c.sub.Queue, fmt.Errorf("close: %w", ctx.Err()),
		"the broker gives back what was unsettled when it notices that the connection is gone")
}

func (c *connection) close(deadline time.Time) {
	defer close(c.ended)
	if c.Err() == nil {
		c.settle(deadline)
		if err := c.channel.Close(); err != nil {
			c.closed = problem(jms.ErrConnectionLost, c.sub.Queue, fmt.Errorf("close: %w", err),
				"the broker gives back what was unsettled when it notices that the connection is gone")
		}
	}
	_ = c.link.end(deadline)
	if grace := time.Now().Add(publisherGrace); grace.Before(deadline) {
		deadline = grace
	}
	c.publisher.close(deadline)
}
