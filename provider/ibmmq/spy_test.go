package ibmmq_test

import (
	"context"
	"sync/atomic"

	"github.com/keyseq/keyseq/jms"
)

// atMost tells how many of something there ever were at once.
type atMost struct{ now, most atomic.Int64 }

func (a *atMost) enter() {
	n := a.now.Add(1)
	for m := a.most.Load(); n > m && !a.most.CompareAndSwap(m, n); m = a.most.Load() {
	}
}

func (a *atMost) leave() { a.now.Add(-1) }

// spy sees the calls that a manager makes to the provider. It is a factory in front of the provider's.
type spy struct {
	jms.ConnectionFactory
	receives, holding, sessions atMost
	opened                      atomic.Int64
	commit                      func(m *jms.Message) // before a commit; nil: nothing
}

func (s *spy) Connect(ctx context.Context, sub jms.Subscription) (jms.Connection, error) {
	c, err := s.ConnectionFactory.Connect(ctx, sub)
	if err != nil {
		return nil, err
	}
	return spied{c.(everything), s}, nil
}

type spied struct {
	everything
	spy *spy
}

func (c spied) OpenSession(ctx context.Context) (jms.Session, error) {
	s, err := c.everything.OpenSession(ctx)
	if err != nil {
		return nil, err
	}
	c.spy.opened.Add(1)
	c.spy.sessions.enter()
	return &spiedSession{Session: s, spy: c.spy}, nil
}

type spiedSession struct {
	jms.Session
	spy    *spy
	closed atomic.Bool
	held   atomic.Pointer[jms.Message]
}

func (s *spiedSession) Receive(ctx context.Context) (*jms.Message, error) {
	s.spy.receives.enter()
	defer s.spy.receives.leave()
	m, err := s.Session.Receive(ctx)
	if m != nil {
		s.held.Store(m)
		s.spy.holding.enter()
	}
	return m, err
}

// settled notes that nothing is held any more.
func (s *spiedSession) settled() {
	if s.held.Swap(nil) != nil {
		s.spy.holding.leave()
	}
}

func (s *spiedSession) Commit(ctx context.Context, out ...jms.Outgoing) error {
	if s.spy.commit != nil {
		s.spy.commit(s.held.Load())
	}
	err := s.Session.Commit(ctx, out...)
	if err == nil || jms.EndsSession(err) {
		s.settled()
	}
	return err
}

func (s *spiedSession) Rollback(ctx context.Context) error {
	err := s.Session.Rollback(ctx)
	if err == nil || jms.EndsSession(err) {
		s.settled()
	}
	return err
}

func (s *spiedSession) Close(ctx context.Context) error {
	err := s.Session.Close(ctx)
	if !s.closed.Swap(true) {
		s.spy.sessions.leave()
	}
	s.settled()
	return err
}
