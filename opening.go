package keyseq

import (
	"context"
	"errors"
	"fmt"

	"github.com/keyseq/keyseq/jms"
)

// opener opens sessions while a link is served. Where they cost memory only, the reader opens one when it needs one. Where each costs a
// connection, opening takes longer than receiving, and a queue grouped by key needs hundreds: there a few goroutines open them, and the
// reader takes whatever comes first, a new session or one that was given back. They open ahead of it only while it runs out of sessions:
// see sessionPool.missing.
type opener struct {
	r      *run
	l      *link
	ctx    context.Context
	cancel context.CancelFunc
}

// openAtOnce is how many sessions are opened side by side, and how many may stand ready beyond what is used. Four open a thousand in a quarter of
// the time; many more would be the storm of connects that brokers are to be spared after a restart.
const openAtOnce = 4

// spareOf says how many sessions should stand ready: one for each so many in use, openAtOnce at most. So a slow queue gets none.
const spareOf = 4

// errNoSession says that the broker gives no more sessions now, and that reading goes on with those that are open.
var errNoSession = errors.New("keyseq: no session to be had")

func (r *run) startOpening(l *link) *opener {
	o := &opener{r: r, l: l}
	o.ctx, o.cancel = context.WithCancel(r.values)
	return o
}

// stop ends it. The reader has stopped. On a good link it returns when nothing is being opened any more, but for calls that are deaf; a lost one is
// to be closed at once, and closeLink waits.
func (o *opener) stop() {
	o.cancel()
	if !o.l.lost.Load() {
		o.l.pool.calls.Wait()
	}
}

// take gives the reader a session, the idle one that was used last if there is one.
func (o *opener) take(ctx context.Context) (*session, error) {
	p := &o.l.pool
	if s := p.take(); s != nil {
		return s, nil
	}
	if !o.l.caps.CheapSessions {
		return o.await(ctx)
	}
	js, err := o.open(ctx)
	switch {
	case err == nil:
		p.add()
		return &session{js, o.l}, nil
	case ctx.Err() != nil:
		return nil, err
	}
	return nil, o.refused(p.size(), err)
}

func (o *opener) open(ctx context.Context) (jms.Session, error) {
	m := o.r.m
	return bounded(ctx, m.cfg.CallTimeout, o.l.conn.OpenSession, func(late jms.Session) { m.closeLate("session", late) })
}

// await waits for the first session that comes.
func (o *opener) await(ctx context.Context) (*session, error) {
	p := &o.l.pool
	defer p.waited()
	for {
		s, start, err := p.ask(o.r.mostSessions(o.l))
		if s != nil || err != nil {
			return s, err
		}
		for range start {
			p.calls.Go(o.work)
		}
		select {
		case <-p.bell:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// work opens sessions as long as they are missing.
func (o *opener) work() {
	p := &o.l.pool
	for more := true; more; {
		js, err := o.open(o.ctx)
		var s *session
		switch {
		case err == nil && o.l.lost.Load(): // the closing of the link may not have seen it
			go o.r.m.closeLate("session", js)
			err = o.l.cause()
		case err == nil:
			s = &session{js, o.l}
		}
		var open int
		var refusal error
		more, open, refusal = p.opened(s, err, o.ctx.Err() != nil, o.r.mostSessions(o.l))
		if refusal == nil {
			continue
		}
		if err := o.refused(open, refusal); !p.tell(err) {
			o.r.m.log.Debug("a session could not be opened ahead", "queue", o.r.m.queue, "sessions", open, "error", err)
		}
	}
}

// refused handles a failed OpenSession, and says what to tell the reader if that needs one.
func (o *opener) refused(open int, err error) error {
	m := o.r.m
	switch {
	case errors.Is(err, jms.ErrConnectionLost):
		o.r.linkLost(o.l, err)
	case errors.Is(err, jms.ErrBusy) && open > 0 && o.r.limitSessions(open):
		// The broker gives no more: those that are open must do for a while.
		m.log.Warn("the broker gives no more sessions: reading with those that are open", "queue", m.queue, "sessions", open, "error", err)
		return errNoSession
	}
	return fmt.Errorf("keyseq: queue %q: open session: %w", m.queue, err)
}

// ask is the reader's, when it finds no session: one that has come meanwhile, or why none comes, or how many calls of work to start.
func (p *sessionPool) ask(most int) (s *session, start int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, err, p.failed = p.pop(), p.failed, nil
	if s != nil {
		return s, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	p.waiting = true
	start = p.missing(most)
	p.opening += start
	return nil, start, nil
}

// waited is the end of the reader's waiting.
func (p *sessionPool) waited() {
	p.mu.Lock()
	p.waiting, p.failed = false, nil
	p.mu.Unlock()
}

// missing is how many more sessions to open now: what the reader waits for and a few spare ones, never more than most in all. Only a reader
// that waits when nothing is being opened gets one at any rate, for its place in the window has no session: one may be in a call that does not
// return. The lock is held.
func (p *sessionPool) missing(most int) int {
	now := 0
	if p.waiting {
		now = 1
	}
	coming := len(p.idle) + p.opening
	spare := min((p.open-len(p.idle))/spareOf, openAtOnce)
	n := min(now+spare-coming, openAtOnce-p.opening, most-p.open-p.opening)
	if p.careful {
		n = min(n, 1-p.opening)
	}
	if coming == 0 {
		n = max(n, now)
	}
	return max(n, 0)
}

// opened takes the outcome of a call of OpenSession: more says to make another one. A refusal is told when no other call is under way that may still
// bring one, so that the number of sessions, which becomes the limit, is right; the loss of the connection at once.
func (p *sessionPool) opened(s *session, err error, over bool, most int) (more bool, open int, refusal error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.opening--
	switch {
	case s != nil:
		p.open++
		p.idle = append(p.idle, s)
		p.careful = p.refusal != nil
		p.ring()
		if more = !over && p.refusal == nil && p.missing(most) > 0; more {
			p.opening++
		}
	case !over:
		p.careful = true
		if p.refusal == nil || errors.Is(err, jms.ErrBusy) {
			p.refusal = err
		}
		if errors.Is(err, jms.ErrConnectionLost) {
			return false, p.open, err
		}
	}
	if p.opening == 0 {
		refusal, p.refusal = p.refusal, nil
	}
	return more, p.open, refusal
}

// tell says to the reader why no session comes; false if it does not wait.
func (p *sessionPool) tell(err error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting {
		p.failed = err
		p.ring()
	}
	return p.waiting
}
