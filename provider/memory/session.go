package memory

import (
	"context"
	"fmt"

	"github.com/keyseq/keyseq/jms"
)

// session is a unit of work. All is guarded by the broker's mutex, but wake.
type session struct {
	c    *conn
	held *entry // what the broker has given to it; the client may not know
	msg  *jms.Message

	err    error // why every call fails: this session alone is lost
	cut    bool  // no call reaches the broker
	gone   bool  // the broker has forgotten it
	undone bool  // the broker has taken back what it held, and the client does not know

	waiting    bool // registered at the broker as one that waits
	listening  bool // the client waits for the answer
	prev, next *session
	refused    error         // the answer: no
	wake       chan struct{} // the answer is there
}

// leave is the broker's end of a session; what it holds is the caller's concern.
func (s *session) leave() {
	if s.gone {
		return
	}
	s.gone = true
	s.unwait()
	s.held = nil
	delete(s.c.sessions, s)
	s.c.b.sessions--
}

// usable returns the error with which a call fails before it reaches the broker.
func (s *session) usable() error {
	if err := s.c.usable(); err != nil {
		return err
	}
	if s.err == nil && s.gone {
		return fmt.Errorf("memory: queue %q: the session is closed: %w", s.c.q.Name, jms.ErrSessionLost)
	}
	return s.err
}

// reach is conn.reach for a session.
func (s *session) reach(ctx context.Context) error {
	if err := s.c.reach(ctx); err != nil {
		return err
	}
	return s.usable()
}

func (s *session) call(kind CallKind) *Call {
	c := s.c.call(kind)
	c.Message = s.msg
	return c
}

func (s *session) Commit(ctx context.Context, out ...jms.Outgoing) error {
	if s.c.b.hook.Load() == nil {
		return s.commit(ctx, out)
	}
	return s.c.b.hooked(ctx, s.call(CallCommit), func() error { return s.commit(ctx, out) }, s.comeTrue)
}

func (s *session) commit(ctx context.Context, out []jms.Outgoing) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b := s.c.b
	es, err := b.prepare(out)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.c.notice != nil && b.profile.Prefetch > 0 && len(out) == 0 {
		s.ack() // written into a dead link, which nobody notices
		return nil
	}
	inTheDark := s.c.notice != nil
	if err := s.reach(ctx); err != nil {
		if inTheDark {
			err = fmt.Errorf("%w: %w", jms.ErrCommitUnknown, err)
		}
		return err
	}
	if s.undone {
		s.end(s.rolledBack())
		return s.err
	}
	if len(out) > 0 {
		if err := b.admit(es, out); err != nil {
			return err
		}
	}
	s.ack()
	if len(es) > 0 {
		b.place(es)
	}
	return nil
}

// ack settles what is held.
func (s *session) ack() {
	e := s.held
	if e == nil {
		return
	}
	s.held, s.msg = nil, nil
	if s.c.prefetch > 0 {
		s.c.ack(e)
		return
	}
	e.q.settle(e)
}

func (s *session) rolledBack() error {
	return fmt.Errorf("memory: queue %q: the broker has rolled the message back: %w", s.c.q.Name, jms.ErrRolledBack)
}

// end loses this session for the client, at the next call or with the one that reports err.
func (s *session) end(err error) {
	if s.err == nil {
		s.err = err
	}
}

func (s *session) Rollback(ctx context.Context) error {
	return s.c.b.hooked(ctx, s.call(CallRollback), func() error { return s.rollback(ctx) }, s.comeTrue)
}

func (s *session) rollback(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b := s.c.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := s.reach(ctx); err != nil {
		return err
	}
	s.undone = false
	return s.giveBack()
}

// giveBack gives back what is held, in the way of the profile.
func (s *session) giveBack() error {
	e := s.held
	s.msg = nil
	if e == nil {
		return nil
	}
	switch s.c.b.profile.Rollback {
	case RollbackLosesConnection:
		err := fmt.Errorf("memory: queue %q: this broker gives back by closing the connection only, so it was closed: %w", s.c.q.Name, jms.ErrConnectionLost)
		s.c.lose(Loss{Broker: AtOnce}, err)
		return err
	case RollbackToTail:
		s.held = nil
		s.c.returned()
		e.q.giveBackToTail(e)
	default:
		s.held = nil
		s.c.returned()
		e.q.giveBack(e)
	}
	s.c.q.dispatch()
	return nil
}

func (s *session) Close(ctx context.Context) error {
	return s.c.b.hooked(ctx, s.call(CallCloseSession), s.close, nil)
}

func (s *session) close() error {
	b := s.c.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.gone {
		return nil
	}
	if s.listening {
		s.refuse(fmt.Errorf("memory: queue %q: the session was closed: %w", s.c.q.Name, jms.ErrSessionLost))
	}
	if s.cut || s.c.cut {
		if s.err == nil {
			s.err = fmt.Errorf("memory: queue %q: the session is closed: %w", s.c.q.Name, jms.ErrSessionLost)
		}
		return nil // the broker finds out by itself
	}
	err := s.giveBack()
	s.leave()
	return err
}
