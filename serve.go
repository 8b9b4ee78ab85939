package keyseq

import (
	"errors"
	"fmt"
	"time"

	"github.com/keyseq/keyseq/jms"
)

// serve reads from a link until it is lost, has to be given up, or an end is wanted. Reading has stopped when it returns.
func (r *run) serve(l *link) error {
	m := r.m
	opening := r.startOpening(l)
	defer opening.stop()
	var rd *reader
	// After a lost connection or a lost Receive, and when an earlier run has left a deadline, nothing of the queue is read before it.
	wholeQueue := true
	var receives receiveWatch
	for {
		r.lastRound.Store(time.Now().UnixNano())
		r.collect()
		r.sweepOld(l.maxHold)
		readable, wait := m.readable()
		wholeQueue = wholeQueue && !readable
		switch {
		case rd != nil && rd.ended():
			if errors.Is(rd.why, jms.ErrConfig) {
				return rd.why
			}
			if errors.Is(rd.why, jms.ErrQuiescing) {
				return r.giveUp(l, rd.why)
			}
			wholeQueue = wholeQueue || rd.lost
			rd = nil
			continue
		case l.lost.Load():
			r.stopReading(l, rd)
			return l.cause()
		case r.want.Load() != wishRead:
			r.stopReading(l, rd)
			return nil
		case len(r.leaving) > 0 && !l.caps.RollbackInPlace:
			r.stopReading(l, rd)
			return r.giveUp(l, errGiveBack)
		case len(r.leaving) > 0 && (readable || wholeQueue):
			if rd == nil {
				r.giveBack()
				continue
			}
			// While reading comes to a stop a key may be lost that has to wait for its deadline: look again before anything is given back.
			if !r.stopReading(l, rd) {
				rd = nil
			}
			continue // with what it brought, or lost
		case rd == nil && !wholeQueue:
			m.setState(r.readingState(l), nil) // before the first message can confirm it
			m.d.Resume()
			rd = r.startReader(l, opening)
			receives = receiveWatch{}
		case rd != nil && receives.overdue(rd.calls.Load(), m.cfg.CallTimeout):
			// A Receive may wait as long as it likes, but not be dead: it must be able to end.
			if !r.stopReading(l, rd) {
				rd = nil
			}
			continue // with what it brought, or lost
		}
		r.wait(wait, rd)
	}
}

// receiveWatch notices a Receive that has been under way for long. It is shown the reader's count of calls, which is odd during one.
type receiveWatch struct {
	calls uint64
	since time.Time // when that was first seen
}

func (w *receiveWatch) overdue(calls uint64, limit time.Duration) bool {
	if calls != w.calls || calls%2 == 0 {
		w.calls, w.since = calls, time.Now()
		return false
	}
	return time.Since(w.since) >= limit
}

// stopReading returns when no Receive is outstanding. One that does not return takes the link with it: nothing can be read beside it. False: it
// did not return.
func (r *run) stopReading(l *link, rd *reader) bool {
	if rd == nil || rd.stop() {
		return true
	}
	r.stuck("", "receive")
	rd.abandon()
	r.linkLost(l, fmt.Errorf("%w: receive did not return within CallTimeout", jms.ErrConnectionLost))
	return false
}

func (rd *reader) ended() bool {
	select {
	case <-rd.done:
		return true
	default:
		return false
	}
}

// wait waits for news, at most for a deadline if there is one.
func (r *run) wait(deadline time.Duration, rd *reader) {
	var timer <-chan time.Time
	if deadline > 0 {
		t := time.NewTimer(deadline)
		defer t.Stop()
		timer = t.C
	}
	var done <-chan struct{}
	if rd != nil {
		done = rd.done
	}
	select {
	case <-r.bell:
	case <-r.m.d.Left():
	case <-timer:
	case <-done:
	}
}

// readingState is what State says while a link is read.
func (r *run) readingState(l *link) State {
	if _, elected := l.conn.(jms.Elector); !elected && r.m.cfg.SingleActiveConsumer && !l.served.Load() {
		return StateUnconfirmed
	}
	return StateActive
}
