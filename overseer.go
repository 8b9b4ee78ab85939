package keyseq

import (
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
		lastLook := time.Now()
		for {
			select {
			case <-quit:
				return
			case now := <-tick.C:
				r.freeStuckWorkers(now)
				if now.Sub(lastLook) >= time.Second {
					lastLook = now
					r.lookForBlocked(now)
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

// stuck tells of a call that has overrun its time.
func (r *run) stuck(key, call string) {
	m := r.m
	m.log.Error("a call to the broker does not return; its key waits for it, its worker does not", "queue", m.queue, "key", key, "call", call, "call_timeout", m.cfg.CallTimeout)
	report, ok := m.Explain(key)
	if !ok {
		report = KeyReport{Key: key}
	}
	report.Reason = call + " does not return: " + report.Reason
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

// lookForBlocked tells when nothing can move: the window is full and no key can use a worker, or all workers sit in old tasks
// while keys are ready.
func (r *run) lookForBlocked(now time.Time) {
	m := r.m
	s := m.d.Stats()
	windowFull := s.Full && s.Running < m.cfg.Workers && s.Ready == 0 && s.Held >= s.Limits.Items && s.Paused+s.Blocked > 0
	workersOld := false
	if s.Running >= m.cfg.Workers && s.Ready > 0 {
		workersOld = true
		m.d.Workers(func(w *worker, _ keyView, _ uint64) {
			a := w.Own.attempt.Load()
			workersOld = workersOld && a != nil && now.Sub(a.started) >= m.oldTask()
		})
	}
	if !windowFull && !workersOld {
		return
	}
	what := "messages of waiting keys fill the window while workers are idle"
	if workersOld {
		what = "all workers sit in old tasks while keys wait"
	}
	reports := m.blocked(now)
	keys := make([]string, 0, len(reports))
	for _, k := range reports {
		keys = append(keys, k.Key)
	}
	m.log.Warn(what, "queue", m.queue, "in_flight", s.Held, "max_in_flight", s.Limits.Items, "keys", keys)
	for i := range m.cfg.Events {
		if f := m.cfg.Events[i].Blocked; f != nil {
			m.rareCallback(func() { f(reports) })
		}
	}
}

// sessionsAgain is how long a limit of sessions that the broker has named is believed.
const sessionsAgain = time.Minute

// limitSessions reads on with as many messages in flight as there are sessions.
func (r *run) limitSessions(open int) {
	r.mu.Lock()
	r.few, r.fewAt = open, time.Now()
	l := r.reading
	r.mu.Unlock()
	if l != nil {
		r.m.d.SetLimits(r.limits(l))
	}
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
