package providertest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/keyseq/keyseq/jms"
)

// text makes a text message for the other queue.
func (c *kase) text(body string) jms.Outgoing {
	return jms.Outgoing{Queue: c.b.Other, Text: true, Body: []byte(body)}
}

func (c *kase) send(queue string, out ...jms.Outgoing) {
	c.Helper()
	if err := c.do("Harness.Send", func() error { return c.b.Send(c.ctx, queue, out...) }); err != nil {
		c.Fatalf("Harness.Send to %s: %v", queue, err)
	}
}

// numbers puts text messages with the bodies from, from+1 .. to-1 on the queue under test.
func (c *kase) numbers(from, to int) {
	c.Helper()
	out := make([]jms.Outgoing, 0, to-from)
	for i := from; i < to; i++ {
		out = append(out, jms.Outgoing{Text: true, Body: []byte(strconv.Itoa(i))})
	}
	c.send(c.b.Queue, out...)
}

// bodies gives "from" .. "to-1".
func bodies(from, to int) []string {
	var all []string
	for i := from; i < to; i++ {
		all = append(all, strconv.Itoa(i))
	}
	return all
}

// take receives a message that is on the queue.
func (c *kase) take(s jms.Session) *jms.Message {
	c.Helper()
	m, err := within(c, c.h.Patience, "Receive, with a message that should be on the queue,", func() (*jms.Message, error) { return s.Receive(c.ctx) })
	if err != nil {
		c.broken("Receive: %v", err)
	}
	if m == nil {
		c.broken("Receive returned neither a message nor an error")
	}
	return m
}

// takeBody is take for a message that must have this body.
func (c *kase) takeBody(s jms.Session, body string) *jms.Message {
	c.Helper()
	m := c.take(s)
	if string(m.Body) != body {
		c.broken("Receive returned message %q, want %q", short(m.Body), body)
	}
	return m
}

// received is the outcome of a Receive in the background.
type received struct {
	m   *jms.Message
	err error
	at  time.Time
}

// receiving starts a Receive in the background.
func receiving(ctx context.Context, s jms.Session) <-chan received {
	done := make(chan received, 1)
	go func() {
		m, err := s.Receive(ctx)
		done <- received{m, err, time.Now()}
	}()
	return done
}

// silent receives on s and gives the message that comes while the suite is quiet, or nil. Afterwards s must not receive again: a
// provider that is deaf to contexts still waits in it until its connection is closed, which is the matter of another case.
func (c *kase) silent(s jms.Session) *jms.Message {
	c.Helper()
	return c.silentFor(s, c.h.Quiet)
}

// silentFor is silent for another time.
func (c *kase) silentFor(s jms.Session, d time.Duration) *jms.Message {
	c.Helper()
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	done := receiving(ctx, s)
	quiet := time.NewTimer(d)
	defer quiet.Stop()
	select {
	case r := <-done:
		if r.err != nil {
			c.broken("Receive on an empty queue: %v", r.err)
		}
		return r.m
	case <-quiet.C:
	}
	cancel()
	patience := time.NewTimer(c.h.Latency)
	defer patience.Stop()
	select {
	case r := <-done:
		return r.m
	case <-patience.C:
		return nil
	}
}

// nothing fails the case if another connection can receive a message of the queue.
func (c *kase) nothing(queue, why string) {
	c.Helper()
	l := c.connectTo(queue)
	if m := c.silent(c.open(l)); m != nil {
		c.broken("message %q was received from %s: %s", short(m.Body), queue, why)
	}
	c.close(l)
}

// drain commits everything that comes from the queue until it is quiet, on a connection of its own, and gives the bodies. It waits
// with patience for the first ones, so many as must be there, because a busy broker may be slow to deliver.
func (c *kase) drain(queue string, least int) []string {
	c.Helper()
	l := c.connectTo(queue)
	s := c.open(l)
	var all []string
	for {
		wait := c.h.Quiet
		if len(all) < least {
			wait = c.h.Patience
		}
		m := c.silentFor(s, wait)
		if m == nil {
			break
		}
		c.commit(s)
		all = append(all, string(m.Body))
	}
	c.close(l)
	return all
}

// remaining fails the case unless exactly these messages are on the queue, in this order.
func (c *kase) remaining(queue, why string, want []string) {
	c.Helper()
	l := c.connectTo(queue)
	s := c.open(l)
	var got []string
	for range want {
		m, err := within(c, c.h.Patience, fmt.Sprintf("Receive from %s, after %q, for message %q (%s)", queue, got, want[len(got)], why),
			func() (*jms.Message, error) { return s.Receive(c.ctx) })
		if err != nil || m == nil {
			c.broken("Receive from %s returned %v, %v: %s", queue, m, err, why)
		}
		c.commit(s)
		got = append(got, string(m.Body))
	}
	if m := c.silent(s); m != nil {
		got = append(got, string(m.Body))
	}
	if !slices.Equal(got, want) {
		c.broken("%s had %q, want %q: %s", queue, got, want, why)
	}
	c.close(l)
}

// hold receives n messages into as many sessions and leaves them unsettled.
func (c *kase) hold(l *link, n int) []jms.Session {
	c.Helper()
	sessions := c.openUpTo(l, n)
	for i, s := range sessions {
		c.takeBody(s, strconv.Itoa(i))
	}
	return sessions
}

// short makes a body fit for a message.
func short(body []byte) string {
	if len(body) > 40 {
		return fmt.Sprintf("%s... (%d bytes)", body[:40], len(body))
	}
	return string(body)
}
