package ibmmq_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/orderaudit"
)

// R1.19: Stop finishes all that was received, running and waiting: afterwards no unit of work is open, what is on the queue and what is done add up,
// and no MQGET comes any more.
func TestR1_19_StopFinishesWhatWasReceived(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	a := inMemory(func(context.Context, *keyseq.Delivery) error { time.Sleep(5 * time.Millisecond); return nil })
	b.load(a.record, 40, 20)
	m := b.manage(b.factory(), a, func(c *keyseq.Config) { c.Workers, c.MaxInFlight = 10, 100 })
	b.finished(a, 25)
	if err := m.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	s, gets := m.Snapshot(), b.calls("MQGET")
	if n := b.unsettled(); n != 0 || s.Received != s.Committed || s.RolledBack != 0 {
		t.Errorf("%d messages in units of work; received %d, committed %d, rolled back %d", n, s.Received, s.Committed, s.RolledBack)
	}
	if left := b.available(b.queue); left+int(s.Committed) != 800 || left == 0 {
		t.Errorf("%d left and %d done of 800", left, s.Committed)
	}
	b.never(200*time.Millisecond, "an MQGET after Stop", func() bool { return b.calls("MQGET") != gets || b.waiters(b.queue) != 0 })
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.finished(a, 800)
	b.shutdown(m, a)
	judge(t, a.record.History(), orderaudit.Options{})
}

// R1.19, T22: when the time of Stop is over, what runs is cancelled and everything goes back, at its place and counted once.
func TestR1_19_StopThatRunsOutOfTimeGivesBackTheRest(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	a := inMemory(func(ctx context.Context, _ *keyseq.Delivery) error { <-ctx.Done(); return ctx.Err() })
	told := 0
	a.onError = func(*keyseq.Delivery, error, bool) { told++ }
	b.load(a.record, 3, 5)
	m := b.manage(b.factory(), a)
	b.soon("all are held", func() bool { return b.unsettled() == 15 && m.Snapshot().Running == 3 })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	a.record.InstanceStopping(a.instance)
	err := m.Stop(ctx)
	if !errors.Is(err, keyseq.ErrDrainTimeout) || !strings.Contains(err.Error(), `"k0", "k1", "k2"`) {
		t.Errorf("Stop: %v, want ErrDrainTimeout with the keys", err)
	}
	took(b, "the run has ended", m.Done())
	if n := b.available(b.queue); n != 15 || b.unsettled() != 0 || told != 0 {
		t.Errorf("%d of 15 are back, %d in units of work; OnMessageError was called %d times", n, b.unsettled(), told)
	}
	s := b.session(b.connect(b.factory(), jms.Subscription{}))
	for n := range 5 {
		for k := range 3 {
			want := fmt.Sprintf("k%d.%d", k, n)
			if got := b.receive(s); string(got.Body) != want || got.DeliveryCount != 2 {
				t.Errorf("%s is back, delivery %d; want %s for the second time", got.Body, got.DeliveryCount, want)
			}
			if err := s.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// R1.20: 50 rounds of Stop and Start go on with the same connections.
func TestR1_20_StopAndStartKeepTheSessions(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	a := inMemory(nil)
	m := b.newManager(b.factory(), a, func(c *keyseq.Config) { c.Workers, c.MaxInFlight = 5, 5 })
	send := b.sender()
	first := 0
	for round := range 50 {
		out := make([]jms.Outgoing, 10)
		for k := range out {
			out[k] = jms.Outgoing{Text: true, Body: fmt.Appendf(nil, "k%d.%d", k, round)}
		}
		if err := send(t.Context(), b.queue, out...); err != nil {
			t.Fatal(err)
		}
		for _, o := range out {
			a.record.Sent(nameOf(o.Body))
		}
		if err := m.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.finished(a, 10*(round+1))
		if err := m.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if round == 0 {
			first = b.calls("MQCONNX")
		}
	}
	if n := b.calls("MQCONNX"); n > first+5 {
		t.Errorf("%d connections were made in the first round, %d in all", first, n)
	}
	b.shutdown(m, a)
	judge(t, a.record.History(), orderaudit.Options{})
}

// R1.21, B18: Shutdown lets what runs end and settle, and skips what has not begun; that comes after a restart, in order, and no connection is left.
func TestR1_21_ShutdownSkipsWhatHasNotBegun(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	release := make(chan struct{})
	a := inMemory(func(context.Context, *keyseq.Delivery) error { <-release; return nil })
	b.load(a.record, 4, 10)
	before := b.connected()
	m := b.manage(b.factory(), a)
	b.soon("all are held, four run", func() bool { return b.unsettled() == 40 && m.Snapshot().Running == 4 })
	ended := make(chan struct{})
	go func() { defer close(ended); b.shutdown(m, a) }()
	b.soon("what has not begun is back", func() bool { return b.available(b.queue) == 36 })
	close(release)
	took(b, "Shutdown returns", ended)
	if s := m.Snapshot(); s.Committed != 4 || s.InFlight != 0 || s.Keys != 0 {
		t.Errorf("committed %d, want the 4 that ran; in flight %d, keys %d", s.Committed, s.InFlight, s.Keys)
	}
	if n := b.unsettled(); n != 0 {
		t.Errorf("%d messages are in units of work", n)
	}
	b.soon("no connection is left", func() bool { return b.connected() == before }) // one may have been on its way
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.finished(a, 40)
	b.shutdown(m, a)
	judge(t, a.record.History(), orderaudit.Options{})
}

// R1.22, R1.23: 100 keys with 10 versions each; Start, a moment, Shutdown, until all are seen: no gap, no version twice, at least 20 times.
func TestR1_22_R1_23_OrderHoldsAcrossRepeatedStartAndShutdown(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	var seen trace
	a := inMemory(func(_ context.Context, d *keyseq.Delivery) error {
		time.Sleep(5 * time.Millisecond)
		seen.add(d)
		return nil
	})
	b.load(a.record, 100, 10)
	before := b.connected()
	m := b.newManager(b.factory(), a, func(c *keyseq.Config) { c.Workers = 3 })
	rounds := 0
	for ; b.available(b.queue) > 0; rounds++ {
		if err := m.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := a.gone.Load() + 20
		b.soon("some are settled", func() bool { return a.gone.Load() >= min(want, 1000) })
		b.shutdown(m, a)
		b.soon("no connection is left", func() bool { return b.connected() == before })
	}
	if rounds < 20 {
		t.Errorf("done in %d rounds: the test must shut down in the middle", rounds)
	}
	for k := range 100 {
		if got := strings.Join(seen.of(fmt.Sprint("k", k)), ""); got != "0123456789" {
			t.Errorf("k%d ran %s, want 0123456789", k, got)
		}
	}
	judge(t, a.record.History(), orderaudit.Options{})
}

// R1.24: IBM MQ gives one unit of work to a connection: as many connections are open as messages are held, and one that controls them.
func TestR1_24_EachMessageHasItsOwnConnection(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	release := make(chan struct{})
	a := inMemory(func(context.Context, *keyseq.Delivery) error { <-release; return nil })
	b.load(a.record, 6, 2)
	before := b.calls("MQCONNX")
	s := &spy{ConnectionFactory: b.factory()}
	m := b.manage(s, a, func(c *keyseq.Config) { c.MaxInFlight = 8 })
	b.soon("eight are held", func() bool { return b.unsettled() == 8 })
	if n := b.calls("MQCONNX") - before; n != 9 || s.holding.now.Load() != 8 || s.sessions.now.Load() != 8 {
		t.Errorf("%d connections were made, %d of %d sessions hold a message; want 8 of 8, and the control connection", n, s.holding.now.Load(), s.sessions.now.Load())
	}
	close(release)
	b.finished(a, 12)
	b.shutdown(m, a)
	judge(t, a.record.History(), orderaudit.Options{})
}
