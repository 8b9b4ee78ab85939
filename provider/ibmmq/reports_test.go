package ibmmq_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/orderaudit"
	"github.com/keyseq/keyseq/provider/ibmmq"
)

// What users of IBM MQ have met, numbered as in the notes this was built from. Reports 1 and 7 are in processes_test.go (two processes
// and a kill), 13 and 17 in reports_loss_test.go.

// trace notes which tasks began, in order.
type trace struct {
	mu  sync.Mutex
	all []string
}

func (s *trace) add(d *keyseq.Delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, string(d.Body))
}

func (s *trace) of(key string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var some []string
	for _, body := range s.all {
		if strings.HasPrefix(body, key+".") {
			some = append(some, strings.TrimPrefix(body, key+"."))
		}
	}
	return some
}

func inMemory(task func(ctx context.Context, d *keyseq.Delivery) error) *audited {
	return &audited{instance: "manager", record: orderaudit.NewRecorder(), task: task}
}

func (b *bench) sent(a *audited, bodies ...string) {
	b.t.Helper()
	b.send(b.queue, bodies...)
	for _, body := range bodies {
		a.record.Sent(nameOf([]byte(body)))
	}
}

func (b *bench) shutdown(m *keyseq.SequenceManager, a *audited) {
	b.t.Helper()
	a.record.InstanceStopping(a.instance)
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	if err := m.Shutdown(ctx); err != nil {
		b.t.Errorf("Shutdown: %v", err)
	}
}

func (b *bench) finished(a *audited, n int) {
	b.t.Helper()
	b.finishedWithin(15*time.Second, a, n)
}

func (b *bench) finishedWithin(limit time.Duration, a *audited, n int) {
	b.t.Helper()
	b.within(limit, fmt.Sprintf("%d messages are settled", n), func() bool { return int(a.gone.Load()) >= n })
}

// 2: two messages of one client at once. The second waits for the first, however long that takes.
func TestReport02SameClientAtOnce(t *testing.T) {
	b := newBench(t)
	release, second := make(chan struct{}), make(chan struct{})
	a := inMemory(func(ctx context.Context, d *keyseq.Delivery) error {
		switch string(d.Body) {
		case "k.1":
			<-release
		case "k.2":
			close(second)
		}
		return nil
	})
	b.sent(a, "k.1", "k.2", "other.1")
	m := b.manage(b.factory(), a)
	b.finished(a, 1) // the other client is not held
	select {
	case <-second:
		t.Error("the second began while the first was running")
	default:
	}
	close(release)
	b.finished(a, 3)
	b.shutdown(m, a)
	judge(t, a.record.History(), orderaudit.Options{})
}

// 3 and T3: "1,2,4,5,3" after a rollback. In place, and with the unit of work really rolled back by the queue manager.
func TestT03_Report03_RollbackKeepsOrder(t *testing.T) {
	t.Run("in place", func(t *testing.T) {
		b := newBench(t)
		var s trace
		a := inMemory(func(_ context.Context, d *keyseq.Delivery) error {
			s.add(d)
			if string(d.Body) == "k.3" && d.Attempt == 1 {
				return errors.New("fails once")
			}
			return nil
		})
		b.sent(a, "k.1", "k.2", "k.3", "k.4", "k.5")
		m := b.manage(b.factory(), a, func(c *keyseq.Config) { c.Retry.Backoff = keyseq.FixedBackoff(20 * time.Millisecond) })
		b.finished(a, 5)
		b.shutdown(m, a)
		if got := strings.Join(s.of("k"), ""); got != "123345" {
			t.Errorf("tasks ran %s, want 123345", got)
		}
		judge(t, a.record.History(), orderaudit.Options{})
	})
	t.Run("by MQBACK", func(t *testing.T) {
		b := newBench(t)
		b.needsControls()
		var s trace
		var once sync.Once
		a := inMemory(nil)
		a.task = func(_ context.Context, d *keyseq.Delivery) error {
			s.add(d)
			if string(d.Body) == "k.3" {
				once.Do(func() { b.fail("MQCMIT", 2003, 1) })
			}
			return nil
		}
		b.sent(a, "k.1", "k.2", "k.3", "k.4", "k.5")
		m := b.manage(b.factory(), a)
		b.finished(a, 5)
		b.shutdown(m, a)
		if got := strings.Join(s.of("k"), ""); got != "123345" {
			t.Errorf("tasks ran %s, want 123345", got)
		}
	})
}

// 4: roll back with a delay and keep order. Nothing of the key runs between two attempts; the others go on.
func TestReport04DelayedRetry(t *testing.T) {
	b := newBench(t)
	var s trace
	a := inMemory(func(_ context.Context, d *keyseq.Delivery) error {
		s.add(d)
		if string(d.Body) == "bad.1" && d.Attempt < 4 {
			return errors.New("not yet")
		}
		return nil
	})
	bodies := []string{"bad.1", "bad.2"}
	for k := range 10 {
		for n := range 5 {
			bodies = append(bodies, fmt.Sprintf("good%d.%d", k, n))
		}
	}
	b.sent(a, bodies...)
	m := b.manage(b.factory(), a, func(c *keyseq.Config) { c.Retry.Backoff = keyseq.FixedBackoff(150 * time.Millisecond) })
	b.finished(a, 52)
	b.shutdown(m, a)
	if got := strings.Join(s.of("bad"), ""); got != "11112" {
		t.Errorf("tasks of the failing key ran %s, want 11112", got)
	}
	judge(t, a.record.History(), orderaudit.Options{})
}

// 5: 10 keys, 10 workers, no inversion; with random task times.
func TestReport05ParallelKeysInOrder(t *testing.T) {
	b := newBench(t)
	var n atomic.Int64
	a := inMemory(func(context.Context, *keyseq.Delivery) error {
		time.Sleep(time.Duration(n.Add(7)%5) * time.Millisecond)
		return nil
	})
	b.load(a.record, 10, 30)
	m := b.manage(b.factory(), a, func(c *keyseq.Config) { c.Workers = 10 })
	b.finished(a, 300)
	b.shutdown(m, a)
	judge(t, a.record.History(), orderaudit.Options{})
}

// 6: several readers on one queue give a jumble. With a single active consumer the second one stands by.
func TestReport06SecondReaderStandsBy(t *testing.T) {
	b := newBench(t)
	single := func(c *keyseq.Config) { c.SingleActiveConsumer = true }
	f := func() *ibmmq.Factory { return b.factory(func(f *ibmmq.Factory) { f.LockQueue = b.lock }) }
	a, other := inMemory(nil), inMemory(nil)
	m := b.manage(f(), a, single)
	b.soon("the first is active", func() bool { return m.State() == keyseq.StateActive })
	second := b.manage(f(), other, single)
	b.load(a.record, 10, 10)
	b.finished(a, 100)
	if other.gone.Load() != 0 || second.State() != keyseq.StateStandby {
		t.Errorf("the second one is %v and handled %d messages", second.State(), other.gone.Load())
	}
	b.shutdown(m, a)
	b.soon("the second is active", func() bool { return second.State() == keyseq.StateActive })
	b.shutdown(second, other)
}

// 8 and 11: the queue manager goes away and comes back. Attempts and log lines are few, and the work goes on.
func TestReport08And11QueueManagerAway(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	a := inMemory(nil)
	var lines atomic.Int64
	m := b.manage(b.factory(), a, func(c *keyseq.Config) {
		c.Reconnect = keyseq.ExponentialBackoff(100*time.Millisecond, time.Second)
		c.Logger = slog.New(slog.NewTextHandler(counter{&lines}, nil))
	})
	b.load(a.record, 5, 4)
	b.finished(a, 20)
	before := lines.Load()
	loss := a.record.Loss("", "the queue manager is away", 0)
	b.restart(3 * time.Second)
	calls := b.calls("MQCONNX")
	b.soon("it is noticed", func() bool { return m.State() == keyseq.StateConnecting })
	b.soon("it reads again", func() bool { return m.State() == keyseq.StateActive })
	loss.Done()
	if n := b.calls("MQCONNX") - calls; n > 30 {
		t.Errorf("%d attempts to connect in 3 s, want at most 30", n)
	}
	if n := lines.Load() - before; n > 60 {
		t.Errorf("%d log lines, want at most 60", n)
	}
	b.sent(a, "later.1", "later.2")
	b.finished(a, 22)
	b.shutdown(m, a)
	judge(t, a.record.History(), orderaudit.Options{})
}

type counter struct{ n *atomic.Int64 }

func (c counter) Write(p []byte) (int, error) {
	c.n.Add(1)
	return len(p), nil
}

// 9 and 20: a stop leaves nothing uncommitted and invisible: another reader has everything within a second.
func TestReport09And20StopGivesBack(t *testing.T) {
	b := newBench(t)
	began, release := make(chan struct{}), make(chan struct{})
	a := inMemory(func(ctx context.Context, d *keyseq.Delivery) error {
		close(began)
		<-release
		return errors.New("no")
	})
	b.sent(a, "k.1", "k.2", "k.3", "k.4", "k.5")
	m := b.manage(b.factory(), a)
	<-began
	b.soon("all are held", func() bool { return m.Snapshot().InFlight >= 5 })
	time.AfterFunc(50*time.Millisecond, func() { close(release) })
	b.shutdown(m, a)
	start := time.Now()
	if got := b.bodies(b.queue); got != "k.1 k.2 k.3 k.4 k.5" {
		t.Errorf("another reader found %q", got)
	}
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("it took %v", took)
	}
	if b.unsettled != nil && b.unsettled() != 0 {
		t.Errorf("%d messages are uncommitted", b.unsettled())
	}
}

// 10 and 19: a message without a readable key, and one that is no good, go to the backout queue in a unit of work of their own (T13); the
// queue goes on and nothing is lost.
func TestReport10And19BadMessageInTheMiddle(t *testing.T) {
	b := newBench(t)
	b.needsControls() // the backout queue is the queue's own
	a := inMemory(func(_ context.Context, d *keyseq.Delivery) error {
		if string(d.Body) == "k.2" {
			return keyseq.DeadLetter(errors.New("no good"))
		}
		return nil
	})
	b.send(b.queue, "k.1", "k.2", "nokey", "k.3", "other.1")
	m := b.manage(b.factory(), a)
	b.finished(a, 5)
	b.shutdown(m, a)
	if got := strings.Fields(b.bodies(b.other)); len(got) != 2 || !slices.Contains(got, "nokey") || !slices.Contains(got, "k.2") {
		t.Errorf("the backout queue has %q", got)
	}
	if got := b.bodies(b.queue); got != "" {
		t.Errorf("%q is left", got)
	}
}

// 12: half a group on the backout queue. The policy says what becomes of the successors: they go on after a dead letter, or wait.
func TestReport12SuccessorsOfAPoisonMessage(t *testing.T) {
	for action, want := range map[keyseq.Action]string{keyseq.ActionDeadLetter: "123", keyseq.ActionHold: "1"} {
		b := newBench(t)
		b.needsControls()
		var s trace
		a := inMemory(func(_ context.Context, d *keyseq.Delivery) error {
			if d.Attempt == 1 {
				s.add(d)
			}
			if string(d.Body) == "k.1" {
				return errors.New("poison")
			}
			return nil
		})
		b.send(b.queue, "k.1", "k.2", "k.3", "other.1")
		m := b.manage(b.factory(), a, func(c *keyseq.Config) {
			c.Retry = keyseq.RetryPolicy{MaxRetries: 2, Backoff: keyseq.FixedBackoff(10 * time.Millisecond), OnExhausted: action}
		})
		if action == keyseq.ActionDeadLetter {
			b.finished(a, 4)
		} else {
			b.finished(a, 1)
			b.soon("many attempts", func() bool { return m.Snapshot().Retries > 10 })
		}
		b.shutdown(m, a)
		if got := strings.Join(s.of("k"), ""); got != want {
			t.Errorf("action %v: tasks ran %s, want %s", action, got, want)
		}
	}
}

// 14: client channels pile up. After losses that nobody told there are as many connections as before.
func TestReport14ConnectionsDoNotPileUp(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	b.detect(100 * time.Millisecond)
	a := inMemory(nil)
	send := b.sender()
	before := b.connected()
	m := b.manage(b.factory(), a, func(c *keyseq.Config) { c.ClientName = "piler" })
	for round := range 3 {
		loss := a.record.Loss("", "cut", 0)
		b.breakName("piler", false)
		b.soon("it is noticed", func() bool { return m.State() == keyseq.StateConnecting })
		b.soon("it reads again", func() bool { return m.State() == keyseq.StateActive })
		loss.Done()
		if err := send(t.Context(), b.queue, jms.Outgoing{Text: true, Body: fmt.Appendf(nil, "k.%d", round)}); err != nil {
			t.Fatal(err)
		}
		b.finished(a, round+1)
	}
	b.shutdown(m, a)
	b.soon("all connections are gone", func() bool { return b.connected() == before })
}

// 15 and H3: the queue manager rolls a long unit of work back in silence. The message does not run twice at once, and its successors wait.
func TestReport15_H03_BackedOutInSilence(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	began, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	var running, most atomic.Int64
	var s trace
	a := inMemory(nil)
	a.task = func(_ context.Context, d *keyseq.Delivery) error {
		s.add(d)
		if n := running.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer running.Add(-1)
		once.Do(func() {
			close(began)
			<-release
		})
		return nil
	}
	b.sent(a, "k.1", "k.2", "k.3")
	m := b.manage(b.factory(), a)
	<-began
	b.soon("all are held", func() bool { return m.Snapshot().InFlight >= 3 })
	loss := a.record.Loss("", "backed out", 0)
	if n := b.backOut(1); n != 1 {
		t.Fatalf("%d units of work were backed out", n)
	}
	b.soon("it is received again", func() bool { return m.Snapshot().InFlight >= 4 })
	close(release)
	b.finished(a, 3)
	loss.Done()
	b.shutdown(m, a)
	if got := strings.Join(s.of("k"), ""); got != "1123" || most.Load() != 1 {
		t.Errorf("tasks ran %s, up to %d at once; want 1123, one at a time", got, most.Load())
	}
}

// 16: rollbacks count up messages that no task saw. They are not dead-lettered for it.
func TestReport16UnseenMessagesAreNotPoison(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	for range 5 { // five lives in which k.1 fails, and k.2 is held and never seen
		a := inMemory(func(context.Context, *keyseq.Delivery) error { return errors.New("fails") })
		if b.available(b.queue) == 0 {
			b.send(b.queue, "k.1", "k.2")
		}
		m := b.manage(b.factory(), a, func(c *keyseq.Config) { c.Retry.Backoff = keyseq.FixedBackoff(time.Hour) })
		b.soon("both are held", func() bool { s := m.Snapshot(); return s.InFlight >= 2 && s.Retrying == 1 })
		b.shutdown(m, a)
	}
	s := b.session(b.connect(b.factory(), jms.Subscription{}))
	if m := b.receive(s); m.DeliveryCount != 6 {
		t.Errorf("delivery %d, want 6: the queue manager counts each", m.DeliveryCount)
	}
	_ = s.Close(t.Context())
	a := inMemory(nil)
	m := b.manage(b.factory(), a)
	b.finished(a, 2)
	b.shutdown(m, a)
	if got := b.bodies(b.other); got != "" {
		t.Errorf("%q was dead-lettered", got)
	}
}

// 18: the backout queue is full. The poison message is not dropped: its key waits, says so, and goes on when there is room.
func TestReport18BackoutQueueFull(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	b.define(b.other + ":maxdepth=1")
	b.send(b.other, "in the way")
	a := inMemory(func(_ context.Context, d *keyseq.Delivery) error {
		if string(d.Body) == "k.1" {
			return keyseq.DeadLetter(errors.New("no good"))
		}
		return nil
	})
	b.sent(a, "k.1", "k.2", "other.1")
	told := make(chan string, 1)
	m := b.manage(b.factory(), a, func(c *keyseq.Config) {
		c.Retry.Backoff = keyseq.FixedBackoff(50 * time.Millisecond)
		c.Events = append(c.Events, keyseq.Events{Retrying: func(e keyseq.MessageEvent) {
			select {
			case told <- e.Err.Error():
			default:
			}
		}})
	})
	if text := <-told; !strings.Contains(text, "2053") || !strings.Contains(text, b.other) {
		t.Errorf("the event says %q, want 2053 and the queue", text)
	}
	b.finished(a, 1)
	if n := a.gone.Load(); n != 1 {
		t.Errorf("%d messages are settled, want only the other key's", n)
	}
	if got := b.bodies(b.other); !strings.HasPrefix(got, "in the way") {
		t.Errorf("the backout queue had %q", got)
	}
	b.finished(a, 3)
	b.shutdown(m, a)
	judge(t, a.record.History(), orderaudit.Options{})
}
