package providertest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/keyseq/keyseq/jms"
)

// kase is one running case: the broker it has, and calls that are bounded in time and fail the case in words.
type kase struct {
	*testing.T
	h           Harness
	b           Broker
	says        string
	connections int
	single      bool // Queue is read with a single active consumer
	// ctx lives until everything is closed, so that only the cases about contexts depend on how a provider treats them.
	ctx context.Context
}

func newKase(t *testing.T, h Harness, tc testCase) *kase {
	t.Helper()
	says := "rule " + strconv.Itoa(tc.rule) + ", " + rules[tc.rule]
	if tc.rule == 0 {
		says = rules[0]
	}
	return makeKase(t, h, h.New, fmt.Sprintf("%s [%s]", tc.says, says))
}

func makeKase(t *testing.T, h Harness, make func(testing.TB) Broker, says string) *kase {
	t.Helper()
	b := make(t)
	b.check(t)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	return &kase{T: t, h: h, b: b, says: says, ctx: ctx}
}

// broken ends the case: the provider does not do what the case demands.
func (c *kase) broken(format string, args ...any) {
	c.Helper()
	c.Fatalf("broken: %s\n%s", c.says, fmt.Sprintf(format, args...))
}

// needs skips the case if the harness has no power for it.
func (c *kase) needs(has bool, power string) {
	c.Helper()
	if !has {
		c.Skipf("the harness gives no %s", power)
	}
}

// within runs f on a goroutine of its own and gives what it returned. A call that takes longer than d fails the case; its
// goroutine is left behind.
func within[T any](c *kase, d time.Duration, what string, f func() (T, error)) (T, error) {
	c.Helper()
	type result struct {
		v   T
		err error
	}
	done := make(chan result, 1)
	go func() {
		v, err := f()
		done <- result{v, err}
	}()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case r := <-done:
		return r.v, r.err
	case <-timer.C:
		c.broken("%s has not returned after %v", what, d)
		panic("unreachable")
	}
}

// do is within for calls that return an error only.
func (c *kase) do(what string, f func() error) error {
	c.Helper()
	_, err := within(c, c.h.Patience, what, func() (struct{}, error) { return struct{}{}, f() })
	return err
}

// must is do for calls that must succeed.
func (c *kase) must(what string, f func() error) {
	c.Helper()
	if err := c.do(what, f); err != nil {
		c.broken("%s: %v", what, err)
	}
}

// link is a connection of the case, closed when the case ends.
type link struct {
	jms.Connection
	caps jms.Capabilities
}

// subscribe connects, without waiting for the active role.
func (c *kase) subscribe(sub jms.Subscription) (jms.Connection, error) {
	c.Helper()
	sub = c.named(sub)
	conn, err := within(c, c.h.Patience, "Connect to "+sub.Queue, func() (jms.Connection, error) { return c.b.Factory.Connect(c.ctx, sub) })
	if err == nil {
		c.Cleanup(func() {
			c.do("Close of a connection at the end of the case", func() error { conn.Close(c.ctx); return nil })
		})
	}
	return conn, err
}

// named gives a subscription what every one has: a client name of its own, and a logger.
func (c *kase) named(sub jms.Subscription) jms.Subscription {
	c.connections++
	sub.Client, sub.Logger = fmt.Sprintf("providertest-%d", c.connections), slog.New(slog.DiscardHandler)
	return sub
}

// connectWith connects and becomes active, as the manager does.
func (c *kase) connectWith(sub jms.Subscription) *link {
	c.Helper()
	conn, err := c.subscribe(sub)
	if err != nil {
		c.broken("Connect to %s: %v", sub.Queue, err)
	}
	if e, ok := conn.(jms.Elector); ok {
		c.must("AwaitActive", func() error { return e.AwaitActive(c.ctx) })
	}
	return &link{conn, conn.Capabilities()}
}

func (c *kase) connect() *link { c.Helper(); return c.connectWith(jms.Subscription{Queue: c.b.Queue}) }

func (c *kase) connectTo(queue string) *link {
	c.Helper()
	return c.connectWith(jms.Subscription{Queue: queue, SingleActiveConsumer: c.single && queue == c.b.Queue})
}

func (c *kase) open(l *link) jms.Session {
	c.Helper()
	s, err := within(c, c.h.Patience, "OpenSession", func() (jms.Session, error) { return l.OpenSession(c.ctx) })
	if err != nil {
		c.broken("OpenSession: %v", err)
	}
	return s
}

// openUpTo opens n sessions, or as many as the provider's limits allow, which are at least two.
func (c *kase) openUpTo(l *link, n int) []jms.Session {
	c.Helper()
	if most := l.caps.MaxInFlight; most > 0 {
		n = min(n, most)
	}
	var all []jms.Session
	for len(all) < n {
		s, err := within(c, c.h.Patience, "OpenSession", func() (jms.Session, error) { return l.OpenSession(c.ctx) })
		if errors.Is(err, jms.ErrBusy) {
			break
		}
		if err != nil {
			c.broken("OpenSession number %d: %v", len(all)+1, err)
		}
		all = append(all, s)
	}
	if len(all) < min(n, 2) {
		c.broken("no more than %d session could be opened, so no two messages can be in flight", len(all))
	}
	return all
}

func (c *kase) close(l *link) {
	c.Helper()
	c.must("Close of the connection", func() error { return l.Close(c.ctx) })
}

func (c *kase) commit(s jms.Session, out ...jms.Outgoing) {
	c.Helper()
	c.must("Commit", func() error { return s.Commit(c.ctx, out...) })
}

func (c *kase) rollback(s jms.Session) {
	c.Helper()
	c.must("Rollback", func() error { return s.Rollback(c.ctx) })
}
