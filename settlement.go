package keyseq

import (
	"errors"
	"fmt"
	"time"

	"github.com/keyseq/keyseq/internal/keyqueue"
	"github.com/keyseq/keyseq/jms"
)

// settlement removes a message from its queue, in the unit of work that received it.
type settlement struct {
	kind    settleKind
	attempt *attempt   // nil: the task never saw the message
	out     []Outgoing // what the attempt staged (settleCommit)
	reason  error      // why it is given up (the other kinds)
	tries   int        // how often it was tried
}

type settleKind int

const (
	settleCommit     settleKind = iota // the task is done
	settleDeadLetter                   // a copy goes to the dead-letter queue
	settleDiscard                      // it is dropped
)

func (k settleKind) String() string {
	return [...]string{"commit", "dead letter", "discard"}[k]
}

// perform does a settlement and decides what its outcome means for the key.
func (r *run) perform(w *worker, h *held, s *settlement) keyqueue.Turn {
	m, l := r.m, h.session.link
	if l.lost.Load() {
		return r.unsettled(w, h, s, l.cause())
	}
	out := s.out
	if s.kind == settleDeadLetter {
		out = []Outgoing{m.deadLetter(h, s)}
	}
	s.tries++
	ctx := w.Own.begin(r, callCommit)
	err := h.session.Commit(ctx, out...)
	w.Own.end()
	switch {
	case err == nil:
		return r.settled(w, h, s)
	case jms.EndsSession(err) || l.lost.Load():
		return r.unsettled(w, h, s, err)
	}
	return r.refused(w, h, s, err)
}

// settled is the good end.
func (r *run) settled(w *worker, h *held, s *settlement) keyqueue.Turn {
	m, l := r.m, h.session.link
	m.memory.forget(m.stableID(h))
	w.Exit = keyqueue.Done() // whatever an event func does to the goroutine
	l.pool.put(h.session)
	switch s.kind {
	case settleCommit:
		m.counters.committed.Add(1)
		if m.observed {
			m.tell(func(e *Events) func(MessageEvent) { return e.Committed }, MessageEvent{Delivery: &s.attempt.Delivery, Wait: s.attempt.started.Sub(h.receivedAt), Task: s.attempt.took})
		}
	case settleDeadLetter:
		m.counters.deadLettered.Add(1)
		m.log.Warn("message dead-lettered: mend the cause, then send it again from there", "queue", m.queue, "key", h.key, "message", h.msg.ID, "attempts", h.attempts(), "to", m.deadLetterQueue(l), "error", s.reason)
		m.tell(func(e *Events) func(MessageEvent) { return e.DeadLettered }, MessageEvent{Delivery: m.overDelivery(h), Err: s.reason})
	case settleDiscard:
		m.counters.discarded.Add(1)
		m.log.Warn("message discarded", "queue", m.queue, "key", h.key, "message", h.msg.ID, "attempts", h.attempts(), "error", s.reason)
		m.tell(func(e *Events) func(MessageEvent) { return e.Discarded }, MessageEvent{Delivery: m.overDelivery(h), Err: s.reason})
	}
	return keyqueue.Done()
}

// unsettled is the end where the message leaves without being settled, or nobody knows: only Close may follow on its session. Its key is
// blocked from this moment; the run gives back the rest of it (see giveback.go).
func (r *run) unsettled(w *worker, h *held, s *settlement, err error) keyqueue.Turn {
	m, l := r.m, h.session.link
	doubt := doubtOf(err)
	if l.lost.Load() && s.tries == 0 { // it was never sent
		doubt = fmt.Errorf("%w: %w", jms.ErrRolledBack, err)
	}
	past := m.rememberUnsettled(h, s, doubt)
	lost := !backAlready(err)
	if errors.Is(err, jms.ErrConnectionLost) {
		r.linkLost(l, err)
	} else if !l.lost.Load() {
		m.log.Warn("message left unsettled; what is held of its key goes back to the queue", "queue", m.queue, "key", h.key, "message", h.msg.ID, "settlement", s.kind.String(), "error", err)
	}
	turn := keyqueue.Done() // a zombie just goes
	if !l.lost.Load() {
		turn = keyqueue.Left()
		r.discard(h.session, lost, r.calm(past.unsettled))
	}
	w.Exit = turn
	if s.kind == settleCommit {
		m.onError(r, s.attempt, fmt.Errorf("keyseq: queue %q, key %q: %w", m.queue, h.key, doubt), true)
	}
	m.toldRolledBack(h, doubt)
	return turn
}

// backAlready says whether an error that ended a session means that its message is in the queue again: the broker has rolled back, and is not
// about to find out first that the session is lost.
func backAlready(err error) bool {
	return errors.Is(err, jms.ErrRolledBack) &&
		!errors.Is(err, jms.ErrCommitUnknown) && !errors.Is(err, jms.ErrSessionLost) && !errors.Is(err, jms.ErrConnectionLost)
}

// refused is a settlement that was not done and left the session as it was. Busy targets are asked again later, the task is not repeated for
// them. Any other refusal of a commit is a failed attempt: what the task wanted to send cannot be sent. A dead letter that is
// refused keeps its key.
func (r *run) refused(w *worker, h *held, s *settlement, err error) keyqueue.Turn {
	m := r.m
	if s.kind == settleCommit && !errors.Is(err, jms.ErrBusy) {
		return r.failed(w, h, s.attempt, fmt.Errorf("keyseq: queue %q, key %q, message %q: settlement refused: %w: %w", m.queue, h.key, h.msg.ID, jms.ErrRolledBack, err), true)
	}
	refusal, text := fmt.Errorf("%s refused: %w", s.kind, err), firstLine(err)
	m.d.Update(func() {
		h.pending = s
		past := history{first: time.Now()}
		if h.past != nil {
			past = *h.past
		}
		past.last, past.err, past.text, past.refused = time.Now(), refusal, text, true
		h.past = &past
	})
	if r.draining.Load() {
		return keyqueue.Stay()
	}
	pause := max(m.pause(m.cfg.Retry.Backoff, s.tries), minSettlePause)
	m.log.Warn("settlement refused; its key waits and it is tried again: see whether the target queue is full, inhibited or missing", "queue", m.queue, "key", h.key, "message", h.msg.ID, "settlement", s.kind.String(), "retry_in", pause, "error", err)
	if m.observed {
		m.tell(func(e *Events) func(MessageEvent) { return e.Retrying }, MessageEvent{Delivery: m.overDelivery(h), Next: time.Now().Add(pause), Err: err})
	}
	return keyqueue.Again(pause)
}

// minSettlePause keeps a policy without pauses from hammering a queue that is full.
const minSettlePause = 10 * time.Millisecond

// calm is how long to wait when the same thing ends sessions again and again: not at first, then as before a reconnect. A broker that rolls back whatever it
// is asked to commit (one whose log is full) would else be sent tasks, commits and, where a session is one, connects as fast as they go.
func (r *run) calm(inARow int) time.Duration {
	if inARow <= 1 {
		return 0
	}
	return r.m.pause(r.m.cfg.Reconnect, inARow-1)
}

// discard closes a session that can only be closed. If it was lost, its message may stay locked at the broker for the return delay,
// counted from when the close has returned: reading on waits for that, and for calm.
func (r *run) discard(s *session, lost bool, calm time.Duration) {
	s.link.pool.forget()
	waits := lost || calm > 0
	if waits {
		r.lossBegins()
	}
	go func() {
		err := boundedErr(r.values, r.m.cfg.CallTimeout, s.Close)
		if errors.Is(err, errOverrun) {
			// Nobody knows how long the broker will count it as alive: only the end of the connection settles that.
			r.linkLost(s.link, fmt.Errorf("%w: a broken session cannot be closed: %w", jms.ErrConnectionLost, err))
		} else if err != nil {
			r.m.log.Debug("closing a broken session", "queue", r.m.queue, "error", err)
		}
		if lost {
			calm = max(calm, s.link.returnDelay)
		}
		if waits {
			r.lossEnds(calm)
		}
	}()
}
