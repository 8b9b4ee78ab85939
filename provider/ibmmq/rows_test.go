package ibmmq_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/orderaudit"
)

// T9: a handler succeeds after the unit of work of its message was rolled back. Its commit settles nothing, and above all not the next message.
func TestT09_ALateSuccessCommitsNothing(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	b.send(b.queue, "1", "2")
	c := b.connect(b.factory(), jms.Subscription{})
	s := b.session(c)
	b.receive(s)
	if n := b.backOut(1); n != 1 {
		t.Fatalf("%d units of work were backed out", n)
	}
	b.is(s.Commit(t.Context(), jms.Outgoing{Queue: b.other, Body: []byte("booked")}), jms.ErrRolledBack, "2003")
	_ = s.Close(t.Context())
	if got := b.bodies(b.queue) + b.bodies(b.other); got != "1 2" {
		t.Errorf("found %q, want both messages and nothing sent", got)
	}
}

// T10: what failed on a session is not committed with the next success on it.
func TestT10_AFailureIsNotCommittedLater(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	b.define("FULL10:maxdepth=0")
	b.send(b.queue, "1", "2")
	c := b.connect(b.factory(), jms.Subscription{})
	s, other := b.session(c), b.session(c)
	b.receive(s)
	b.is(s.Commit(t.Context(), jms.Outgoing{Queue: "FULL10", Body: []byte("x")}), jms.ErrBusy, "2053")
	if err := s.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if m := b.receive(other); string(m.Body) != "1" {
		t.Fatalf("received %s", m.Body)
	}
	if m := b.receive(s); string(m.Body) != "2" {
		t.Fatalf("received %s", m.Body)
	}
	if err := s.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := b.bodies(b.queue); got != "1" {
		t.Errorf("%q is left, want 1 alone", got)
	}
}

// T11: a rollback that fails costs its session, not the key and not the pool.
func TestT11_ARollbackThatFailsLeavesNoHole(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	var s trace
	var once sync.Once
	a := inMemory(nil)
	a.task = func(_ context.Context, d *keyseq.Delivery) error {
		s.add(d)
		if string(d.Body) == "k.1" {
			once.Do(func() { // the commit is rolled back, so what the key holds is given back; that fails once
				b.fail("MQCMIT", 2003, 1)
				b.fail("MQBACK", 2009, 1)
			})
		}
		return nil
	}
	loss := a.record.Loss("", "a rollback fails", 0)
	b.sent(a, "k.1", "k.2", "k.3", "k.4")
	m := b.manage(b.factory(), a)
	b.finished(a, 4)
	loss.Done()
	b.sent(a, "k.5")
	b.finished(a, 5)
	b.shutdown(m, a)
	judge(t, a.record.History(), orderaudit.Options{})
}

// T12: what a closed session held is back, at its place, when Close returns: nobody gets in between.
func TestT12_CloseIsSynchronous(t *testing.T) {
	b := newBench(t)
	b.send(b.queue, numbers(1, 20)...)
	for round := range 10 {
		c := b.connect(b.factory(), jms.Subscription{Client: fmt.Sprintf("round %d", round)})
		for range 5 {
			b.receive(b.session(c))
		}
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		next := b.connect(b.factory(), jms.Subscription{})
		if m := b.receive(b.session(next)); string(m.Body) != "1" || m.DeliveryCount != 2*round+2 {
			t.Fatalf("round %d: received %s, delivery %d", round, m.Body, m.DeliveryCount)
		}
		_ = next.Close(t.Context())
	}
}

// H1: commits of which the answer is lost. Their keys wait, nothing is repeated that was done, the others go on.
func TestH01_CommitsInDoubt(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	a := inMemory(nil)
	var n atomic.Int64
	a.task = func(context.Context, *keyseq.Delivery) error {
		if i := n.Add(1); i%20 == 0 {
			b.failAfter("MQCMIT", 2009, 1)
		}
		return nil
	}
	loss := a.record.Loss("", "answers are lost", 0)
	b.load(a.record, 10, 10)
	m := b.manage(b.factory(), a)
	b.soon("everything is handled", func() bool { return b.available(b.queue)+b.unsettled() == 0 && m.Snapshot().InFlight <= 1 })
	loss.Done()
	b.shutdown(m, a)
	judge(t, a.record.History(), orderaudit.Options{})
}

// H18: one of many connections breaks. The tasks of the others are not cancelled, and settle.
func TestH18_OneSessionLostIsNotAll(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	const n = 10
	var cancelled, starts atomic.Int64
	began, release := make(chan struct{}, 3*n), make(chan struct{})
	a := inMemory(func(ctx context.Context, d *keyseq.Delivery) error {
		starts.Add(1)
		began <- struct{}{}
		select {
		case <-release:
		case <-ctx.Done():
			cancelled.Add(1)
			return ctx.Err()
		}
		return nil
	})
	var bodies []string
	for k := range n {
		bodies = append(bodies, fmt.Sprintf("k%d.1", k))
	}
	b.sent(a, bodies...)
	m := b.manage(b.factory(), a)
	for range n {
		<-began
	}
	loss := a.record.Loss("", "one connection", 0)
	b.breakOldest(1, true)
	close(release)
	b.finished(a, n)
	loss.Done()
	if c := cancelled.Load(); c != 0 {
		t.Errorf("%d tasks were cancelled", c)
	}
	if all := starts.Load(); all > n+1 {
		t.Errorf("%d tasks began, want at most one of %d twice", all, n)
	}
	b.shutdown(m, a)
	judge(t, a.record.History(), orderaudit.Options{})
}

// R1.24: a limit of the queue manager (2537) makes the window as large as the sessions that there are, and is told; the work goes on.
func TestR1_24_FewConnectionsAreEnough(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	shrunk := make(chan struct{})
	a := inMemory(func(context.Context, *keyseq.Delivery) error { <-shrunk; return nil })
	b.load(a.record, 20, 10)
	b.limit(b.connected()+1+4, 2537) // the control connection and four sessions
	var log strings.Builder
	var mu sync.Mutex
	m := b.manage(b.factory(), a, func(c *keyseq.Config) { c.Logger = textLogger(&mu, &log) })
	b.soon("the window is as large as the sessions that there are", func() bool { s := m.Snapshot(); return s.Sessions == 4 && s.MaxInFlight == 4 })
	close(shrunk)
	b.finished(a, 200)
	if s := m.Snapshot(); s.Sessions > 4 {
		t.Errorf("%d sessions", s.Sessions)
	}
	b.shutdown(m, a)
	mu.Lock()
	defer mu.Unlock()
	if !strings.Contains(log.String(), "2537") || !strings.Contains(log.String(), "MaxChannels") {
		t.Errorf("the log does not tell:\n%s", log.String())
	}
	judge(t, a.record.History(), orderaudit.Options{})
}

// 2161: what runs is settled, nothing more is received, and the manager comes back.
func TestQuiescingQueueManager(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	began, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	a := inMemory(func(context.Context, *keyseq.Delivery) error {
		once.Do(func() { close(began); <-release })
		return nil
	})
	b.sent(a, "k.1", "k.2", "other.1")
	m := b.manage(b.factory(), a)
	<-began
	a.record.Loss("", "quiesced", 0).Done()
	b.stop(2161)
	time.AfterFunc(100*time.Millisecond, func() { close(release) })
	b.soon("the connection is given up", func() bool { return m.State() == keyseq.StateConnecting })
	if n := a.gone.Load(); n < 1 {
		t.Errorf("%d messages are settled, want what ran", n)
	}
	b.stop(0)
	b.finished(a, 3)
	b.shutdown(m, a)
	if err := m.Err(); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("the manager ended with %v", err)
	}
	judge(t, a.record.History(), orderaudit.Options{})
}

// textLogger writes to a builder under a lock.
func textLogger(mu *sync.Mutex, to *strings.Builder) *slog.Logger {
	return slog.New(slog.NewTextHandler(writer(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return to.Write(p)
	}), nil))
}

type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }
