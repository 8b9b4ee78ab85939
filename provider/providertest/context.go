package providertest

import (
	"context"
	"strconv"

	"github.com/keyseq/keyseq/jms"
)

var contextCases = []testCase{
	{4, "HeldMessageOutlivesReceive", "a message stays held after the context of its Receive has ended, and can be committed", heldOutlivesReceive},
	{4, "SessionOutlivesCommit", "a session can be used after the context of its Commit has ended", sessionOutlivesCommit},
	{4, "ConnectionOutlivesConnect", "connection and sessions live on after the contexts of Connect, AwaitActive and OpenSession have ended",
		connectionOutlivesConnect},
}

func heldOutlivesReceive(c *kase) {
	c.numbers(0, 2)
	l := c.connect()
	s := c.open(l)
	ctx, cancel := context.WithCancel(c.ctx)
	m, err := within(c, c.h.Patience, "Receive", func() (*jms.Message, error) { return s.Receive(ctx) })
	if err != nil || m == nil {
		c.broken("Receive returned %v, %v", m, err)
	}
	cancel()
	c.pause(c.h.Quiet)
	if err := c.do("Commit", func() error { return s.Commit(c.ctx, c.text("done")) }); err != nil {
		c.broken("Commit, after the context of Receive had ended, returned %v", err)
	}
	c.close(l)
	c.remaining(c.b.Queue, "message 0 was committed after the context of its Receive had ended", bodies(1, 2))
	c.remaining(c.b.Other, "it was sent with the commit", []string{"done"})
}

func sessionOutlivesCommit(c *kase) {
	const n = 3
	c.numbers(0, n)
	l := c.connect()
	s := c.open(l)
	for i := range n {
		c.takeBody(s, strconv.Itoa(i))
		ctx, cancel := context.WithCancel(c.ctx)
		err := c.do("Commit", func() error { return s.Commit(ctx, c.text(strconv.Itoa(i))) })
		cancel()
		if err != nil {
			c.broken("Commit number %d, after the context of the one before had ended, returned %v", i+1, err)
		}
		c.pause(c.h.Quiet / n)
	}
	c.close(l)
	c.remaining(c.b.Other, "each was sent with a commit whose context ended afterwards", bodies(0, n))
}

func connectionOutlivesConnect(c *kase) {
	ctx, cancel := context.WithCancel(c.ctx)
	l, err := within(c, c.h.Patience, "Connect, AwaitActive and OpenSession", func() (l *link, err error) {
		conn, err := c.b.Factory.Connect(ctx, c.named(jms.Subscription{Queue: c.b.Queue}))
		if err != nil {
			return nil, err
		}
		if e, ok := conn.(jms.Elector); ok {
			err = e.AwaitActive(ctx)
		}
		return &link{conn, conn.Capabilities()}, err
	})
	if err != nil {
		c.broken("Connect and AwaitActive: %v", err)
	}
	defer l.Close(c.ctx)
	s, err := within(c, c.h.Patience, "OpenSession", func() (jms.Session, error) { return l.OpenSession(ctx) })
	if err != nil {
		c.broken("OpenSession: %v", err)
	}
	cancel()
	c.pause(c.h.Quiet)
	c.numbers(0, 1)
	for _, s := range []jms.Session{s, c.open(l)} {
		c.must("Rollback without a message", func() error { return s.Rollback(c.ctx) })
	}
	c.takeBody(s, "0")
	c.commit(s)
}
