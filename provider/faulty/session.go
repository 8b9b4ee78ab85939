package faulty

import (
	"context"
	"errors"
	"fmt"

	"github.com/keyseq/keyseq/jms"
)

// session wraps a session. Its calls never overlap, so it needs no lock.
type session struct {
	c     *conn
	inner jms.Session
	held  *jms.Message // for events
	err   error        // it was lost
}

func (s *session) usable() error {
	if err := s.c.usable(); err != nil {
		return err
	}
	return s.err
}

func (s *session) event(call Call) Event {
	e := s.c.event(call)
	e.Message = s.held
	return e
}

// call is a call with the fault that it meets.
func (s *session) call(ctx context.Context, call Call, effect func() error) error {
	if err := s.usable(); err != nil {
		return err
	}
	f := s.c.f.match(s.event(call))
	if f == nil {
		return effect()
	}
	if f.after {
		if err := effect(); err != nil {
			return err
		}
		if call == Receive {
			f.event.Message = s.held
		}
	}
	if !f.happen(s.c.over) {
		err := s.c.closedErr(call)
		if f.after && call == Commit {
			err = fmt.Errorf("%w: %w", jms.ErrCommitUnknown, err)
		}
		if f.err != nil {
			f.record(err, NothingLost)
		}
		return err
	}
	switch {
	case f.err != nil:
		return s.fail(ctx, f)
	case f.after:
		return nil
	}
	if err := s.usable(); err != nil { // lost while it waited
		return err
	}
	return effect()
}

// fail makes the error of a fault true.
func (s *session) fail(ctx context.Context, f *fault) error {
	err := f.err
	if f.after && f.call == Commit && !errors.Is(err, jms.ErrCommitUnknown) {
		err = fmt.Errorf("%w: %w", jms.ErrCommitUnknown, err)
	}
	taken := f.after && f.call == Receive
	switch {
	case errors.Is(err, jms.ErrConnectionLost):
		f.record(err, ConnectionLost)
		return join(err, s.c.lose(ctx, err))
	case (jms.EndsSession(err) || taken) && !s.c.caps.RollbackInPlace:
		err = fmt.Errorf("%w: %w", err, jms.ErrConnectionLost) // nothing is given back alone
		f.record(err, ConnectionLost)
		return join(err, s.c.lose(ctx, err))
	case jms.EndsSession(err):
		f.record(err, SessionLost)
		s.err = err
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
		defer cancel()
		return join(err, s.inner.Close(ctx))
	}
	f.record(err, NothingLost)
	if taken { // as if nothing had been done
		s.held = nil
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
		defer cancel()
		return join(err, s.inner.Rollback(ctx))
	}
	return err
}

func (s *session) Receive(ctx context.Context) (*jms.Message, error) {
	var m *jms.Message
	err := s.call(ctx, Receive, func() (err error) {
		m, err = s.inner.Receive(ctx)
		s.held = m
		return err
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

func (s *session) Commit(ctx context.Context, out ...jms.Outgoing) error {
	return s.call(ctx, Commit, func() error {
		err := s.inner.Commit(ctx, out...)
		if err == nil {
			s.held = nil
		}
		return err
	})
}

func (s *session) Rollback(ctx context.Context) error {
	return s.call(ctx, Rollback, func() error {
		err := s.inner.Rollback(ctx)
		if err == nil {
			s.held = nil
		}
		return err
	})
}

func (s *session) Close(ctx context.Context) error {
	f := s.c.f.match(s.event(CloseSession))
	if f != nil && !f.after {
		f.happen(s.c.over)
	}
	err := s.inner.Close(ctx)
	if f != nil && f.after {
		f.happen(s.c.over)
	}
	if f != nil && f.err != nil {
		f.record(f.err, NothingLost)
		return join(f.err, err)
	}
	return err
}
