package keyseq_test

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/keyseq/keyseq/jms"
)

// spy stands between the managers of a rig and the broker. It counts, and notes every breach of what package jms promises to a provider: never two
// Receives at once on a connection, no overlapping calls on a session, no Receive on a session that holds a message, nothing but
// Close after an error that ends a session. A rig reports the breaches at its end.
type spy struct {
	inner jms.ConnectionFactory

	mu       sync.Mutex
	sessions []*spiedSession
	breaches []string
	receives int // calls of Receive
	now      int // sessions open
	most     int // of them at once

	opening, mostOpening int // calls of OpenSession under way, and the most that ever were
}

func (s *spy) Connect(ctx context.Context, sub jms.Subscription) (jms.Connection, error) {
	conn, err := s.inner.Connect(ctx, sub)
	if err != nil {
		return nil, err
	}
	c := &spiedConnection{Connection: conn, spy: s}
	checker, _ := conn.(jms.QueueChecker)
	inquirer, inquires := conn.(jms.Inquirer)
	starter, _ := conn.(jms.CleanStarter)
	elector, elects := conn.(jms.Elector)
	predecessor, _ := conn.(jms.Predecessor)
	switch { // the combinations that package memory has
	case elects:
		return struct {
			jms.Connection
			jms.QueueChecker
			jms.Inquirer
			jms.CleanStarter
			jms.Elector
			jms.Predecessor
		}{c, checker, inquirer, starter, elector, predecessor}, nil
	case inquires:
		return struct {
			jms.Connection
			jms.QueueChecker
			jms.Inquirer
			jms.CleanStarter
		}{c, checker, inquirer, starter}, nil
	}
	return struct {
		jms.Connection
		jms.QueueChecker
	}{c, checker}, nil
}

// opened is how many sessions were opened since the rig was made, open how many are.
func (s *spy) opened() int { s.mu.Lock(); defer s.mu.Unlock(); return len(s.sessions) }

// received is how often Receive was called.
func (s *spy) received() int { s.mu.Lock(); defer s.mu.Unlock(); return s.receives }

func (s *spy) open() int { s.mu.Lock(); defer s.mu.Unlock(); return s.now }

// holding lists what sessions hold that were not closed.
func (s *spy) holding() (bodies []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.sessions {
		if !x.closed && !x.conn.closed && x.held != "" {
			bodies = append(bodies, x.held)
		}
	}
	slices.Sort(bodies)
	return bodies
}

// breach is called with the lock held.
func (s *spy) breach(format string, args ...any) {
	s.breaches = append(s.breaches, fmt.Sprintf(format, args...))
}

type spiedConnection struct {
	jms.Connection
	spy       *spy
	receiving int
	open      int // sessions
	closed    bool
}

func (c *spiedConnection) OpenSession(ctx context.Context) (jms.Session, error) {
	c.spy.mu.Lock()
	c.spy.opening++
	c.spy.mostOpening = max(c.spy.mostOpening, c.spy.opening)
	c.spy.mu.Unlock()
	inner, err := c.Connection.OpenSession(ctx)
	c.spy.mu.Lock()
	defer c.spy.mu.Unlock()
	c.spy.opening--
	if err != nil {
		return nil, err
	}
	s := &spiedSession{inner: inner, conn: c, number: len(c.spy.sessions), late: c.closed}
	c.spy.sessions = append(c.spy.sessions, s)
	if !c.closed {
		c.open++
		c.spy.now++
		c.spy.most = max(c.spy.most, c.spy.now)
	}
	return s, nil
}

func (c *spiedConnection) Close(ctx context.Context) error {
	err := c.Connection.Close(ctx)
	c.spy.mu.Lock()
	c.closed = true
	c.spy.now -= c.open
	c.open = 0
	c.spy.mu.Unlock()
	return err
}

// spiedSession's fields are guarded by the spy's lock.
type spiedSession struct {
	inner   jms.Session
	conn    *spiedConnection
	number  int
	calling string
	ended   error  // the error after which only Close may follow
	held    string // body of the message it holds
	closed  bool
	late    bool     // it came when its connection was closed already
	history []string // bodies committed
}

// begin notes a call and what is wrong with it.
func (s *spiedSession) begin(call string) {
	s.conn.spy.mu.Lock()
	defer s.conn.spy.mu.Unlock()
	spy := s.conn.spy
	if s.calling != "" {
		spy.breach("session %d: %s during %s", s.number, call, s.calling)
	}
	if s.ended != nil || s.closed {
		spy.breach("session %d: %s after %v (closed: %t)", s.number, call, s.ended, s.closed)
	}
	s.calling = call
	if call == "Receive" {
		spy.receives++
		s.conn.receiving++
		if s.conn.receiving > 1 {
			spy.breach("%d Receives at once on a connection", s.conn.receiving)
		}
		if s.held != "" {
			spy.breach("session %d: Receive while it holds %s", s.number, s.held)
		}
	}
}

// end notes its outcome; done says that it did what it should.
func (s *spiedSession) end(err error, done func()) {
	s.conn.spy.mu.Lock()
	defer s.conn.spy.mu.Unlock()
	if s.calling == "Receive" {
		s.conn.receiving--
	}
	s.calling = ""
	if jms.EndsSession(err) {
		s.ended = err
	}
	if err == nil {
		done()
	}
}

func (s *spiedSession) Receive(ctx context.Context) (*jms.Message, error) {
	s.begin("Receive")
	m, err := s.inner.Receive(ctx)
	s.end(err, func() {
		if m != nil {
			s.held = string(m.Body)
		}
	})
	return m, err
}

func (s *spiedSession) Commit(ctx context.Context, out ...jms.Outgoing) error {
	s.begin("Commit")
	err := s.inner.Commit(ctx, out...)
	s.end(err, func() { s.history, s.held = append(s.history, s.held), "" })
	return err
}

func (s *spiedSession) Rollback(ctx context.Context) error {
	s.begin("Rollback")
	err := s.inner.Rollback(ctx)
	s.end(err, func() { s.held = "" })
	return err
}

func (s *spiedSession) Close(ctx context.Context) error {
	err := s.inner.Close(ctx)
	s.conn.spy.mu.Lock()
	defer s.conn.spy.mu.Unlock()
	if !s.closed && !s.conn.closed {
		s.conn.open--
		s.conn.spy.now--
	}
	s.closed, s.held = true, ""
	return err
}
