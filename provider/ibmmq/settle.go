package ibmmq

import (
	"context"
	"errors"
	"fmt"

	"github.com/keyseq/keyseq/jms"
)

// Commit implements jms.Session: puts and the get are one unit of work.
func (s *session) Commit(ctx context.Context, out ...jms.Outgoing) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	if err := s.ready(ctx); err != nil {
		return err
	}
	for i := range out {
		if err := s.checkOutgoing(&out[i]); err != nil {
			return err
		}
	}
	if err := s.c.checkTargets(ctx, out); err != nil {
		return err
	}
	for i := range out {
		if e := s.send(&out[i]); e != nil {
			err := s.sendFailed(e, i > 0 || s.tainted)
			if errors.Is(err, jms.ErrRolledBack) && e.onConnect() == jms.ErrConfig {
				s.c.refused.Store(out[i].Queue, refusal{e, len(out[i].Body), out[i].NonPersistent})
			}
			return err
		}
	}
	if !s.held && len(out) == 0 {
		return nil
	}
	ex := s.handle.ctx.Commit()
	if ex == nil {
		s.held = false
		return nil
	}
	return s.commitFailed(failure("MQCMIT", s.c.sub.Queue, ex))
}

// sendFailed sorts a failed put. Once anything was put, "nothing was done" can only be had by rolling all of it back.
func (s *session) sendFailed(e *ReasonError, partly bool) error {
	switch e.class() {
	case classConnection, classStopping, classUnknown:
		return s.end(s.c.lost(e))
	case classBackedOut:
		partly = true
	}
	if partly {
		if back := s.back(); back != nil {
			return back
		}
		return s.end(wrap(jms.ErrRolledBack, s.c.sub.Queue, fmt.Errorf("the unit of work was rolled back because a message could not be sent: %w", e)))
	}
	switch e.class() {
	case classBusy, classQuiescing, classHandle:
		return wrap(jms.ErrBusy, s.c.sub.Queue, e)
	}
	return wrap(jms.ErrConfig, s.c.sub.Queue, e)
}

// commitFailed sorts a failed MQCMIT: but for two codes its outcome is not known.
func (s *session) commitFailed(e *ReasonError) error {
	s.held = false
	switch {
	case e.class() == classBackedOut:
		if back := s.back(); back != nil { // ends the state in which every call gives 2003
			return back
		}
		return s.end(wrap(jms.ErrRolledBack, s.c.sub.Queue, e))
	case e.Code == 2018: // a handle that does not exist: the call went nowhere
		return s.end(s.c.lost(e))
	case e.class() == classStopping:
		s.c.lose(e)
	}
	return s.end(wrap(jms.ErrCommitUnknown, s.c.sub.Queue, e))
}

// Rollback implements jms.Session.
func (s *session) Rollback(ctx context.Context) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	if !s.held {
		return nil
	}
	return s.back()
}

// back rolls the unit of work back. An error ends the session.
func (s *session) back() error {
	ex := s.handle.ctx.Rollback()
	if ex != nil && failure("MQBACK", "", ex).class() == classBackedOut { // it is done, and was told so
		ex = s.handle.ctx.Rollback()
	}
	if ex == nil {
		s.held, s.tainted = false, false
		return nil
	}
	return s.end(s.c.lost(failure("MQBACK", s.c.sub.Queue, ex)))
}
