package keyseq

import (
	"time"

	"github.com/keyseq/keyseq/internal/keyqueue"
)

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
	lim := keyqueue.Limits{Items: r.most(l), Bytes: m.cfg.MaxInFlightBytes}
	if !l.caps.CheapSessions {
		lim.Fresh = m.cfg.Workers + m.slack
	}
	return lim
}

// most is how many messages may be in flight on a link. The lock is held.
func (r *run) most(l *link) int {
	if r.few > 0 {
		return min(l.maxInFlight, r.few)
	}
	return l.maxInFlight
}

// mostSessions is most: no message in flight needs more than one.
func (r *run) mostSessions(l *link) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.most(l)
}
