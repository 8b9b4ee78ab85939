package ibmmq_test

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/keyseq/keyseq/orderaudit"
)

const (
	processKeys = 30
	processEach = 20
)

// pair is an active consumer and a standby, each in a process of its own, on a queue that is loaded.
func pair(t *testing.T) (b *bench, record *orderaudit.Recorder, path string, active, standby *process) {
	b = newBench(t)
	b.needsControls()
	path = filepath.Join(t.TempDir(), "test.jsonl")
	record, err := orderaudit.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	active = b.start("A")
	active.until("active")
	standby = b.start("B")
	standby.until("standby")
	b.load(record, processKeys, processEach)
	return b, record, path, active, standby
}

// someHandled waits until part of the load is done.
func (b *bench) someHandled() {
	b.t.Helper()
	b.soon("a quarter is handled", func() bool { return b.available(b.queue)+b.unsettled() < processKeys*processEach*3/4 })
}

func (b *bench) allHandled() {
	b.t.Helper()
	b.soon("everything is handled", func() bool { return b.available(b.queue)+b.unsettled() == 0 })
}

func joined(t *testing.T, record *orderaudit.Recorder, paths ...string) *orderaudit.History {
	t.Helper()
	if err := record.Close(); err != nil {
		t.Fatal(err)
	}
	h, err := orderaudit.Load(paths...)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// thawed marks in a record when a frozen process goes on.
const thawed = "thawed"

// withoutLateStarts takes out what a thawed process began before it noticed that it had lost its role: nobody can keep it from that, and
// Delivery.Epoch is there for the user's store to refuse it. None of it may have been settled.
func withoutLateStarts(t *testing.T, h *orderaudit.History, instance string) {
	t.Helper()
	late, since := map[uint64]bool{}, false
	kept := h.Records[:0]
	for _, r := range h.Records {
		since = since || r.Kind == orderaudit.KindStarted && r.Instance == thawed
		if since && r.Instance == instance && r.Kind == orderaudit.KindStart {
			late[r.ID] = true
		}
		if r.Instance == instance && late[r.ID] && r.ID != 0 {
			if r.Kind == orderaudit.KindEnd && r.Outcome == orderaudit.Settled {
				t.Errorf("message %d of key %s was settled by the thawed process", r.Seq, r.Key)
			}
			continue
		}
		kept = append(kept, r)
	}
	h.Records = kept
}

// R2.02: three instances in processes of their own. One runs tasks; when it is killed exactly one of the others goes on, in order.
func TestR2_02_OneOfThreeIsActive(t *testing.T) {
	b, record, path, a, s := pair(t)
	third := b.start("C")
	third.until("standby")
	b.someHandled()
	loss := record.Loss("A", "kill -9", 0)
	a.kill()
	record.Killed("A")
	loss.Done()
	second := anyActive(t, s, third)
	b.allHandled()
	for _, p := range []*process{third, s} { // who stands by first, so that the role does not go over
		if p != second {
			p.stop()
		}
	}
	record.InstanceStopping(second.name)
	second.stop()
	h := joined(t, record, path, a.path, s.path, third.path)
	ran := map[string]bool{}
	for _, r := range h.Records {
		ran[r.Instance] = ran[r.Instance] || r.Kind == orderaudit.KindStart
	}
	if !ran["A"] || !ran[second.name] || ran["B"] && ran["C"] {
		t.Errorf("tasks were run by %v, want by A and %s", ran, second.name)
	}
	judge(t, h, orderaudit.Options{})
}

// anyActive tells which of them becomes active first.
func anyActive(t *testing.T, all ...*process) *process {
	t.Helper()
	first := make(chan *process, len(all))
	for _, p := range all {
		go func() {
			for state := range p.states {
				if state == "active" {
					first <- p
				}
			}
		}()
	}
	select {
	case p := <-first:
		return p
	case <-time.After(20 * time.Second):
		t.Fatal("nobody becomes active")
		return nil
	}
}

// User reports 1 and 7, T25, H5: the active consumer is killed in the middle. The standby goes on where it was, in order, with
// no more repeats than what was in flight.
func TestReport01And07_ActiveProcessKilled(t *testing.T) {
	b, record, path, a, s := pair(t)
	b.someHandled()
	loss := record.Loss("A", "kill -9", 0)
	a.kill()
	record.Killed("A")
	loss.Done()
	s.until("active")
	b.allHandled()
	record.InstanceStopping("B")
	s.stop()
	judge(t, joined(t, record, path, a.path, s.path), orderaudit.Options{})
}

// H5: it is frozen; the queue manager gives it up after its heartbeat, the standby takes over, and what the first one commits when it is
// thawed fails.
func TestH05_ActiveProcessFrozen(t *testing.T) {
	b, record, path, a, s := pair(t)
	b.someHandled()
	record.Takeover("B", takeover)
	loss := record.Loss("A", "frozen", 0)
	a.freeze()
	s.until("active")
	b.allHandled()
	record.InstanceStarted(thawed)
	if err := a.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	a.until("standby")
	loss.Done()
	for _, p := range []*process{a, s} {
		record.InstanceStopping(p.name)
		p.stop()
	}
	h := joined(t, record, path, a.path, s.path)
	withoutLateStarts(t, h, "A")
	judge(t, h, orderaudit.Options{})
}

// An orderly end hands over without a wait, in the middle of the work, and without a repeat of what was handled.
func TestH05_ActiveProcessEndsInOrder(t *testing.T) {
	b, record, path, a, s := pair(t)
	b.someHandled()
	record.InstanceStopping("A")
	a.stop()
	s.until("active")
	b.allHandled()
	record.InstanceStopping("B")
	s.stop()
	judge(t, joined(t, record, path, a.path, s.path), orderaudit.Options{})
}
