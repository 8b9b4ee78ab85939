package ibmmq_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/orderaudit"
	"github.com/keyseq/keyseq/provider/ibmmq"
)

// B13: all connections break, noticed by both ends, by this one only, and with the queue manager away for a while: the manager connects anew, by
// itself, and goes on in order.
func TestB13_ReconnectsAndResumes(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	b.detect(200 * time.Millisecond)
	a := inMemory(func(context.Context, *keyseq.Delivery) error { time.Sleep(10 * time.Millisecond); return nil })
	b.load(a.record, 20, 60)
	m := b.manage(b.factory(), a, func(c *keyseq.Config) { c.Workers, c.ClientName = 10, "b13" })
	for i, lose := range []func(){
		func() { b.breakName("b13", true) }, func() { b.breakName("b13", false) }, func() { b.restart(300 * time.Millisecond) },
	} {
		settled := a.gone.Load()
		b.soon("it works", func() bool { return a.gone.Load() >= settled+100 })
		loss := a.record.Loss("", fmt.Sprint("loss ", i), 0)
		lose()
		b.soon("it is noticed", func() bool { return m.State() == keyseq.StateConnecting })
		b.soon("it reads again", func() bool { return m.State() == keyseq.StateActive })
		loss.Done()
	}
	b.soon("everything is handled", func() bool { return b.available(b.queue)+b.unsettled() == 0 })
	b.shutdown(m, a)
	if err := m.Err(); err != nil {
		t.Errorf("Err: %v", err)
	}
	judge(t, a.record.History(), orderaudit.Options{})
}

// B14: an MQGET that does not return: Stop says so in its time, Start refuses until it has returned, and there is never a second one.
func TestB14_StartRefusesWhileTheOldReaderIsThere(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	a := inMemory(nil)
	s := &spy{ConnectionFactory: b.factory()}
	b.hold("MQGET", false)
	m := b.manage(s, a)
	b.soon("MQGET hangs", func() bool { return b.held() == 1 })
	b.sent(a, "k.1", "k.2", "k.3")
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := m.Stop(ctx); err == nil {
		t.Error("Stop returned nil while an MQGET is out")
	}
	if err := m.Start(t.Context()); !errors.Is(err, keyseq.ErrStopping) {
		t.Errorf("Start: %v, want ErrStopping", err)
	}
	if n := b.held(); n != 1 {
		t.Errorf("%d MQGETs hang, want the one", n)
	}
	b.release()
	took(b, "the run has ended", m.Done())
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.finished(a, 3)
	b.shutdown(m, a)
	if n := s.receives.most.Load(); n != 1 {
		t.Errorf("%d Receives at once", n)
	}
	judge(t, a.record.History(), orderaudit.Options{})
}

// B24: a message that does not fit into the receive buffer (2080) is handled at its place, once, without being counted; what is behind it neither
// overtakes it nor waits for ever.
func TestB24_ALargeMessageKeepsItsPlace(t *testing.T) {
	b := newBench(t)
	var tasks trace
	counts := map[string]int{}
	a := inMemory(func(_ context.Context, d *keyseq.Delivery) error {
		tasks.add(d)
		counts[d.Key] += d.DeliveryCount
		return nil
	})
	b.sent(a, "k.1", "k.2 "+strings.Repeat("x", 300_000), "k.3", "k.4 "+strings.Repeat("x", 100_000), "k.5")
	m := b.manage(b.factory(func(f *ibmmq.Factory) { f.BufferSize = 1 << 10 }), a)
	b.finished(a, 5)
	b.shutdown(m, a)
	if got := len(tasks.of("k")); got != 5 || counts["k"] != 5 {
		t.Errorf("%d tasks with %d deliveries for 5 messages", got, counts["k"])
	}
	judge(t, a.record.History(), orderaudit.Options{})
}

// T13: a poison message is in the backout queue, and committed there, before its successor runs; that one's failure takes it not back.
func TestT13_TheNextMessageDoesNotUndoADeadLetter(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	a := inMemory(nil)
	dead := make(chan int, 1)
	a.task = func(ctx context.Context, d *keyseq.Delivery) error {
		if string(d.Body) == "k.1" {
			return keyseq.DeadLetter(errors.New("poison"))
		}
		select {
		case dead <- b.available(b.other): // what is committed there
		default:
		}
		if err := d.Send(ctx, jms.Outgoing{Queue: b.other, Body: []byte("result")}); err != nil {
			return err
		}
		if d.Attempt < 4 {
			return errors.New("fails")
		}
		b.fail("MQCMIT", 2003, 1)
		return nil
	}
	b.send(b.queue, "k.1", "k.2")
	m := b.manage(b.factory(), a, func(c *keyseq.Config) {
		c.MaxInFlight, c.Retry.Backoff = 1, keyseq.FixedBackoff(time.Millisecond) // one session for both
	})
	if n := took(b, "the successor runs", dead); n != 1 {
		t.Errorf("%d dead letters are committed when the successor runs, want 1", n)
	}
	b.soon("the successor was rolled back", func() bool { return m.Snapshot().RolledBack > 0 })
	b.shutdown(m, a)
	if got := b.bodies(b.other); strings.Fields(got + " ")[0] != "k.1" {
		t.Errorf("the backout queue has %q", got)
	}
}

// T23: a task ignores its context and the time of Shutdown is over: no second task of its key begins, in this run or in a later one; what was
// held behind it is back at once, and the error names the key.
func TestT23_ATaskDeafToItsContextIsNeverJoined(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	release := make(chan struct{})
	var tasks atMost
	a := inMemory(func(context.Context, *keyseq.Delivery) error {
		tasks.enter()
		defer tasks.leave()
		<-release
		return nil
	})
	b.sent(a, "K.1", "K.2", "K.3")
	m := b.manage(b.factory(), a)
	b.soon("all are held", func() bool { return b.unsettled() == 3 && tasks.now.Load() == 1 })
	a.record.InstanceStopping(a.instance)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := m.Shutdown(ctx); !errors.Is(err, keyseq.ErrDrainTimeout) || !strings.Contains(err.Error(), `"K"`) {
		t.Errorf("Shutdown: %v, want ErrDrainTimeout with the key", err)
	}
	if err := m.Start(t.Context()); !errors.Is(err, keyseq.ErrStopping) {
		t.Errorf("Start: %v, want ErrStopping", err)
	}
	b.soon("what was behind it is back", func() bool { return b.available(b.queue) >= 2 })
	close(release)
	took(b, "the run has ended", m.Done())
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.soon("everything is handled", func() bool { return b.available(b.queue)+b.unsettled() == 0 })
	b.shutdown(m, a)
	if n := tasks.most.Load(); n != 1 {
		t.Errorf("%d tasks of the key at once", n)
	}
	judge(t, a.record.History(), orderaudit.Options{})
}

// T24: the connections drop while every worker is inside MQCMIT, before or after the queue manager has done it: it recovers, in order.
func TestT24_TheConnectionDropsWhileAllWorkersAreInCommit(t *testing.T) {
	for name, done := range map[string]bool{"before": false, "done": true} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.needsControls()
			const workers = 10
			var inside atomic.Int64
			a := inMemory(nil)
			all := make(chan struct{})
			a.task = func(context.Context, *keyseq.Delivery) error {
				if n := inside.Add(1); n == workers {
					b.hold("MQCMIT", done)
					close(all)
				}
				<-all
				return nil
			}
			b.load(a.record, 2*workers, 3)
			m := b.manage(b.factory(), a, func(c *keyseq.Config) { c.Workers, c.ClientName = workers, "t24" })
			b.soon("all workers are in MQCMIT", func() bool { return b.held() == workers })
			loss := a.record.Loss("", "connection", 0)
			b.breakName("t24", true)
			b.release()
			b.soon("everything is handled", func() bool { return b.available(b.queue)+b.unsettled() == 0 })
			loss.Done()
			b.shutdown(m, a)
			judge(t, a.record.History(), orderaudit.Options{})
		})
	}
}

// T25: the process is killed with -9 between the end of its task and the commit, which never reaches the queue manager: exactly one duplicate, marked
// and counted, and no successor before it.
func TestT25_KilledBeforeTheCommit(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	a := inMemory(nil)
	var j journal
	a.task = func(_ context.Context, d *keyseq.Delivery) error {
		j.add("%s redelivered %t", d.Body, d.Redelivered)
		return nil
	}
	b.sent(a, "k.1", "k.2", "k.3")
	b.hold("MQCMIT", false)
	victim := b.start("victim")
	b.soon("its commit is on the way", func() bool { return b.held() == 1 })
	victim.kill()
	b.soon("everything is back", func() bool { return b.available(b.queue) == 3 })
	b.release()
	m := b.manage(b.factory(), a)
	b.finished(a, 3)
	b.shutdown(m, a)
	if got := j.all(); len(got) != 3 || got[0] != "k.1 redelivered true" {
		t.Errorf("after the crash ran %v, want k.1 first, marked, and each once", got)
	}
	h, err := orderaudit.Load(victim.path)
	if err != nil {
		t.Fatal(err)
	}
	starts := 0
	for _, r := range h.Records {
		if r.Kind == orderaudit.KindStart {
			starts++
		}
	}
	if starts != 1 {
		t.Errorf("the killed process began %d tasks, want the one", starts)
	}
}
