package ibmmq_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/orderaudit"
)

// R1.05: keys out of what IBM MQ carries: a property of each type, the body, the correlation ID, the group, a function; what cannot be had is an
// error, not an empty key.
func TestR1_05_WhereKeysComeFrom(t *testing.T) {
	b := newBench(t)
	b.sendAll(b.queue, jms.Outgoing{Text: true, Body: []byte(`{"account":"A-7"}|rest`), CorrelationID: "corr", GroupID: "group",
		ReplyTo: b.other, Properties: map[string]any{"text": "4711", "number": 42, "half": 0.5, "flag": true, "long": strings.Repeat("x", 2000)}})
	m := b.receive(b.session(b.connect(b.factory(), jms.Subscription{})))
	gives := func(want string, from keyseq.KeyExtractor) {
		t.Helper()
		if key, err := from.ExtractKey(m); err != nil || key != want {
			t.Errorf("key %q, %v; want %q", key, err, want)
		}
	}
	gives("4711", keyseq.KeyFromProperty("text"))
	gives("42", keyseq.KeyFromProperty("number"))
	gives("0.5", keyseq.KeyFromProperty("half"))
	gives("true", keyseq.KeyFromProperty("flag"))
	gives(`{"account":"A-7"}`, keyseq.KeyFromBodyBefore("|"))
	gives("corr", keyseq.KeyFromCorrelationID())
	gives("group", keyseq.KeyFromGroupID())
	gives(b.other, keyseq.KeyExtractorFunc(func(m *jms.Message) (string, error) { return m.ReplyTo, nil }))
	if _, err := keyseq.KeyFromProperty("texst").ExtractKey(m); err == nil || !strings.Contains(err.Error(), "texst") {
		t.Errorf("a property that is not there: %v", err)
	}
	if _, err := keyseq.KeyFromProperty("long").ExtractKey(m); !errors.Is(err, jms.ErrUnreadable) {
		t.Errorf("a property that cannot be read: %v, want ErrUnreadable", err)
	}
}

// R1.06: Snapshot counts the keys that have work, and Explain finds each.
func TestR1_06_KeysExistWhileTheyHaveWork(t *testing.T) {
	b := newBench(t)
	const keys = 10
	gates := map[string]chan struct{}{}
	for k := range keys {
		gates[fmt.Sprint("k", k)] = make(chan struct{})
	}
	a := inMemory(func(_ context.Context, d *keyseq.Delivery) error { <-gates[d.Key]; return nil })
	b.load(a.record, keys, 3)
	m := b.manage(b.factory(), a)
	b.soon("all are received", func() bool { return m.Snapshot().Received == 3*keys })
	for live := keys; live > 0; live-- {
		key := fmt.Sprint("k", live-1)
		if n := m.Snapshot().Keys; n != live {
			t.Errorf("%d keys, want %d", n, live)
		}
		if report, ok := m.Explain(key); !ok || report.Held != 3 {
			t.Errorf("Explain(%q): %+v, %t; want 3 held", key, report, ok)
		}
		close(gates[key])
		b.soon(key+" is gone", func() bool { _, ok := m.Explain(key); return !ok })
	}
	if n := m.Snapshot().Keys; n != 0 {
		t.Errorf("%d keys are left", n)
	}
	b.shutdown(m, a)
	judge(t, a.record.History(), orderaudit.Options{})
}

// R1.07, B7: with two workers, 50 messages that wait for their predecessor do not keep another key from a worker.
func TestR1_07_WaitingMessagesHoldNoWorker(t *testing.T) {
	b := newBench(t)
	release := make(chan struct{})
	a := inMemory(func(_ context.Context, d *keyseq.Delivery) error {
		if string(d.Body) == "A.0" {
			<-release
		}
		return nil
	})
	var bodies []string
	for n := range 51 {
		bodies = append(bodies, fmt.Sprint("A.", n))
	}
	b.sent(a, append(bodies, "B.0")...)
	m := b.manage(b.factory(), a, func(c *keyseq.Config) { c.Workers = 2 })
	b.finished(a, 1)
	if report, ok := m.Explain("A"); !ok || report.Held != 51 {
		t.Errorf("B was settled, and of A this is held: %+v", report)
	}
	close(release)
	b.finished(a, 52)
	b.shutdown(m, a)
	judge(t, a.record.History(), orderaudit.Options{})
}

// R1.09: keys that are used once leave nothing behind: no key, no message handle of IBM's client, no more sessions, a flat heap.
func TestR1_09_KeysOnceEachLeaveNothingBehind(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	a := inMemory(nil)
	send := b.sender()
	s := &spy{ConnectionFactory: b.factory()}
	m := b.manage(s, a, func(c *keyseq.Config) { c.Events, c.Workers = c.Events[:0], 10 }) // the record would grow
	heap := func() uint64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	var first uint64
	const rounds, each = 4, 1500
	for round := range rounds {
		for from := 0; from < each; from += 500 {
			out := make([]jms.Outgoing, 500)
			for i := range out {
				out[i] = jms.Outgoing{Body: fmt.Appendf(nil, "key-%d-%d.0", round, from+i)}
			}
			if err := send(t.Context(), b.queue, out...); err != nil {
				t.Fatal(err)
			}
		}
		b.soon("the round is settled", func() bool { s := m.Snapshot(); return int(s.Committed) == (round+1)*each && s.Keys == 0 })
		a.forget()
		if now := heap(); round == 0 {
			first = now
		} else if now > first+first/2+4<<20 {
			t.Fatalf("after round %d the heap is %d KiB, after the first it was %d KiB", round+1, now>>10, first>>10)
		}
	}
	b.soon("message handles are freed", func() bool { runtime.GC(); return b.handles() < 50 })
	if n := s.opened.Load(); n > 40 {
		t.Errorf("%d sessions were opened for 10 workers", n)
	}
	b.shutdown(m, a)
}

// forget drops what was recorded.
func (a *audited) forget() {
	a.record = orderaudit.NewRecorder()
	a.attempts.Clear()
	a.settled.Clear()
}

// R1.09, B17: messages of a few keys that arrive one by one, just as their key's queue is being deleted.
func TestR1_09_DeletingAKeysQueueRacesWithArrivals(t *testing.T) {
	b := newBench(t)
	a := inMemory(nil)
	m := b.manage(b.factory(), a, func(c *keyseq.Config) { c.Workers = 4 })
	const each = 200
	var senders sync.WaitGroup
	for k := range 3 {
		send := b.sender()
		senders.Go(func() {
			for n := range each {
				body := fmt.Sprintf("k%d.%d", k, n)
				if err := send(t.Context(), b.queue, jms.Outgoing{Text: true, Body: []byte(body)}); err != nil {
					t.Error(err)
				}
				a.record.Sent(nameOf([]byte(body)))
			}
		})
	}
	senders.Wait()
	b.finished(a, 3*each)
	b.soon("no key is left", func() bool { return m.Snapshot().Keys == 0 })
	b.shutdown(m, a)
	judge(t, a.record.History(), orderaudit.Options{})
}

// R1.11: never more than Workers tasks at once, and all of them when there are keys enough.
func TestR1_11_WorkersIsTheLimitAndIsReached(t *testing.T) {
	b := newBench(t)
	const workers = 7
	var tasks atMost
	full := make(chan struct{})
	var once sync.Once
	a := inMemory(func(context.Context, *keyseq.Delivery) error {
		tasks.enter()
		defer tasks.leave()
		if tasks.now.Load() == workers {
			once.Do(func() { close(full) })
		}
		<-full
		time.Sleep(time.Millisecond)
		return nil
	})
	b.load(a.record, 50, 3)
	m := b.manage(b.factory(), a, func(c *keyseq.Config) { c.Workers = workers })
	b.finished(a, 150)
	if n, exist := tasks.most.Load(), m.Snapshot().Workers; n != workers || exist > workers {
		t.Errorf("%d tasks at once and %d workers, want %d", n, exist, workers)
	}
	b.shutdown(m, a)
	judge(t, a.record.History(), orderaudit.Options{})
}

// R1.12, B8: with all workers busy exactly MaxInFlight messages are in units of work, and no MQGET waits for one more.
func TestR1_12_ExactlyMaxInFlightIsReceived(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	release := make(chan struct{})
	a := inMemory(func(context.Context, *keyseq.Delivery) error { <-release; return nil })
	b.load(a.record, 20, 2)
	s := &spy{ConnectionFactory: b.factory()}
	m := b.manage(s, a, func(c *keyseq.Config) { c.MaxInFlight = 5 })
	b.soon("the window is full", func() bool { return b.unsettled() == 5 })
	gets := b.calls("MQGET")
	b.never(500*time.Millisecond, "more or less than 5 messages are in units of work, or an MQGET waits for one more", func() bool {
		return b.unsettled() != 5 || b.waiters(b.queue) != 0
	})
	if n := b.calls("MQGET") - gets; n != 0 {
		t.Errorf("%d MQGETs without room for a message", n)
	}
	close(release)
	b.finished(a, 40)
	b.shutdown(m, a)
	if n := s.holding.most.Load(); n != 5 {
		t.Errorf("at most %d messages were held, want 5", n)
	}
	judge(t, a.record.History(), orderaudit.Options{})
}

// R1.12: the window also counts bytes.
func TestR1_12_BytesBoundTheWindow(t *testing.T) {
	b := newBench(t)
	release := make(chan struct{})
	a := inMemory(func(context.Context, *keyseq.Delivery) error { <-release; return nil })
	for k := range 20 {
		b.sent(a, fmt.Sprintf("k%02d.1 %s", k, strings.Repeat("x", 994)))
	}
	s := &spy{ConnectionFactory: b.factory()}
	m := b.manage(s, a, func(c *keyseq.Config) { c.MaxInFlightBytes = 5000 })
	b.soon("the window is full", func() bool { return m.Snapshot().Running == 5 })
	b.never(300*time.Millisecond, "a sixth message of 1,000 bytes runs with a limit of 5,000", func() bool { return m.Snapshot().Running != 5 })
	close(release)
	b.finished(a, 20)
	b.shutdown(m, a)
	if n := s.holding.most.Load(); n > 6 {
		t.Errorf("at most %d messages were held", n)
	}
	judge(t, a.record.History(), orderaudit.Options{})
}
