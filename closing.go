package keyseq

import (
	"errors"
	"fmt"
	"time"

	"github.com/keyseq/keyseq/jms"
)

// errGiveBack is why a connection is closed whose broker gives back in no other way.
var errGiveBack = errors.New("keyseq: a message left unsettled: closing the connection gives back what is held, in order")

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
