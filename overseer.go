package keyseq

import (
	"math"
	"slices"
	"time"

	"github.com/keyseq/keyseq/internal/keyqueue"
)

// oversee looks at the run from time to time, for what nobody would notice otherwise: calls that do not return, keys that fill the window, workers
// that sit in old tasks. It returns a function that ends it.
func (r *run) oversee() (stop func()) {
	m := r.m
	tick := time.NewTicker(min(time.Second, max(m.cfg.CallTimeout/4, time.Millisecond)))
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		defer tick.Stop()
		var lastLook time.Time
		var lastSaid time.Time // that keys are blocked
		for {
			select {
			case <-quit:
				return
			case now := <-tick.C:
				r.freeStuckWorkers(now)
				if now.Sub(lastLook) >= time.Second {
					lastLook = now
					if say := now.Sub(lastSaid) >= sayAgain; !r.lookForBlocked(now, say) {
						lastSaid = time.Time{}
					} else if say {
						lastSaid = now
					}
					r.tryMoreSessions(now)
				}
				r.ring() // supervise looks for messages held too long
			}
		}
	}()
	return func() { close(quit); <-done }
}

// freeStuckWorkers lets other workers take the place of those whose settlement has overrun CallTimeout. The message stays the head of its key until
// the call returns.
func (r *run) freeStuckWorkers(now time.Time) {
	type stuckCall struct {
		w    *worker
		turn uint64
		key  string
	}
	var calls []stuckCall
	limit := r.m.cfg.CallTimeout
	r.m.d.Workers(func(w *worker, v keyView, turn uint64) {
		o := &w.Own
		n := o.calls.Load()
		if n%2 == 0 || n != o.seen {
			o.seen, o.seenSince = n, now
			return
		}
		if now.Sub(o.seenSince) >= limit {
			o.seenSince = now.Add(100 * 365 * 24 * time.Hour) // said once
			calls = append(calls, stuckCall{w, turn, v.Name})
		}
	})
	for _, c := range calls {
		if r.m.d.Detach(c.w, c.turn) {
			r.stuck(c.key, callCommit)
		}
	}
}

// stuck tells of a call that has overrun its time. A Receive belongs to no key.
func (r *run) stuck(key, call string) {
	m := r.m
	if call == callReceive {
		m.log.Error("a receive does not return: its connection is closed; look at the broker and the network", "queue", m.queue, "call", call, "call_timeout", m.cfg.CallTimeout)
		m.toldStuck(KeyReport{Reason: call + " does not return: its connection is closed"})
		return
	}
	report, ok := m.Explain(key)
	if !ok {
		report = KeyReport{Key: key}
	}
	m.log.Error("a call to the broker does not return; its key waits for it, its worker does not: look at the broker and the network",
		"queue", m.queue, "key", key, "message", report.MessageID, "call", call, "call_timeout", m.cfg.CallTimeout)
	report.Reason = call + " does not return: " + report.Reason
	m.toldStuck(report)
}

func (m *SequenceManager) toldStuck(report KeyReport) {
	for i := range m.cfg.Events {
		if f := m.cfg.Events[i].Stuck; f != nil {
			m.rareCallback(func() { f(report) })
		}
	}
}

// oldTask is how long a task may run before it counts as old in the look for blocked workers.
func (m *SequenceManager) oldTask() time.Duration {
	const usual = 30 * time.Second
	if m.cfg.TaskTimeout > 0 {
		return min(usual, m.cfg.TaskTimeout/2)
	}
	return usual
}

// sayAgain is how often the log says that keys are blocked, while they are; the event comes every second.
const sayAgain = time.Minute

// slowTask is how long a task must have run for its key to count as one that fills the window, and not just moves.
const slowTask = time.Second

// ages says how long the tasks that run have run. One that repeats a settlement counts as one that has just begun.
func (m *SequenceManager) ages(now time.Time) (oldest, youngest time.Duration) {
	youngest = math.MaxInt64
	m.d.Workers(func(w *worker, _ keyView, _ uint64) {
		age := time.Duration(0)
		if a := w.Own.attempt.Load(); a != nil {
			age = now.Sub(a.started)
		}
		oldest, youngest = max(oldest, age), min(youngest, age)
	})
	return oldest, youngest
}

// lookForBlocked tells when nothing can move, and returns true: the window is full and no key can use a worker, or all workers sit in old tasks
// while keys are ready.
func (r *run) lookForBlocked(now time.Time, say bool) bool {
	m := r.m
	s := m.d.Stats()
	full := (s.Held >= s.Limits.Items || s.Bytes >= s.Limits.Bytes) && s.Ready == 0
	oldest, youngest := m.ages(now)
	windowFull := full && s.Running < m.cfg.Workers && (s.Paused+s.Blocked+s.Detached > 0 || oldest >= slowTask)
	workersOld := s.Running >= m.cfg.Workers && (s.Ready > 0 || full) && youngest >= m.oldTask()
	if !windowFull && !workersOld {
		return false
	}
	reports, _ := m.blocked(now)
	if say {
		keys := make([]string, 0, len(reports))
		for _, k := range reports {
			keys = append(keys, k.Key)
		}
		what := "messages of waiting keys fill the window while workers are idle: mend what these keys wait for, or raise MaxInFlight or MaxInFlightBytes"
		if workersOld {
			what = "all workers sit in old tasks while keys wait: look at what the tasks of these keys wait for, or raise Workers"
		}
		m.log.Warn(what, "queue", m.queue, "in_flight", s.Held, "max_in_flight", s.Limits.Items, "bytes", s.Bytes, "keys", keys)
	}
	for i := range m.cfg.Events {
		if f := m.cfg.Events[i].Blocked; f != nil {
			m.rareCallback(func() { f(slices.Clone(reports)) })
		}
	}
	return true
}

// sessionsAgain is how long a limit of sessions that the broker has named is believed.
const sessionsAgain = time.Minute

// limitSessions reads on with as many messages in flight as there are sessions. False: so it was already, and yet a session is missing, because
// one is in a call that does not return.
func (r *run) limitSessions(open int) bool {
	r.mu.Lock()
	known := r.few == open
	r.few, r.fewAt = open, time.Now()
	l := r.reading
	r.mu.Unlock()
	if !known && l != nil {
		r.m.d.SetLimits(r.limits(l))
	}
	return !known
}

func (r *run) tryMoreSessions(now time.Time) {
	r.mu.Lock()
	again := r.few > 0 && now.Sub(r.fewAt) >= sessionsAgain
	if again {
		r.few = 0
	}
	l := r.reading
	r.mu.Unlock()
	if again && l != nil {
		r.m.d.SetLimits(r.limits(l))
	}
}

// limits are those of the window on a link. Where a session costs a connection, it reads no further than the workers need.
func (r *run) limits(l *link) keyqueue.Limits {
	m := r.m
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reading = l
	lim := keyqueue.Limits{Items: l.maxInFlight, Bytes: m.cfg.MaxInFlightBytes}
	if r.few > 0 {
		lim.Items = min(lim.Items, r.few)
	}
	if !l.caps.CheapSessions {
		lim.Fresh = m.cfg.Workers + m.slack
	}
	return lim
}
