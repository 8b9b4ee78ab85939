package keyseq

import (
	"errors"
	"fmt"
	"time"

	"github.com/keyseq/keyseq/jms"
)

// drain brings a run to its end as wished: Stop finishes what was received, Shutdown gives back what does not run. A link that is not kept for
// the next Start is closed last, and with it goes the role of the active instance.
func (r *run) drain(l *link) {
	m := r.m
	m.setState(StateDraining, r.err())
	r.draining.Store(true)
	if l == nil {
		r.waitForZombies(nil)
		return
	}
	r.settleAll(l)
	if m.cfg.SingleActiveConsumer {
		r.waitReadable(l)
	}
	if r.want.Load() == wishStop && r.keep(l) {
		return
	}
	r.dropLink(l, errEnded)
	r.waitForZombies(l)
}

var errEnded = errors.New("keyseq: the run has ended")

// settleAll returns when nothing runs any more and everything is settled, given back, or can only be given back by closing the link.
func (r *run) settleAll(l *link) {
	m := r.m
	aborted := false
	var stuck time.Time // since when there is nothing but calls that have overrun CallTimeout
	for !l.lost.Load() {
		r.collect()
		wish := r.want.Load()
		r.leaving = append(r.leaving, m.d.BlockWhere(func(v keyView) bool {
			return wish >= wishShutdown && !v.Running || v.Paused || wish >= wishShutdown && v.Second != nil
		})...)
		if l.caps.RollbackInPlace {
			r.giveBack()
		}
		m.d.Resume() // what is not blocked may have been halted
		if wish == wishAbort && !aborted {
			aborted = true
			r.abort(l)
		}
		s := m.d.Stats()
		if aborted && s.Running == 0 && s.Detached > 0 {
			return // calls that do not return: if anything ends them, it is the closing of the link
		}
		idle := s.Running == 0 && s.Ready == 0 && s.Paused == 0 && !r.more()
		// A key of which something was lost on the way back needs a second pass, to be released: the deadline for it outlives the run.
		if idle && s.Detached == 0 && (s.Held == 0 && len(r.leaving) == 0 || !l.caps.RollbackInPlace) {
			return
		}
		switch {
		case !idle || s.Detached == 0:
			stuck = time.Time{}
		case stuck.IsZero():
			stuck = time.Now()
		case time.Since(stuck) >= m.cfg.DrainTimeout:
			r.incomplete(r.stuckError())
			r.linkLost(l, fmt.Errorf("%w: a commit has not returned within CallTimeout and DrainTimeout", jms.ErrConnectionLost))
			return
		}
		select {
		case <-m.d.Quiet():
		case <-r.bell:
		}
	}
}

// more takes over the keys that turns have blocked meanwhile; true if there are any to give back.
func (r *run) more() bool {
	before := len(r.leaving)
	r.collect()
	return len(r.leaving) > before
}

// abort cancels what runs. It is noted for who waits for the end.
func (r *run) abort(l *link) {
	m := r.m
	if keys := r.runningKeys(); len(keys) > 0 {
		r.incomplete(drainError(m.queue, keys))
	}
	m.cancelAttempts(l, fmt.Errorf("keyseq: queue %q: %w", m.queue, ErrDrainTimeout))
}

// waitReadable waits until everything lost is back in the queue, before another instance may read it.
func (r *run) waitReadable(l *link) {
	for !l.lost.Load() {
		ok, wait := r.m.readable()
		if ok {
			return
		}
		r.wait(wait, nil)
	}
}

// waitForZombies waits for tasks whose link is gone: while one runs, its key must not be joined by another run. A call that does not return although its
// link is closed is waited for as well, but not by who has called Stop.
func (r *run) waitForZombies(l *link) {
	m := r.m
	aborted := false
	var stuck time.Time // since when there is nothing but such calls
	for {
		s := m.d.Stats()
		if s.Running == 0 && s.Detached == 0 && s.Paused == 0 && s.Ready == 0 {
			return
		}
		if s.Running == 0 && s.Detached == 0 {
			for _, h := range m.d.DropAll() {
				m.rareCallback(func() { m.gone(&h) })
			}
			continue
		}
		if r.want.Load() == wishAbort && !aborted {
			aborted = true
			r.abort(l)
		}
		switch {
		case s.Running > 0:
			stuck = time.Time{}
		case stuck.IsZero():
			stuck = time.Now()
		case time.Since(stuck) >= m.cfg.CallTimeout:
			r.stallOnce.Do(func() {
				r.incomplete(r.stuckError())
				close(r.stalled)
			})
		}
		select {
		case <-m.d.Quiet():
		case <-r.bell:
		}
	}
}
