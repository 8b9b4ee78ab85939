package simulation

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/orderaudit"
	"github.com/keyseq/keyseq/provider/memory"
)

// keyErrorStops says whether a run ends at a message whose key cannot be extracted.
func (w *world) keyErrorStops() bool {
	return w.s.onKeyError == keyseq.ActionStop || w.s.onKeyError == keyseq.ActionAuto && !w.s.deadLetters
}

var errKey = errors.New("no key")

// key is the extractor: some messages have no key, the keys of some become readable after a few tries, and where an error stops the run, the
// error is mended while it has stopped.
func (w *world) key(m *keyseq.Message) (string, error) {
	key, ok := m.Properties["key"].(string)
	if !ok {
		return "", errKey
	}
	seq := seqOf(m)
	id := fmt.Sprint(key, "/", seq)
	w.mu.Lock()
	w.keyTries[id]++
	n := w.keyTries[id]
	w.mu.Unlock()
	if p := w.s.broker(); p.Rollback == memory.RollbackInPlace && p.Prefetch == 0 && w.s.choice(key, seq, 0, "unreadable") < w.s.unreadable && n <= 1+int(seq%3) {
		return "", fmt.Errorf("%w: now and then", jms.ErrUnreadable)
	}
	if stops, _ := m.Properties["stops"].(bool); stops {
		w.mu.Lock()
		first := w.bad[id] == 0
		w.bad[id]++
		w.mu.Unlock()
		if first {
			for _, name := range w.names() {
				w.rec.InstanceStopping(name)
			}
			return "", errKey
		}
	}
	return key, nil
}

func seqOf(m *keyseq.Message) int64 {
	seq, _ := m.Properties["seq"].(int64)
	return seq
}

// task is the listener of one instance.
type task struct {
	w    *world
	name string
}

var errTask = errors.New("task failed")

func (t *task) DoTask(ctx context.Context, d *keyseq.Delivery) error {
	w, seq := t.w, seqOf(d.Message)
	n := w.enter(t.name, d)
	a := w.rec.Start(t.name, d.Key, seq, 0)
	defer w.leave(t.name)
	err := t.work(ctx, d, seq, n)
	switch {
	case err == nil:
		a.Return(orderaudit.Settled)
	case ctx.Err() != nil && !errors.Is(context.Cause(ctx), keyseq.ErrTaskTimeout):
		a.Return(orderaudit.GivenBack)
	default:
		a.Return(orderaudit.Failed)
	}
	if err != nil && w.s.choice(d.Key, seq, n, "how") < 0.1 {
		panic(err)
	}
	if err != nil && w.s.choice(d.Key, seq, n, "exit") < 0.1 {
		runtime.Goexit()
	}
	return err
}

func (t *task) work(ctx context.Context, d *keyseq.Delivery, seq int64, n int) error {
	w := t.w
	pick := func(what string) float64 { return w.s.choice(d.Key, seq, n, what) }
	length := time.Duration(pick("length") * pick("short") * float64(2*time.Second))
	deaf := pick("deaf") < 0.2
	if pick("slow") < w.s.slow {
		length = taskTimeout + time.Duration(pick("length")*float64(4*time.Second))
	}
	if err := d.Send(context.Background(), keyseq.Outgoing{Queue: outQueue, Properties: map[string]any{"key": d.Key, "seq": seq}}); err != nil {
		return err
	}
	if deaf {
		time.Sleep(length)
	} else {
		timer := time.NewTimer(length)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if deaf && ctx.Err() != nil {
		return ctx.Err()
	}
	if pick("fails") < w.s.failures {
		if pick("after") < 0.2 {
			return keyseq.RetryAfter(time.Duration(pick("pause")*float64(3*time.Second)), errTask)
		}
		if w.s.exhausted == keyseq.ActionStop {
			w.rec.InstanceStopping(t.name)
		}
		if pick("verdict") < w.s.verdicts {
			switch {
			case pick("which") < 0.3:
				return keyseq.Discard(errTask)
			case pick("which") < 0.6:
				return keyseq.DeadLetter(errTask)
			}
			w.rec.InstanceStopping(t.name)
			return keyseq.StopAll(errTask)
		}
		return errTask
	}
	return nil
}

func (t *task) OnMessageError(_ context.Context, d *keyseq.Delivery, _ error, _ bool) {
	t.w.dawdle(d, "error")
}

// dawdle is what a callback does that takes its time, less than CallTimeout.
func (w *world) dawdle(d *keyseq.Delivery, where string) {
	if c := w.s.choice(d.Key, seqOf(d.Message), d.Attempt, where); c < w.s.slowUser {
		time.Sleep(time.Duration(c / w.s.slowUser * float64(3*time.Second)))
	}
}

// enter counts a task that begins, and how often this message has been begun: what a task does follows from that.
func (w *world) enter(name string, d *keyseq.Delivery) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running[name]++
	w.started[fmt.Sprint(name, d.Key, seqOf(d.Message))] = true
	if w.running[name] > w.s.workers {
		w.problems = append(w.problems, fmt.Sprintf("G7: %d tasks run on %s, Workers is %d", w.running[name], name, w.s.workers))
	}
	id := fmt.Sprint(d.Key, "/", seqOf(d.Message))
	w.begun[id]++
	return w.begun[id]
}

func (w *world) leave(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running[name]--
}

func (w *world) events(name string) keyseq.Events {
	// What has an attempt ends once; an innocent that was only held has none.
	ends := func(e keyseq.MessageEvent, outcome orderaudit.Outcome, always bool) {
		defer w.dawdle(e.Delivery, "event")
		if i, bad := e.Delivery.Message.Properties["bad"].(int64); bad {
			w.mu.Lock()
			defer w.mu.Unlock()
			if always || outcome == orderaudit.Unknown { // settled, or perhaps
				w.bad[fmt.Sprint("bad ", i)]++
			}
			return
		}
		id := fmt.Sprint(name, e.Delivery.Key, seqOf(e.Delivery.Message))
		w.mu.Lock()
		started := w.started[id]
		delete(w.started, id)
		w.mu.Unlock()
		doubt := outcome == orderaudit.Unknown && w.s.deliveries > 0
		if (always || doubt) && !started && outcome != orderaudit.Settled {
			// A policy settles what an earlier run has given back: the audit takes that for an attempt, or it would belong to the earlier one.
			w.rec.Start(name, e.Delivery.Key, seqOf(e.Delivery.Message), 0).Return(outcome)
		}
		if started || always || doubt {
			w.rec.End(name, e.Delivery.Key, seqOf(e.Delivery.Message), outcome)
		}
	}
	end := func(outcome orderaudit.Outcome) func(keyseq.MessageEvent) {
		return func(e keyseq.MessageEvent) { ends(e, outcome, true) }
	}
	return keyseq.Events{
		Received: func(e keyseq.MessageEvent) {
			if s := w.managers[name].Snapshot(); s.InFlight > w.s.maxInFlight {
				w.mu.Lock()
				w.problems = append(w.problems, fmt.Sprintf("G7: %d messages in flight on %s, MaxInFlight is %d", s.InFlight, name, w.s.maxInFlight))
				w.mu.Unlock()
			}
			w.dawdle(e.Delivery, "received")
		},
		Committed: end(orderaudit.Settled), DeadLettered: end(orderaudit.DeadLettered), Discarded: end(orderaudit.Discarded),
		RolledBack: func(e keyseq.MessageEvent) {
			outcome := orderaudit.GivenBack
			if errors.Is(e.Err, jms.ErrCommitUnknown) {
				outcome = orderaudit.Unknown
			}
			ends(e, outcome, false)
		},
	}
}
