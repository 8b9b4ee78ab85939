package providertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/keyseq/keyseq/jms"
)

var concurrencyCases = []testCase{
	{9, "CommitWhileReceiving", "a Commit and a Rollback do not wait for another session's Receive", commitWhileReceiving},
	{9, "FiftySessions", "fifty sessions commit from as many goroutines while one receives: each message comes once, in order, and each send arrives once",
		fiftySessions},
	{9, "OpeningSideBySide", "calls of OpenSession run side by side and beside a waiting Receive; each gives a session of its own, and a context that ends ends its own call only",
		openingSideBySide},
}

func commitWhileReceiving(c *kase) {
	c.numbers(0, 1)
	l := c.connect()
	sessions := c.openUpTo(l, 3)
	c.takeBody(sessions[0], "0")
	done := receiving(c.ctx, sessions[1])
	c.pause(c.h.Quiet)
	for what, call := range map[string]func() error{
		"Commit":                     func() error { return sessions[0].Commit(c.ctx, c.text("done")) },
		"OpenSession and Close":      func() error { return openAndClose(c, l) },
		"Rollback without a message": func() error { return sessions[len(sessions)-1].Rollback(c.ctx) },
	} {
		if len(sessions) < 3 && what != "Commit" {
			continue
		}
		if _, err := within(c, c.h.Latency, what+", while another session waits in Receive,", func() (any, error) { return nil, call() }); err != nil {
			c.broken("%s, while another session waits in Receive, returned %v", what, err)
		}
	}
	select {
	case r := <-done:
		c.broken("the waiting Receive returned %v, %v although the queue is empty", r.m, r.err)
	default:
	}
}

// openAndClose opens a session beside the others; a provider at its limit need not give one.
func openAndClose(c *kase, l *link) error {
	s, err := l.OpenSession(c.ctx)
	if err != nil {
		return nil
	}
	return s.Close(c.ctx)
}

func openingSideBySide(c *kase) {
	l := c.connect()
	n := 4
	if most := l.caps.MaxInFlight; most > 0 {
		n = min(n, most-1)
	}
	first := c.open(l)
	done := receiving(c.ctx, first)
	c.pause(c.h.Quiet)
	type opened struct {
		s   jms.Session
		err error
	}
	all := make(chan opened, n)
	ctx, cancel := context.WithCancel(c.ctx)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if s, err := l.OpenSession(ctx); err == nil {
			s.Close(c.ctx)
		}
	}()
	for range n {
		go func() {
			s, err := l.OpenSession(c.ctx)
			all <- opened{s, err}
		}()
	}
	cancel()
	var sessions []jms.Session
	c.must("calls of OpenSession side by side", func() error {
		<-gone
		for range n {
			switch o := <-all; {
			case errors.Is(o.err, jms.ErrBusy) && len(sessions) > 0:
			case o.err != nil:
				return o.err
			default:
				sessions = append(sessions, o.s)
			}
		}
		return nil
	})
	select {
	case r := <-done:
		c.broken("the Receive that waited meanwhile returned %v, %v although the queue is empty", r.m, r.err)
	default:
	}
	c.numbers(0, 1+len(sessions))
	r, err := within(c, c.h.Patience, "the Receive that waited meanwhile", func() (received, error) { return <-done, nil })
	if err != nil || r.err != nil || r.m == nil {
		c.broken("the Receive that waited meanwhile returned %v, %v although a message has come", r.m, r.err)
	}
	for i, s := range sessions {
		c.takeBody(s, strconv.Itoa(i+1)) // while all others hold theirs
	}
	left := bodies(0, 2)
	for i, s := range sessions[1:] {
		if i%2 == 0 {
			c.commit(s)
		} else {
			left = append(left, strconv.Itoa(i+2))
		}
	}
	c.close(l)
	c.remaining(c.b.Queue, "the others were committed, each by a session of its own", left)
}

func fiftySessions(c *kase) {
	const n = 300
	c.numbers(0, n)
	l := c.connect()
	sessions := c.openUpTo(l, 50)
	free := make(chan jms.Session, len(sessions))
	for _, s := range sessions {
		free <- s
	}
	var (
		mu     sync.Mutex
		failed []error
		calls  sync.WaitGroup
	)
	fail := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		failed = append(failed, fmt.Errorf(format, args...))
	}
	c.must("fifty sessions that receive and commit", func() error {
		for i := range n {
			s := <-free
			select {
			case r := <-receiving(c.ctx, s):
				if r.err != nil || r.m == nil {
					return fmt.Errorf("receive number %d returned %v, %v", i, r.m, r.err)
				}
				if string(r.m.Body) != strconv.Itoa(i) {
					return fmt.Errorf("message %q came at place %d", short(r.m.Body), i)
				}
				calls.Go(func() {
					if err := s.Commit(c.ctx, c.text(strconv.Itoa(i))); err != nil {
						fail("commit of message %d: %w", i, err)
					}
					free <- s
				})
			case <-time.After(c.h.Patience / 2):
				return fmt.Errorf("message %d has not come for %v, with %d commits under way", i, c.h.Patience/2, len(sessions)-len(free))
			}
		}
		calls.Wait()
		return nil
	})
	if len(failed) > 0 {
		c.broken("%d of %d commits failed, the first: %v", len(failed), n, failed[0])
	}
	c.close(l)
	c.nothing(c.b.Queue, "all were committed")
	got := c.drain(c.b.Other, n)
	slices.SortFunc(got, func(a, b string) int { x, _ := strconv.Atoi(a); y, _ := strconv.Atoi(b); return x - y })
	if !slices.Equal(got, bodies(0, n)) {
		c.broken("%d commits with a send each sent %d messages: %q", n, len(got), got)
	}
}
