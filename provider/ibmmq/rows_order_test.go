package ibmmq_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/orderaudit"
)

// R1.01: 10,000 messages of random keys: those of a key one after another, in queue order, while different keys overlap.
func TestR1_01_SameKeyInOrderOthersAtOnce(t *testing.T) {
	b := newBench(t)
	if b.define != nil {
		b.define(b.queue + ":maxdepth=20000")
	}
	var tasks atMost
	a := inMemory(func(context.Context, *keyseq.Delivery) error {
		tasks.enter()
		defer tasks.leave()
		time.Sleep(rand.N(2 * time.Millisecond))
		return nil
	})
	const messages = 10_000
	next := map[string]int{}
	send := b.sender()
	for range messages / 500 {
		out := make([]jms.Outgoing, 500)
		for i := range out {
			key := fmt.Sprint("k", rand.N(20)*rand.N(20))
			out[i] = jms.Outgoing{Text: true, Body: fmt.Appendf(nil, "%s.%d", key, next[key])}
			next[key]++
		}
		if err := send(t.Context(), b.queue, out...); err != nil {
			t.Fatal(err)
		}
		for _, o := range out {
			a.record.Sent(nameOf(o.Body))
		}
	}
	m := b.manage(b.factory(), a)
	b.finishedWithin(time.Minute, a, messages)
	b.shutdown(m, a)
	if n := tasks.most.Load(); n < 10 {
		t.Errorf("at most %d tasks ran at once; want those of different keys to overlap", n)
	}
	judge(t, a.record.History(), orderaudit.Options{})
}

// R1.02: one reader, whatever failures and losses do: the queue manager never sees two MQGETs of this program.
func TestR1_02_OneReceiveAtATime(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	a := inMemory(func(_ context.Context, d *keyseq.Delivery) error {
		time.Sleep(rand.N(5 * time.Millisecond))
		if d.Attempt == 1 && strings.HasSuffix(string(d.Body), "7") {
			return errors.New("once")
		}
		return nil
	})
	s := &spy{ConnectionFactory: b.factory()}
	loss := a.record.Loss("", "sessions", 0)
	m := b.manage(s, a, func(c *keyseq.Config) { c.Retry.Backoff = keyseq.FixedBackoff(5 * time.Millisecond) })
	b.load(a.record, 30, 20)
	waiting, rounds := 0, 0
	b.soon("everything is handled", func() bool { // what is settled in doubt is told by nobody
		waiting = max(waiting, b.waiters(b.queue))
		if rounds++; rounds%100 == 20 && rounds < 1000 {
			b.breakOldest(1, true)
		}
		return b.available(b.queue)+b.unsettled() == 0
	})
	loss.Done()
	b.shutdown(m, a)
	if n := s.receives.most.Load(); n != 1 || waiting > 1 {
		t.Errorf("%d Receives at once, %d MQGETs waited at once; want one", n, waiting)
	}
	judge(t, a.record.History(), orderaudit.Options{})
}

// R1.03: three messages in flight, the second is settled, the client dies: exactly the other two come back, each counted once more.
func TestR1_03_SettlingOneMessageSettlesNoOther(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	a := inMemory(func(ctx context.Context, d *keyseq.Delivery) error {
		if d.Key != "B" {
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	})
	b.sent(a, "A.1", "B.1", "C.1")
	m := b.manage(b.factory(), a, func(c *keyseq.Config) { c.ClientName = "dies" })
	b.soon("B is settled, the others are held", func() bool { return a.gone.Load() == 1 && m.Snapshot().Running == 2 && b.unsettled() == 2 })
	b.define(b.queue + ":get=0") // the manager takes nothing again
	b.breakName("dies", true)
	b.soon("they are back", func() bool { return b.available(b.queue) == 2 })
	b.shutdown(m, a)
	b.define(b.queue + ":get=1")
	s := b.session(b.connect(b.factory(), jms.Subscription{}))
	for _, want := range []string{"A.1", "C.1"} {
		if got := b.receive(s); string(got.Body) != want || got.DeliveryCount != 2 || !got.Redelivered {
			t.Errorf("came back: %s, delivery %d; want %s for the second time", got.Body, got.DeliveryCount, want)
		}
		if err := s.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.bodies(b.queue); got != "" {
		t.Errorf("%q came back too", got)
	}
}

// R1.04, B9, B20: sessions are used again, and so are their consumers: 1,000 messages with 10 in flight need 10 connections and 10 MQOPENs, and no
// more than one of each beside them.
func TestR1_04_SessionsAreReused(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	a := inMemory(func(context.Context, *keyseq.Delivery) error { time.Sleep(time.Millisecond); return nil })
	b.load(a.record, 100, 10)
	s := &spy{ConnectionFactory: b.factory()}
	connects, opens, closes := b.calls("MQCONNX"), b.calls("MQOPEN"), b.calls("MQCLOSE")
	m := b.manage(s, a, func(c *keyseq.Config) { c.MaxInFlight = 10 })
	b.finished(a, 1000)
	connects, opens, closes = b.calls("MQCONNX")-connects, b.calls("MQOPEN")-opens, b.calls("MQCLOSE")-closes
	if connects > 12 || opens > 13 || closes > 1 { // the control connection looks at the queue and at the backout queue
		t.Errorf("%d MQCONNX, %d MQOPEN, %d MQCLOSE for 1,000 messages with 10 in flight", connects, opens, closes)
	}
	if n := s.opened.Load(); n > 11 || m.Snapshot().Sessions != int(s.sessions.now.Load()) {
		t.Errorf("%d sessions were opened, want at most 11; Snapshot says %d, %d are open", n, m.Snapshot().Sessions, s.sessions.now.Load())
	}
	b.shutdown(m, a)
	judge(t, a.record.History(), orderaudit.Options{})
}

// R1.08: the task, then MQCMIT, then the message leaves its key, then the next task.
func TestR1_08_TaskThenCommitThenNext(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	var j journal
	var m *keyseq.SequenceManager
	a := inMemory(nil)
	a.task = func(_ context.Context, d *keyseq.Delivery) error {
		if string(d.Body) == "k.1" {
			b.soon("all are received", func() bool { return m.Snapshot().Received == 3 })
		}
		j.add("task of %s, %d in units of work", d.Body, b.unsettled())
		return nil
	}
	b.sent(a, "k.1", "k.2", "k.3")
	m = b.newManager(b.factory(), a, func(c *keyseq.Config) {
		c.Events = append(c.Events, keyseq.Events{Committed: func(e keyseq.MessageEvent) {
			report, _ := m.Explain("k")
			j.add("committed %s, %d held of its key, %d in units of work", e.Delivery.Body, report.Held, b.unsettled())
		}})
	})
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.finished(a, 3)
	b.shutdown(m, a)
	want := []string{
		"task of k.1, 3 in units of work", "committed k.1, 3 held of its key, 2 in units of work",
		"task of k.2, 2 in units of work", "committed k.2, 2 held of its key, 1 in units of work",
		"task of k.3, 1 in units of work", "committed k.3, 1 held of its key, 0 in units of work",
	}
	if got := j.all(); !slices.Equal(got, want) {
		t.Errorf("happened:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	judge(t, a.record.History(), orderaudit.Options{})
}

// R1.10: the next task of the key waits for a slow commit; another key is settled meanwhile.
func TestR1_10_ASlowCommitHoldsItsKeyOnly(t *testing.T) {
	b := newBench(t)
	var tasks trace
	a := inMemory(func(_ context.Context, d *keyseq.Delivery) error { tasks.add(d); return nil })
	inside, release := make(chan struct{}), make(chan struct{})
	s := &spy{ConnectionFactory: b.factory(), commit: func(m *jms.Message) {
		if string(m.Body) == "K.1" {
			close(inside)
			<-release
		}
	}}
	b.sent(a, "K.1", "J.1", "K.2", "J.2")
	m := b.manage(s, a)
	took(b, "the commit is under way", inside)
	b.finished(a, 2)
	if got := tasks.of("K"); len(got) != 1 {
		t.Errorf("tasks of K ran: %v, while the commit of the first is under way", got)
	}
	if got := tasks.of("J"); len(got) != 2 {
		t.Errorf("tasks of J ran: %v, want both", got)
	}
	close(release)
	b.finished(a, 4)
	b.shutdown(m, a)
	judge(t, a.record.History(), orderaudit.Options{})
}

// R1.13, R1.14: OnMessageError is told false for a task that failed and true for an MQCMIT that failed, while the message is the head of its key and
// before anything of the key starts. A retry in place is no delivery for the queue manager, a rollback is one.
func TestR1_13_R1_14_OnMessageErrorSaysWhetherTheTaskWasDone(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	var j journal
	var m *keyseq.SequenceManager
	a := inMemory(nil)
	tasks := 0
	a.task = func(_ context.Context, d *keyseq.Delivery) error {
		j.add("task of %s, attempt %d, delivered before %t", d.Body, d.Attempt, d.DeliveryCount > 1)
		switch tasks++; tasks {
		case 1:
			b.soon("both are received", func() bool { return m.Snapshot().Received == 2 })
			return errors.New("no")
		case 2:
			b.fail("MQCMIT", 2003, 1)
		}
		return nil
	}
	a.onError = func(d *keyseq.Delivery, err error, performed bool) {
		time.Sleep(50 * time.Millisecond) // for anything that does not wait
		head, _ := m.Explain("k")
		j.add("error of %s, performed %t, head %t, rolled back %t", d.Body, performed, head.MessageID == d.ID, errors.Is(err, jms.ErrRolledBack))
	}
	b.sent(a, "k.1", "k.2")
	m = b.newManager(b.factory(), a, func(c *keyseq.Config) { c.Retry.Backoff = keyseq.FixedBackoff(10 * time.Millisecond) })
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.finished(a, 2)
	b.shutdown(m, a)
	want := []string{
		"task of k.1, attempt 1, delivered before false", "error of k.1, performed false, head true, rolled back false",
		"task of k.1, attempt 2, delivered before false", "error of k.1, performed true, head true, rolled back true",
		"task of k.1, attempt 3, delivered before true", "task of k.2, attempt 1, delivered before true", // k.2 went back with it
	}
	if got := j.all(); !slices.Equal(got, want) {
		t.Errorf("happened:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// R1.15: a listener that records in DoTask and takes the record back when told "done, rolled back" ends with each message once, and in order.
func TestR1_15_UndoingWhatWasRolledBackLeavesNoDuplicate(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	var mu sync.Mutex
	var record []string
	failures := 0
	a := inMemory(func(_ context.Context, d *keyseq.Delivery) error {
		mu.Lock()
		defer mu.Unlock()
		record = append(record, string(d.Body))
		if failures < 5 && strings.HasSuffix(string(d.Body), "3") {
			failures++
			b.fail("MQCMIT", 2003, 1)
		}
		return nil
	})
	a.onError = func(d *keyseq.Delivery, err error, performed bool) {
		mu.Lock()
		defer mu.Unlock()
		if performed && errors.Is(err, jms.ErrRolledBack) {
			record = slices.DeleteFunc(record, func(s string) bool { return s == string(d.Body) })
		}
	}
	want := make([]string, 20)
	for n := range want {
		want[n] = fmt.Sprintf("k.%d", n)
	}
	b.sent(a, want...)
	m := b.manage(b.factory(), a)
	b.finished(a, 20)
	b.shutdown(m, a)
	if !slices.Equal(record, want) || failures != 5 {
		t.Errorf("recorded %v after %d failed commits, want each once after 5", record, failures)
	}
	judge(t, a.record.History(), orderaudit.Options{})
}

// journal is what happened, in order.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(format string, args ...any) {
	j.mu.Lock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
	j.mu.Unlock()
}

func (j *journal) all() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.lines)
}
