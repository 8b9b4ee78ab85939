package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/keyseq/keyseq/jms"
)

// settleGrace is how long a close waits after the last acknowledgement on a quorum queue. The broker's channel keeps more than about 32
// acknowledgements in its memory until the queue has applied the earlier ones, and a close drops them: of 500 written at once 467 came again
// after a close without a pause, some after 20 ms, none after 100 ms (RabbitMQ 3.10, one node).
const settleGrace = 250 * time.Millisecond

// closeTimeout bounds the orderly close of a connection whose Close has a context without an end.
const closeTimeout = 10 * time.Second

// publisherGrace bounds the orderly close of the connection for sending, which has nothing to lose: every commit has waited for its confirms.
const publisherGrace = time.Second

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
