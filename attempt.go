package keyseq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/keyseq/keyseq/internal/keyqueue"
	"github.com/keyseq/keyseq/jms"
)

// attempt is one call of DoTask: the Delivery and its context, in one allocation.
type attempt struct {
	Delivery
	ctx     callContext
	settle  settlement // if the task has done its work
	started time.Time
	took    time.Duration
}

// afterExit is the pause of a key one of whose callbacks has ended the worker's goroutine (runtime.Goexit; t.FailNow does) before anything was
// decided: no message is lost by it, and no core. What was decided is done all the same: Exit says it before the user is told.
const afterExit = time.Second

// turn is the dispatcher's callback: the head of a key gets its attempt, or what remained to be done of an earlier one.
func (m *SequenceManager) turn(w *worker, _ *keyQueue, h *held) keyqueue.Turn {
	w.Exit = keyqueue.Again(afterExit)
	w.Own.enter()
	r := m.current.Load()
	switch {
	case h.session.link.lost.Load():
		w.Exit = keyqueue.Done()
		return m.gone(h)
	case h.overdue():
		return keyqueue.Stay()
	case h.pending != nil:
		return r.perform(w, h, h.pending)
	}
	a := m.newAttempt(r, h)
	w.Own.attempt.Store(a)
	defer w.Own.attempt.Store(nil)
	switch { // before it could be told
	case h.session.link.lost.Load():
		w.Exit = keyqueue.Done()
		return m.gone(h)
	case r.want.Load() == wishAbort:
		return keyqueue.Stay()
	case r.pulse != nil && r.pulse.frozen(a.started):
		return r.afterThaw()
	}
	if m.observed {
		m.tell(func(e *Events) func(MessageEvent) { return e.Started }, MessageEvent{Delivery: &a.Delivery, Wait: a.started.Sub(h.receivedAt)})
	}
	err := r.callTask(w, h, a)
	return r.conclude(w, h, a, err)
}

// afterThaw puts off an attempt that must not begin yet: nothing is counted. While the run is draining the message goes back instead.
func (r *run) afterThaw() keyqueue.Turn {
	if r.draining.Load() {
		return keyqueue.Stay()
	}
	return keyqueue.NotYet(beatEvery)
}

func (m *SequenceManager) newAttempt(r *run, h *held) *attempt {
	a := &attempt{started: time.Now()}
	a.Delivery = Delivery{Message: h.msg, Queue: m.queue, Key: h.key, Attempt: h.attempts() + 1, Epoch: h.session.link.epoch, ReceivedAt: h.receivedAt}
	a.ctx.base, a.ctx.overrun = r.values, ErrTaskTimeout
	a.ctx.limit, a.ctx.deadline = m.cfg.TaskTimeout, a.started.Add(m.cfg.TaskTimeout)
	return a
}

// callTask runs the user's task. A task that ends its goroutine has failed: the turn is concluded here, for the worker is gone.
func (r *run) callTask(w *worker, h *held, a *attempt) (err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if v := recover(); v != nil {
			err = newPanicError(v)
			return
		}
		w.Exit = r.conclude(w, h, a, errTaskExited)
	}()
	err = r.m.listener.DoTask(&a.ctx, &a.Delivery)
	returned = true
	return err
}

// conclude ends an attempt and does what its result asks for.
func (r *run) conclude(w *worker, h *held, a *attempt, err error) keyqueue.Turn {
	m := r.m
	a.took = time.Since(a.started)
	interrupted := a.ctx.end(context.Canceled)
	staged := a.close()
	if err == nil {
		a.settle = settlement{kind: settleCommit, attempt: a, out: staged}
		return r.perform(w, h, &a.settle)
	}
	if interrupted != nil {
		// Not the task's failure: nothing is counted.
		if h.session.link.lost.Load() {
			w.Exit = keyqueue.Done()
			return m.gone(h)
		}
		return keyqueue.Stay()
	}
	return r.failed(w, h, a, err, false)
}

// failed counts a failed attempt, tells the user, and decides what comes next.
func (r *run) failed(w *worker, h *held, a *attempt, err error, performed bool) keyqueue.Turn {
	m := r.m
	past := h.failedOnce(err)
	m.d.Update(func() { h.past, h.pending = past, nil })
	m.counters.failures.Add(1)
	m.onError(r, a, err, performed)
	v := verdictOf(err)
	pause := v.after
	switch v.kind {
	case verdictStopAll:
		r.fail(fmt.Errorf("keyseq: queue %q, key %q, message %q: the task stopped all: %w", m.queue, h.key, h.msg.ID, err))
		return keyqueue.Stay()
	case verdictDiscard:
		return r.perform(w, h, &settlement{kind: settleDiscard, attempt: a, reason: err})
	case verdictDeadLetter:
		if m.deadLetterQueue(h.session.link) != "" {
			return r.perform(w, h, &settlement{kind: settleDeadLetter, attempt: a, reason: err})
		}
		return r.hold(h, a, err)
	case verdictRetry:
		pause = m.pause(m.cfg.Retry.Backoff, past.failures)
	}
	if m.cfg.Retry.MaxRetries != Unlimited && past.failures > m.cfg.Retry.MaxRetries {
		return r.exhausted(w, h, a, err)
	}
	return r.retry(h, a, err, pause)
}

// exhausted does what Retry.OnExhausted says.
func (r *run) exhausted(w *worker, h *held, a *attempt, err error) keyqueue.Turn {
	m := r.m
	switch m.cfg.Retry.OnExhausted {
	case ActionDiscard:
		return r.perform(w, h, &settlement{kind: settleDiscard, attempt: a, reason: err})
	case ActionStop:
		r.fail(fmt.Errorf("keyseq: queue %q, key %q, message %q: retries are exhausted: %w", m.queue, h.key, h.msg.ID, err))
		return keyqueue.Stay()
	case ActionAuto, ActionDeadLetter:
		if m.deadLetterQueue(h.session.link) != "" {
			return r.perform(w, h, &settlement{kind: settleDeadLetter, attempt: a, reason: err})
		}
	}
	return r.hold(h, a, err)
}

// hold keeps the key waiting for a message that would be given up. It is said at the first such attempt and at every tenth.
func (r *run) hold(h *held, a *attempt, err error) keyqueue.Turn {
	m := r.m
	if over := h.failures() - 1 - max(m.cfg.Retry.MaxRetries, 0); over <= 0 || over%10 == 0 {
		m.log.Warn("a message that would be given up holds its key and is tried again: mend what fails, or set DeadLetterQueue or another OnExhausted",
			"queue", m.queue, "key", h.key, "message", h.msg.ID, "attempts", h.attempts(), "on_exhausted", m.cfg.Retry.OnExhausted.String(), "error", err)
	}
	past := *h.past
	past.undeliverable = verdictOf(err).kind == verdictDeadLetter
	m.d.Update(func() { h.past = &past })
	return r.retry(h, a, err, m.pause(m.cfg.Retry.Backoff, h.failures()))
}

// retry leaves the message where it is until its next attempt. While the run is draining it goes back instead.
func (r *run) retry(h *held, a *attempt, err error, pause time.Duration) keyqueue.Turn {
	m := r.m
	if r.draining.Load() {
		return keyqueue.Stay()
	}
	pause = max(pause, 0)
	m.log.Debug("attempt failed", "queue", m.queue, "key", h.key, "message", h.msg.ID, "attempt", a.Attempt, "retry_in", pause, "error", err)
	if m.observed {
		m.tell(func(e *Events) func(MessageEvent) { return e.Retrying }, MessageEvent{Delivery: &a.Delivery, Task: a.took, Next: time.Now().Add(pause), Err: err})
	}
	return keyqueue.Again(pause)
}

// gone ends the turn of a message whose link is lost: the broker has it back, or will have. The loss was served when it was noticed.
func (m *SequenceManager) gone(h *held) keyqueue.Turn {
	m.rememberUnsettled(h, h.pending, h.session.link.cause())
	if p := h.pending; p != nil && p.kind == settleCommit {
		m.onError(nil, p.attempt, fmt.Errorf("keyseq: queue %q, key %q: %w: %w", m.queue, h.key, jms.ErrRolledBack, h.session.link.cause()), true)
	}
	m.toldRolledBack(h, h.session.link.cause())
	return keyqueue.Done()
}

// onError calls the user's OnMessageError.
func (m *SequenceManager) onError(r *run, a *attempt, err error, performed bool) {
	values := a.ctx.base
	if r != nil {
		values = r.values
	}
	m.guard("OnMessageError", func() { m.listener.OnMessageError(values, &a.Delivery, err, performed) })
}

// rememberUnsettled keeps what is known of a message that leaves unsettled; s is what was to become of it, nil: nothing yet.
func (m *SequenceManager) rememberUnsettled(h *held, s *settlement, err error) *history {
	past := h.past
	if s != nil {
		past = h.unsettledOnce(err, s.kind == settleCommit)
	}
	m.memory.remember(m.stableID(h), past)
	return past
}

// stableID is the message's ID if it means something after a redelivery.
func (m *SequenceManager) stableID(h *held) string {
	if !h.session.link.caps.StableIDs {
		return ""
	}
	return h.msg.ID
}

// toldRolledBack tells that a message has left unsettled.
func (m *SequenceManager) toldRolledBack(h *held, err error) {
	m.counters.rolledBack.Add(1)
	if !m.observed {
		return
	}
	m.tell(func(e *Events) func(MessageEvent) { return e.RolledBack }, MessageEvent{Delivery: m.overDelivery(h), Err: err})
}

// overDelivery describes a message outside an attempt.
func (m *SequenceManager) overDelivery(h *held) *Delivery {
	return &Delivery{Message: h.msg, Queue: m.queue, Key: h.key, Attempt: h.attempts(), Epoch: h.session.link.epoch, ReceivedAt: h.receivedAt, over: true}
}

// doubtOf words a failed settlement for OnMessageError: rolled back if the broker said so, else unknown.
func doubtOf(err error) error {
	if errors.Is(err, jms.ErrCommitUnknown) || errors.Is(err, jms.ErrRolledBack) {
		return err
	}
	return fmt.Errorf("%w: %w", jms.ErrCommitUnknown, err)
}
