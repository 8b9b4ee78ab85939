package keyseq

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Live says whether the process should be left alone: nil, or why a restart may help. It may be called from anywhere, for instance from an HTTP
// probe.
//
// A manager is not live when its run has failed. While it reads it is not when its supervising goroutine, which wakes every second, has not come round
// for four times CallTimeout and DrainTimeout (150 s with the defaults): something that bounds every wait of its own is waiting for ever, which may be an
// event func of yours. Nor is it when the reader has been in the KeyExtractor, or in an event func, for four times CallTimeout. A Receive that does
// not return is no reason: its connection is given up after CallTimeout and made anew. A run that cannot end because of a call, or after a failure a task, that
// does not return is not live from when Stop or Run have said so: Start returns ErrStopping until it has. Being connected is not asked for, since a
// restart mends no broker; nor are slow or failing keys, since others go on. How much waits at the broker is not known here: watch
// the depth of the queue there.
func (m *SequenceManager) Live() error {
	m.mu.Lock()
	state, err := m.state, m.runErr
	m.mu.Unlock()
	if state == StateFailed {
		return fmt.Errorf("keyseq: queue %q: the run has failed: %w", m.queue, err)
	}
	r := m.current.Load()
	if r != nil {
		if err := r.lingers(); err != nil {
			return err
		}
	}
	if r == nil || state != StateActive && state != StateUnconfirmed {
		return nil
	}
	return r.moving(time.Now())
}

// Ready says whether the instance does its part: nil when it reads, or stands by for another instance; otherwise what it waits for, with the error
// of the last try to connect. It may be called from anywhere.
func (m *SequenceManager) Ready() error {
	m.mu.Lock()
	state, why := m.state, m.stateErr
	m.mu.Unlock()
	switch state {
	case StateStandby, StateUnconfirmed, StateActive:
		return nil
	case StateFailed:
		return m.Live()
	}
	if why != nil {
		return fmt.Errorf("keyseq: queue %q: %v: %w", m.queue, state, why)
	}
	return fmt.Errorf("keyseq: queue %q: %v", m.queue, state)
}

var errLingers = errors.New("the run has ended but for a call to the broker, or a task, that does not return")

// lingers says that a run cannot end, as Stop and Run have told their callers.
func (r *run) lingers() error {
	select {
	case <-r.stalled:
	case <-r.overdue:
	default:
		return nil
	}
	return fmt.Errorf("keyseq: queue %q: %w: %w", r.m.queue, errLingers, cmp.Or(r.result(), ErrDrainTimeout))
}

// motionless is for how many CallTimeouts supervise may stay away.
const motionless = 4

var errMotionless = errors.New("reading does not move: a call to the broker or an event func has not returned")

// moving says whether supervise comes round: it is rung every second, and every wait of its own is bounded by CallTimeout or DrainTimeout.
func (r *run) moving(now time.Time) error {
	m := r.m
	last := time.Unix(0, r.lastRound.Load())
	limit := motionless*m.cfg.CallTimeout + m.cfg.DrainTimeout
	if now.Sub(last) > limit {
		return fmt.Errorf("keyseq: queue %q: %w for %v", m.queue, errMotionless, now.Sub(last).Round(time.Second))
	}
	if since := m.extracting.Load(); since != 0 && now.Sub(time.Unix(0, since)) > motionless*m.cfg.CallTimeout {
		return fmt.Errorf("keyseq: queue %q: reading does not move: the KeyExtractor, or an event func for Received, has not returned for %v", m.queue, now.Sub(time.Unix(0, since)).Round(time.Second))
	}
	return nil
}
