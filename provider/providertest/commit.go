package providertest

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/keyseq/keyseq/jms"
)

var commitCases = []testCase{
	{5, "SendsInOrder", "what a commit sends arrives in the order given, and after what an earlier commit sent", sendsInOrder},
	{5, "SendsAlone", "a commit without a received message sends", sendsAlone},
	{5, "RemovesMessage", "a committed message never comes again, and only that one is removed", removesMessage},
	{5, "UnroutableIsAnError", "a send to a queue that does not exist fails the commit, and the received message is not lost",
		unroutableIsAnError},
}

func sendsInOrder(c *kase) {
	c.numbers(0, 2)
	l := c.connect()
	s := c.open(l)
	for round := range 2 {
		c.takeBody(s, strconv.Itoa(round))
		var out []jms.Outgoing
		for _, body := range bodies(10*round, 10*round+10) {
			out = append(out, c.text(body))
		}
		c.commit(s, out...)
	}
	c.remaining(c.b.Other, "two commits sent ten messages each", bodies(0, 20))
}

func sendsAlone(c *kase) {
	l := c.connect()
	s := c.open(l)
	c.commit(s, c.text("0"))
	c.commit(s)
	c.commit(s, c.text("1"), c.text("2"))
	c.remaining(c.b.Other, "two commits without a received message sent them", bodies(0, 3))
}

func removesMessage(c *kase) {
	c.numbers(0, 3)
	l := c.connect()
	sessions := c.hold(l, 3)
	if len(sessions) < 3 {
		c.Skipf("the provider has no more than %d sessions", len(sessions))
	}
	c.commit(sessions[1])
	c.close(l)
	c.remaining(c.b.Queue, "of three held messages the middle one was committed, then the connection closed", []string{"0", "2"})
	c.nothing(c.b.Queue, "all messages were committed")
}

func unroutableIsAnError(c *kase) {
	c.needs(c.b.Unknown != "", "Unknown, the name of a queue that does not exist")
	c.numbers(0, 1)
	l := c.connect()
	s := c.open(l)
	c.takeBody(s, "0")
	bad := jms.Outgoing{Queue: c.b.Unknown, Text: true, Body: []byte("bad")}
	if err := c.do("Commit with a send to an unknown queue", func() error { return s.Commit(c.ctx, bad) }); err == nil {
		c.broken("Commit with a send to %s succeeded: the message it should have become is lost", c.b.Unknown)
	}
	c.close(l)
	c.remaining(c.b.Queue, "its commit failed", bodies(0, 1))
}

var failureCases = []testCase{
	{7, "AfterErrConfig", "after ErrConfig from Commit nothing is sent, the message is still held, and Commit may be called again without the bad send",
		afterErrConfig},
	{7, "AfterErrBusy", "after ErrBusy from Commit nothing is sent, the message is still held, and the same Commit may be repeated", afterErrBusy},
	{7, "OnlyCloseAfterLoss", "after a lost connection every call fails with ErrConnectionLost and Close is safe", onlyCloseAfterLoss},
}

func afterErrConfig(c *kase) {
	c.needs(c.b.Unknown != "", "Unknown, the name of a queue that does not exist")
	bad := jms.Outgoing{Queue: c.b.Unknown, Text: true, Body: []byte("bad")}
	c.refusedCommit(jms.ErrConfig, []jms.Outgoing{c.text("good"), bad, c.text("better")},
		func() []jms.Outgoing { return []jms.Outgoing{c.text("good"), c.text("better")} })
}

func afterErrBusy(c *kase) {
	c.needs(c.b.Fill != nil, "Fill, which makes a queue refuse messages")
	out := []jms.Outgoing{c.text("good"), c.text("better")}
	undo := c.b.Fill(c.b.Other)
	c.refusedCommit(jms.ErrBusy, out, func() []jms.Outgoing { undo(); return out })
}

// refusedCommit commits what the broker refuses with want, looks that nothing was done, and commits what mend gives.
func (c *kase) refusedCommit(want error, bad []jms.Outgoing, mend func() []jms.Outgoing) {
	c.Helper()
	c.numbers(0, 1)
	l := c.connect()
	s := c.open(l)
	c.takeBody(s, "0")
	for range 2 {
		err := c.do("Commit", func() error { return s.Commit(c.ctx, bad...) })
		if err == nil || jms.EndsSession(err) {
			c.Skipf("Commit returned %v, so nothing is claimed about what it left", err)
		}
		if !errors.Is(err, want) {
			c.broken("Commit returned %v, want %v or one of the errors that end a session", err, want)
		}
		c.nothing(c.b.Queue, "its session still holds it after a Commit that did nothing")
	}
	good := mend()
	if err := c.do("Commit", func() error { return s.Commit(c.ctx, good...) }); err != nil {
		c.broken("the next Commit, without what was refused, returned %v", err)
	}
	c.close(l)
	if left := c.drain(c.b.Queue, 0); len(left) > 0 {
		c.broken("%q is on the queue after its commit succeeded", left)
	}
	if got := c.drain(c.b.Other, 2); !slices.Equal(got, []string{"good", "better"}) {
		c.broken("the refused commits and the good one sent %q in all, want what the good one sent", got)
	}
}

func onlyCloseAfterLoss(c *kase) {
	c.needs(c.b.Break != nil, "Break, which cuts a connection")
	c.numbers(0, 1)
	l := c.connect()
	sessions := c.openUpTo(l, 2)
	c.takeBody(sessions[0], "0")
	c.b.Break(l.Connection)
	if done := l.Done(); done != nil {
		select {
		case <-done:
		case <-time.After(c.h.Patience):
			c.Skip("Done is not closed, which is the matter of another case")
		}
	}
	for what, call := range map[string]func() error{
		"Commit":      func() error { return sessions[0].Commit(c.ctx) },
		"Receive":     func() error { _, err := sessions[1].Receive(c.ctx); return err },
		"OpenSession": func() error { _, err := l.OpenSession(c.ctx); return err },
	} {
		if err := c.do(what, call); !errors.Is(err, jms.ErrConnectionLost) && !(what == "Commit" && jms.EndsSession(err)) {
			c.broken("%s on a lost connection returned %v, want ErrConnectionLost", what, err)
		}
	}
	for _, s := range sessions {
		c.do("Close of a session of a lost connection", func() error { s.Close(c.ctx); return nil })
	}
	c.do("Close of a lost connection", func() error { l.Close(c.ctx); return nil })
}
