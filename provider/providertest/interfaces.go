package providertest

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/keyseq/keyseq/jms"
)

var interfaceCases = []testCase{
	{0, "SingleActiveConsumer", "with SingleActiveConsumer one instance receives and the next takes over, in order, when it has closed; " +
		"or the wish is refused with ErrConfig", singleActiveConsumer},
	{0, "Elector", "AwaitActive waits while another instance is active, and returns ctx.Err() when its context ends", elector},
	{0, "Inquirer", "Backout names a queue that exists, or none", inquirer},
	{0, "QueueChecker", "CheckQueue accepts a queue that exists, refuses another with ErrConfig, and changes nothing", queueChecker},
	{0, "CleanStarter", "CleanStart says true only if nothing is locked by a reader that has ended", cleanStarter},
}

func singleActiveConsumer(c *kase) {
	const n = 6
	c, first := c.singleActive()
	c.numbers(0, n)
	for i, s := range c.openUpTo(first, 3) {
		c.takeBody(s, strconv.Itoa(i))
	}
	conn, returned := c.secondInstance()
	if !returned {
		c.Skip("Connect waits for the active role, which is the matter of another case")
	}
	// The second instance becomes active and receives, as the manager does.
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	got := make(chan received, 1)
	second := make(chan jms.Session, 1)
	go func() {
		var r received
		if e, ok := conn.(jms.Elector); ok {
			r.err = e.AwaitActive(ctx)
		}
		if r.err == nil {
			var s jms.Session
			if s, r.err = conn.OpenSession(ctx); r.err == nil {
				second <- s
				r.m, r.err = s.Receive(ctx)
			}
		}
		got <- r
	}()
	select {
	case r := <-got:
		c.broken("while another instance is active the second one received %v, %v", r.m, r.err)
	case <-time.After(c.h.Quiet):
	}
	c.close(first)
	select {
	case r := <-got:
		if r.err != nil || r.m == nil || string(r.m.Body) != "0" {
			c.broken("after the active instance closed the second one received %v, %v; want message 0, which the first had held", r.m, r.err)
		}
	case <-time.After(c.h.Patience):
		c.broken("the second instance has received nothing %v after the active one closed", c.h.Patience)
	}
	s := <-second
	c.commit(s)
	for i := 1; i < n; i++ {
		c.takeBody(s, strconv.Itoa(i))
		c.commit(s)
	}
}

func elector(c *kase) {
	c, first := c.singleActive()
	if _, ok := first.Connection.(jms.Elector); !ok {
		c.Skip("the connection is no Elector")
	}
	conn, returned := c.secondInstance()
	if !returned {
		c.Skip("Connect waits for the active role, which is the matter of another case")
	}
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- conn.(jms.Elector).AwaitActive(ctx) }()
	select {
	case err := <-done:
		c.broken("AwaitActive of the second instance returned %v while the first was active", err)
	case <-time.After(c.h.Quiet):
	}
	cancel()
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			c.broken("AwaitActive returned %v when its context was cancelled", err)
		}
	case <-time.After(c.h.Latency):
		c.broken("AwaitActive has not returned %v after its context ended", c.h.Latency)
	}
}

func inquirer(c *kase) {
	l := c.connect()
	i, ok := l.Connection.(jms.Inquirer)
	if !ok {
		c.Skip("the connection is no Inquirer")
	}
	type rule struct {
		queue string
		most  int
	}
	r, err := within(c, c.h.Patience, "Backout", func() (rule, error) {
		queue, most, err := i.Backout(c.ctx)
		return rule{queue, most}, err
	})
	if err != nil || r.most < 0 {
		c.broken("Backout returned %q, %d, %v", r.queue, r.most, err)
	}
	if checker, ok := l.Connection.(jms.QueueChecker); ok && r.queue != "" {
		if err := c.do("CheckQueue", func() error { return checker.CheckQueue(c.ctx, r.queue) }); err != nil {
			c.broken("Backout names queue %q, of which CheckQueue says: %v", r.queue, err)
		}
	}
}

func queueChecker(c *kase) {
	l := c.connect()
	checker, ok := l.Connection.(jms.QueueChecker)
	if !ok {
		c.Skip("the connection is no QueueChecker")
	}
	c.needs(c.b.Unknown != "", "Unknown, the name of a queue that does not exist")
	for range 2 { // the first look must not make the queue
		if err := c.do("CheckQueue", func() error { return checker.CheckQueue(c.ctx, c.b.Other) }); err != nil {
			c.broken("CheckQueue(%s) returned %v", c.b.Other, err)
		}
		if err := c.do("CheckQueue", func() error { return checker.CheckQueue(c.ctx, c.b.Unknown) }); !errors.Is(err, jms.ErrConfig) {
			c.broken("CheckQueue(%s) returned %v", c.b.Unknown, err)
		}
	}
	c.numbers(0, 1)
	s := c.open(l)
	c.takeBody(s, "0") // the connection stands as before
	c.commit(s)
	c.nothing(c.b.Other, "CheckQueue must change nothing")
}

func cleanStarter(c *kase) {
	if _, ok := c.connect().Connection.(jms.CleanStarter); !ok {
		c.Skip("the connection is no CleanStarter")
	}
	c.needs(c.b.Break != nil, "Break, which cuts a connection")
	const n = 4
	c.numbers(0, n)
	lost := c.connect()
	c.hold(lost, 2)
	c.b.Break(lost.Connection)
	l := c.connect()
	clean, err := within(c, c.h.Patience, "CleanStart", func() (bool, error) { return l.Connection.(jms.CleanStarter).CleanStart(c.ctx) })
	if err != nil || !clean {
		return // the manager waits
	}
	if m := c.take(c.open(l)); string(m.Body) != "0" {
		c.broken("CleanStart returned true and message %q was received first: message 0 is still locked by a connection that was lost",
			short(m.Body))
	}
}
