package keyseq

import (
	"errors"
	"fmt"
	"time"
)

// Live says whether the process should be left alone: nil, or why a restart may help. A manager is not live when its run has failed, and
// when a call to the broker that everything waits for has not returned for a long time. Being connected is not asked for: a restart mends no
// broker. Nor are busy or failing keys. It may be called from anywhere, for instance from an HTTP probe.
func (m *SequenceManager) Live() error {
	m.mu.Lock()
	state, err := m.state, m.runErr
	m.mu.Unlock()
	if state == StateFailed {
		return fmt.Errorf("keyseq: queue %q: the run has failed: %w", m.queue, err)
	}
	r := m.current.Load()
	if r == nil || state != StateActive && state != StateUnconfirmed {
		return nil
	}
	return r.moving(time.Now())
}

// Ready says whether the instance does its part: nil when it reads, or stands by for another instance; otherwise what it waits for. It may be
// called from anywhere.
func (m *SequenceManager) Ready() error {
	switch state := m.State(); state {
	case StateStandby, StateUnconfirmed, StateActive:
		return nil
	case StateStopped:
		return fmt.Errorf("keyseq: queue %q: not started", m.queue)
	case StateFailed:
		return m.Live()
	default:
		return fmt.Errorf("keyseq: queue %q: %v", m.queue, state)
	}
}

// motionless is for how many CallTimeouts the reader may have a place and a session to read with and yet be stuck outside of Receive.
const motionless = 4

var errMotionless = errors.New("reading does not move: a call to the broker has not returned")

// moving says whether supervise comes round: it is rung every second, and every wait of its own is bounded by CallTimeout or DrainTimeout.
func (r *run) moving(now time.Time) error {
	m := r.m
	last := time.Unix(0, r.lastRound.Load())
	limit := motionless*m.cfg.CallTimeout + m.cfg.DrainTimeout
	if now.Sub(last) > limit {
		return fmt.Errorf("keyseq: queue %q: %w for %v", m.queue, errMotionless, now.Sub(last).Round(time.Second))
	}
	return nil
}
