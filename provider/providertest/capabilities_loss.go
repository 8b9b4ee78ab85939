package providertest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/keyseq/keyseq/jms"
)

// afterLoss waits until what a lost connection held must be back, and skips the case if that takes longer than the suite waits.
func (c *kase) afterLoss(l *link) {
	c.Helper()
	delay := l.caps.Returns()
	if !c.h.Bubble && delay > c.h.Patience {
		c.Skipf("messages of a lost connection come back after %v, longer than the suite waits", delay)
	}
	if l.caps.ReturnsAtOnce {
		return
	}
	if done := l.Done(); done != nil {
		select {
		case <-done:
		case <-time.After(c.h.Patience):
			c.Skip("Done is not closed, which is the matter of another case")
		}
	}
	c.do("Close of a lost connection", func() error { l.Close(c.ctx); return nil })
	c.pause(delay)
}

func atomicSends(c *kase) {
	c.needs(c.b.Break != nil, "Break, which cuts a connection")
	rounds := 8
	if c.h.Bubble {
		rounds = 40
	}
	window := time.Microsecond
	for round := range rounds {
		body := fmt.Sprint("round ", round)
		c.send(c.b.Queue, jms.Outgoing{Text: true, Body: []byte(body)})
		l := c.connect()
		s := c.open(l)
		c.takeBody(s, body)
		start := time.Now()
		done := make(chan error, 1)
		go func() { done <- s.Commit(c.ctx, c.text(body)) }()
		if round > 0 { // the first shows how long a commit takes
			c.pause(rand.N(window))
			c.b.Break(l.Connection)
		}
		err := c.do("Commit on a connection that is being cut", func() error { return <-done })
		if round == 0 {
			window = 2*time.Since(start) + time.Microsecond
			c.b.Break(l.Connection)
		}
		c.afterLoss(l)
		back, sent := c.drain(c.b.Queue, 0), c.drain(c.b.Other, 0)
		if len(back)+len(sent) == 0 { // a busy broker may be slow to deliver
			back, sent = c.drain(c.b.Queue, 1), c.drain(c.b.Other, 1)
		}
		switch {
		case len(back)+len(sent) == 0:
			c.broken("round %d: the message is gone and what its commit sent is not there (Commit returned %v)", round, err)
		case err != nil && !errors.Is(err, jms.ErrCommitUnknown) && len(back) == 0:
			c.broken("round %d: Commit returned %v, which says that the message comes again, and it is gone", round, err)
		case len(back) > 1 || len(sent) > 1 || l.caps.AtomicSends && len(back)+len(sent) > 1:
			c.broken("round %d: the message came again %d times and its send is there %d times (Commit returned %v)",
				round, len(back), len(sent), err)
		}
	}
}

func returnsAfterLoss(c *kase) {
	c.needs(c.b.Break != nil, "Break, which cuts a connection")
	const n = 5
	c.numbers(0, n)
	l := c.connect()
	c.hold(l, 3)
	c.b.Break(l.Connection)
	c.afterLoss(l)
	c.remaining(c.b.Queue, fmt.Sprintf("a connection that held the first ones was lost, ReturnsAtOnce %t, ReturnDelay %v",
		l.caps.ReturnsAtOnce, l.caps.Returns()), bodies(0, n))
}
