package providertest

import (
	"context"
	"errors"
	"time"

	"github.com/keyseq/keyseq/jms"
)

var connectCases = []testCase{
	{1, "UnknownQueue", "Connect to a queue that does not exist fails with ErrConfig", unknownQueue},
	{1, "EndedContext", "Connect with a context that has ended fails with the context's error", connectEndedContext},
	{1, "Unreachable", "Connect fails with ErrConnectionLost when no broker answers", unreachable},
	{1, "RoleIsNotAwaited", "Connect returns while another instance is active", roleIsNotAwaited},
}

func unknownQueue(c *kase) {
	c.needs(c.b.Unknown != "", "Unknown, the name of a queue that does not exist")
	_, err := c.subscribe(jms.Subscription{Queue: c.b.Unknown})
	if !errors.Is(err, jms.ErrConfig) {
		c.broken("Connect to %s returned %v", c.b.Unknown, err)
	}
}

func connectEndedContext(c *kase) {
	ctx, cancel := context.WithCancel(c.ctx)
	cancel()
	conn, err := within(c, c.h.Patience, "Connect with an ended context", func() (jms.Connection, error) {
		return c.b.Factory.Connect(ctx, c.named(jms.Subscription{Queue: c.b.Queue}))
	})
	if err == nil {
		c.must("Close", func() error { return conn.Close(c.ctx) })
	}
	if !errors.Is(err, context.Canceled) {
		c.broken("Connect returned %v", err)
	}
}

func unreachable(c *kase) {
	c.needs(c.b.Unreachable != nil, "Unreachable, a factory that points where no broker answers")
	_, err := within(c, c.h.Patience, "Connect to a broker that does not answer", func() (jms.Connection, error) {
		ctx, cancel := context.WithTimeout(c.ctx, c.h.Patience/2)
		defer cancel()
		return c.b.Unreachable.Connect(ctx, c.named(jms.Subscription{Queue: c.b.Queue}))
	})
	if !errors.Is(err, jms.ErrConnectionLost) && !errors.Is(err, context.DeadlineExceeded) {
		c.broken("Connect returned %v", err)
	}
}

func roleIsNotAwaited(c *kase) {
	c, first := c.singleActive()
	c.open(first)
	conn, returned := c.secondInstance()
	if !returned {
		c.broken("Connect of a second instance has not returned after %v", c.h.Latency)
	}
	c.must("Close of the second instance", func() error { return conn.Close(c.ctx) })
}

// secondInstance connects beside an active instance, and reports false if Connect waits for the role.
func (c *kase) secondInstance() (conn jms.Connection, returned bool) {
	c.Helper()
	type result struct {
		conn jms.Connection
		err  error
	}
	done := make(chan result, 1)
	sub := c.named(jms.Subscription{Queue: c.b.Queue, SingleActiveConsumer: true})
	go func() {
		conn, err := c.b.Factory.Connect(c.ctx, sub)
		done <- result{conn, err}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			c.broken("Connect of a second instance: %v", r.err)
		}
		c.Cleanup(func() { c.do("Close of the second instance", func() error { r.conn.Close(c.ctx); return nil }) })
		return r.conn, true
	case <-time.After(c.h.Latency):
		return nil, false
	}
}

// singleActive gives a case on a queue with a single active consumer, and a connection that is active. It skips the case
// if the provider refuses the wish as it should.
func (c *kase) singleActive() (*kase, *link) {
	c.Helper()
	c = makeKase(c.T, c.h, c.h.NewSingleActive, c.says)
	sub := jms.Subscription{Queue: c.b.Queue, SingleActiveConsumer: true}
	conn, err := c.subscribe(sub)
	if errors.Is(err, jms.ErrConfig) {
		c.Skipf("the provider refuses a single active consumer: %v", err)
	}
	if err != nil {
		c.broken("Connect with SingleActiveConsumer returned %v: it must be honoured, or refused with ErrConfig", err)
	}
	if e, ok := conn.(jms.Elector); ok {
		c.must("AwaitActive of the only instance", func() error { return e.AwaitActive(c.ctx) })
	}
	return c, &link{conn, conn.Capabilities()}
}
