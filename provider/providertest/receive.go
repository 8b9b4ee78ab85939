package providertest

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"
)

var receiveCases = []testCase{
	{2, "QueueOrder", "messages are received in the order in which they were put on the queue", queueOrder},
	{2, "HeldIsInvisible", "nobody receives a message that another session holds", heldIsInvisible},
	{3, "WakesOnArrival", "a waiting Receive returns promptly when a message arrives", wakesOnArrival},
	{3, "EndsWithContext", "a waiting Receive returns ctx.Err() promptly when its context ends, and holds nothing then", endsWithContext},
	{3, "KeepsMessageAtContextEnd", "a Receive that has a message when its context ends returns it; ctx.Err() means that nothing is held",
		keepsMessageAtContextEnd},
	{3, "EndsWithConnection", "a waiting Receive returns an error promptly when its connection is closed", endsWithConnection},
}

func queueOrder(c *kase) {
	const n = 20
	c.numbers(0, n)
	l := c.connect()
	// In several sessions, held together and committed in another order than received.
	for from := 0; from < n; {
		sessions := c.openUpTo(l, min(5, n-from))
		for i, s := range sessions {
			c.takeBody(s, strconv.Itoa(from+i))
		}
		for i := len(sessions) - 1; i >= 0; i-- {
			c.commit(sessions[i])
			c.must("Close of a session", func() error { return sessions[i].Close(c.ctx) })
		}
		from += len(sessions)
	}
}

func heldIsInvisible(c *kase) {
	c.numbers(0, 1)
	l := c.connect()
	sessions := c.openUpTo(l, 2)
	c.takeBody(sessions[0], "0")
	c.nothing(c.b.Queue, "it is held by a session of another connection")
	if m := c.silent(sessions[1]); m != nil {
		c.broken("message %q was received again on the same connection: it is held by another session", short(m.Body))
	}
}

func wakesOnArrival(c *kase) {
	l := c.connect()
	s := c.open(l)
	for i := range 3 {
		done := receiving(c.ctx, s)
		c.pause(c.h.Quiet)
		c.numbers(i, i+1)
		stored := time.Now()
		select {
		case r := <-done:
			if r.err != nil || r.m == nil {
				c.broken("Receive returned %v, %v", r.m, r.err)
			}
			if took := r.at.Sub(stored); took > c.h.Latency {
				c.broken("Receive returned %v after the message was stored; more than %v is not promptly", took, c.h.Latency)
			}
		case <-time.After(c.h.Patience):
			c.broken("Receive has not returned %v after a message was stored", c.h.Patience)
		}
		c.commit(s)
	}
}

func endsWithContext(c *kase) {
	l := c.connect()
	s := c.open(l)
	for range 2 {
		ctx, cancel := context.WithCancel(c.ctx)
		done := receiving(ctx, s)
		c.pause(c.h.Quiet)
		cancel()
		ended := time.Now()
		select {
		case r := <-done:
			if r.m != nil || !errors.Is(r.err, context.Canceled) {
				c.broken("Receive on an empty queue returned %v, %v when its context was cancelled", r.m, r.err)
			}
			if took := r.at.Sub(ended); took > c.h.Latency {
				c.broken("Receive returned %v after its context ended; more than %v is not promptly", took, c.h.Latency)
			}
		case <-time.After(c.h.Patience):
			c.broken("Receive has not returned %v after its context ended", c.h.Patience)
		}
	}
	c.numbers(0, 1)
	c.takeBody(s, "0") // the session is as before
	c.commit(s)
}

// keepsMessageAtContextEnd races the arrival of a message with the end of the context, around the time a message needs to arrive.
func keepsMessageAtContextEnd(c *kase) {
	tries := 40
	if c.h.Bubble {
		tries = 300
	}
	l := c.connect()
	s := c.open(l)
	start := time.Now()
	c.numbers(0, 1)
	c.takeBody(s, "0")
	c.commit(s)
	window := 2*time.Since(start) + time.Microsecond
	for i := 1; i <= tries; i++ {
		ctx, cancel := context.WithCancel(c.ctx)
		if i%3 == 0 { // the message is there, and the context has ended
			c.numbers(i, i+1)
			cancel()
		}
		done := receiving(ctx, s)
		var ended sync.WaitGroup
		if i%3 != 0 {
			ended.Go(func() { time.Sleep(rand.N(window)); cancel() })
			c.numbers(i, i+1)
		}
		var r received
		select {
		case r = <-done:
		case <-time.After(c.h.Patience):
			c.Skip("Receive does not end with its context, which is the matter of another case")
		}
		ended.Wait()
		cancel()
		switch {
		case r.m != nil:
			if string(r.m.Body) != strconv.Itoa(i) {
				c.broken("try %d: Receive returned message %q, want %q", i, short(r.m.Body), strconv.Itoa(i))
			}
		case errors.Is(r.err, context.Canceled):
			ctx, cancel := context.WithTimeout(c.ctx, c.h.Patience)
			select {
			case r = <-receiving(ctx, s):
			case <-time.After(2 * c.h.Patience):
			}
			cancel()
			if r.m == nil || string(r.m.Body) != strconv.Itoa(i) {
				c.broken("try %d of %d: Receive returned ctx.Err(), and message %d did not come to the next Receive: it is lost, or "+
					"held by nobody who knows", i, tries, i)
			}
		default:
			c.broken("try %d: Receive returned %v, %v", i, r.m, r.err)
		}
		c.commit(s)
	}
}

func endsWithConnection(c *kase) {
	l := c.connect()
	s := c.open(l)
	done := receiving(c.ctx, s)
	c.pause(c.h.Quiet)
	closed := make(chan error, 1)
	start := time.Now()
	go func() { closed <- l.Close(c.ctx) }()
	select {
	case r := <-done:
		if r.m != nil || r.err == nil {
			c.broken("Receive on an empty queue returned %v, %v when its connection was closed", r.m, r.err)
		}
		if took := r.at.Sub(start); took > c.h.Latency {
			c.broken("Receive returned %v after Close was called; more than %v is not promptly", took, c.h.Latency)
		}
	case <-time.After(c.h.Patience):
		c.broken("Receive has not returned %v after its connection was closed", c.h.Patience)
	}
	c.must("Close of a connection whose Receive waits", func() error { return <-closed })
}

// pause lets time pass in which a call comes to wait. Nothing depends on how far it has come.
func (c *kase) pause(d time.Duration) { time.Sleep(d) }
