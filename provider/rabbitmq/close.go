package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/keyseq/keyseq/jms"
	amqp "github.com/rabbitmq/amqp091-go"
)

// settleGrace is how long a quorum queue may take to write what it was told: a close waits so long after the broker's channel has read the last
// acknowledgement. That channel keeps more than about 32 acknowledgements in its memory until the queue has applied the earlier ones, and
// a close drops them: of 500 written at once 467 came again after a close without a pause, some after 20 ms, none after 100 ms (RabbitMQ
// 3.10, one node, idle machine).
const settleGrace = 250 * time.Millisecond

// settledLongAgo is when an acknowledgement needs no thought any more.
const settledLongAgo = 10 * settleGrace

// closeTimeout bounds the orderly close of a connection whose Close has a context without an end.
const closeTimeout = 10 * time.Second

// publisherGrace bounds the orderly close of the connection for sending, which has nothing to lose: every commit has waited for its confirms.
const publisherGrace = time.Second

// settle waits until no acknowledgement is under way any more, on this side or in the broker's channel; no longer than the deadline.
//
// The broker does not tell, and on a busy machine no time is long enough by itself. But it answers a question about the queue in turn: the
// channel after what it was sent before, the queue after what the channel told it before. The first answer says that every
// acknowledgement was read, and that the queue has those that the channel does not keep; then comes the time for writing them. With the
// second answer the channel has been told that they are applied, and with the third it has passed on what it kept.
func (c *connection) settle(deadline time.Time) {
	c.settling.Lock()
	last := time.Unix(0, c.lastAck.Load())
	c.settling.Unlock()
	if time.Since(last) > settledLongAgo {
		return
	}
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	c.ask(ctx)
	select {
	case <-time.After(settleGrace):
	case <-ctx.Done():
	case <-c.torn:
	}
	c.ask(ctx)
	c.ask(ctx)
}

// ask waits for the broker's answer to a question on the channel that consumes. Without one the link is at its end, which others notice.
func (c *connection) ask(ctx context.Context) {
	_, _ = aside(ctx, func() (amqp.Queue, error) {
		return c.channel.QueueDeclarePassive(c.sub.Queue, true, false, false, false, nil)
	})
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
		if ch := c.consumer(); ch != nil && !ch.IsClosed() {
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

// Close implements jms.Connection: the channel first, then the connections.
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
		if err := c.closeConsumer(); err != nil {
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
