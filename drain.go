package keyseq

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/keyseq/keyseq/jms"
)

// giveUp prepares to close a link that still works: what runs may settle, for DrainTimeout at most. Where that is the only way to give
// back, nothing more starts; where the broker is about to stop, what is held still does.
func (r *run) giveUp(l *link, why error) error {
	m := r.m
	finishHeld := !errors.Is(why, errGiveBack)
	if !finishHeld {
		m.d.Halt()
	}
	m.log.Info("giving up the connection in order", "queue", m.queue, "reason", why)
	limit := time.NewTimer(m.cfg.DrainTimeout)
	defer limit.Stop()
	for r.want.Load() == wishRead && !l.lost.Load() {
		s := m.d.Stats()
		if s.Running == 0 && s.Detached == 0 && (!finishHeld || s.Ready == 0) {
			break
		}
		select {
		case <-m.d.Quiet():
		case <-r.bell:
		case <-limit.C:
			return why
		}
	}
	return why
}

// dropLink ends a link and everything it holds: its sessions are closed at once, those of running tasks too, what does not run is forgotten, and
// comes again. What still runs is a zombie: it keeps its place until it ends, then it just goes.
func (r *run) dropLink(l *link, why error) {
	if l == nil {
		return
	}
	m := r.m
	lost := !l.lose(why, m.d.Halt)
	m.d.Halt() // again, if it was lost before: serve may have resumed at that moment
	m.cancelAttempts(l, fmt.Errorf("keyseq: queue %q: connection closed: %w", m.queue, why))
	if p, ok := l.conn.(jms.Predecessor); ok {
		if s := m.d.Stats(); s.Running > 0 || s.Detached > 0 {
			p.EndsInDisorder() // a standby has to wait for them
		}
	}
	r.lossBegins()
	err := m.closeLink(l)
	delay := l.returnDelay
	if !lost && err == nil {
		delay = 0 // closed in order: everything is back
	}
	if err != nil {
		m.log.Debug("closing a connection", "queue", m.queue, "error", err)
	}
	r.leaving = nil
	for _, h := range m.d.DropAll() {
		m.rareCallback(func() { m.gone(&h) })
	}
	r.lossEnds(delay)
	if time.Since(l.since) >= settledAfter || l.served.Load() && !lost {
		r.attempts = 0 // the next try is made at once; a link that breaks as soon as it stands must not make a storm
	}
}

// settledAfter is how long a link must have lived for the next try to connect to be made without a pause.
const settledAfter = 10 * time.Second

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

// runningKeys are those that a worker has, in a task or in a call.
func (r *run) runningKeys() (keys []string) {
	r.m.d.Workers(func(_ *worker, v keyView, _ uint64) { keys = append(keys, v.Name) })
	return keys
}

// incomplete notes that the end was not orderly.
func (r *run) incomplete(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.undone = err
}

func (r *run) stuckError() error {
	return fmt.Errorf("keyseq: queue %q: %w: calls to the broker do not return; what becomes of the messages of these keys is not known, they may come again: %s",
		r.m.queue, ErrDrainTimeout, named(r.runningKeys()))
}

func drainError(queue string, keys []string) error {
	if len(keys) == 0 {
		return fmt.Errorf("keyseq: queue %q: %w: what the broker may still hold was waited for", queue, ErrDrainTimeout)
	}
	return fmt.Errorf("keyseq: queue %q: %w: tasks of these keys were running and were cancelled: %s", queue, ErrDrainTimeout, named(keys))
}

// mostNamed bounds the keys that an error names.
const mostNamed = 20

func named(keys []string) string {
	slices.Sort(keys)
	more := ""
	if len(keys) > mostNamed {
		more = fmt.Sprintf(" and %d more", len(keys)-mostNamed)
		keys = keys[:mostNamed]
	}
	for i, k := range keys {
		keys[i] = fmt.Sprintf("%q", k)
	}
	return strings.Join(keys, ", ") + more
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

// keep leaves a link open for the next Start, if its idle sessions hide no messages and it carries no role.
func (r *run) keep(l *link) bool {
	m := r.m
	if !l.caps.RollbackInPlace || l.caps.Push || m.cfg.SingleActiveConsumer || l.lost.Load() {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept = l
	return true
}
