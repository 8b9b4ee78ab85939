package keyseq

import (
	"math"
	"slices"
	"time"
)

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
