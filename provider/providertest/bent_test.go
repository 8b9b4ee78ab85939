package providertest_test

import (
	"context"

	"github.com/keyseq/keyseq/jms"
)

// bend is one fault of a provider: what is set replaces the reference provider's way of doing it.
type bend struct {
	connect      func(ctx context.Context, b *refBroker, sub jms.Subscription) (jms.Connection, error)
	capabilities func(caps *jms.Capabilities)
	done         func(c *bentConn) <-chan struct{}
	err          func(c *bentConn) error
	cut          func(c *bentConn)
	closeConn    func(ctx context.Context, c *bentConn) error
	awaitActive  func(ctx context.Context, c *bentConn) error
	cleanStart   func(c *bentConn) (bool, error)
	backout      func(c *bentConn) (string, int, error)
	checkQueue   func(c *bentConn, queue string) error
	openSession  func(ctx context.Context, c *bentConn) (jms.Session, error)
	receive      func(ctx context.Context, s *bentSession) (*jms.Message, error)
	commit       func(ctx context.Context, s *bentSession, out []jms.Outgoing) error
	rollback     func(ctx context.Context, s *bentSession) error
	closeSession func(ctx context.Context, s *bentSession) error
}

type bentFactory struct {
	*refBroker
	bend
}

func (f bentFactory) Connect(ctx context.Context, sub jms.Subscription) (jms.Connection, error) {
	connect := (*refBroker).Connect
	if f.connect != nil {
		connect = func(b *refBroker, ctx context.Context, sub jms.Subscription) (jms.Connection, error) {
			return f.connect(ctx, b, sub)
		}
	}
	conn, err := connect(f.refBroker, ctx, sub)
	if err != nil {
		return nil, err
	}
	return &bentConn{refConn: conn.(*refConn), bend: f.bend, gone: make(chan struct{})}, nil
}

// bentConn has what faults need to remember of a connection.
type bentConn struct {
	*refConn
	bend       bend
	gone       chan struct{} // closed by the first Close
	opened     int
	commits    int
	rolls      int
	closed     bool
	ghosts     refSession // holds what nobody can see
	oneAtATime chan struct{}

	openingNow  bool
	beingOpened *refSession
}

func (c *bentConn) Capabilities() jms.Capabilities {
	caps := c.refConn.Capabilities()
	if c.bend.capabilities != nil {
		c.bend.capabilities(&caps)
	}
	return caps
}

func (c *bentConn) Done() <-chan struct{} {
	if c.bend.done != nil {
		return c.bend.done(c)
	}
	return c.refConn.Done()
}

func (c *bentConn) Err() error {
	if c.bend.err != nil {
		return c.bend.err(c)
	}
	return c.refConn.Err()
}

func (c *bentConn) Break() {
	if c.bend.cut != nil {
		c.bend.cut(c)
		return
	}
	c.refConn.Break()
}

func (c *bentConn) Close(ctx context.Context) error {
	c.b.mu.Lock()
	first := !c.closed
	c.closed = true
	c.b.mu.Unlock()
	if first {
		close(c.gone)
	}
	if c.bend.closeConn != nil {
		return c.bend.closeConn(ctx, c)
	}
	return c.refConn.Close(ctx)
}

func (c *bentConn) AwaitActive(ctx context.Context) error {
	if c.bend.awaitActive != nil {
		return c.bend.awaitActive(ctx, c)
	}
	return c.refConn.AwaitActive(ctx)
}

func (c *bentConn) CleanStart(ctx context.Context) (bool, error) {
	if c.bend.cleanStart != nil {
		return c.bend.cleanStart(c)
	}
	return c.refConn.CleanStart(ctx)
}

func (c *bentConn) Backout(ctx context.Context) (string, int, error) {
	if c.bend.backout != nil {
		return c.bend.backout(c)
	}
	return c.refConn.Backout(ctx)
}

func (c *bentConn) CheckQueue(ctx context.Context, queue string) error {
	if c.bend.checkQueue != nil {
		return c.bend.checkQueue(c, queue)
	}
	return c.refConn.CheckQueue(ctx, queue)
}

func (c *bentConn) OpenSession(ctx context.Context) (jms.Session, error) {
	c.b.mu.Lock()
	c.opened++
	c.b.mu.Unlock()
	open := c.refConn.OpenSession
	if c.bend.openSession != nil {
		open = func(ctx context.Context) (jms.Session, error) { return c.bend.openSession(ctx, c) }
	}
	s, err := open(ctx)
	if err != nil {
		return nil, err
	}
	return &bentSession{refSession: s.(*refSession), c: c}, nil
}

// bentSession has what faults need to remember of a session.
type bentSession struct {
	*refSession
	c       *bentConn
	buf     []byte
	commits int
	last    *refMessage // the last message committed
	stop    func() bool // ends the watch over a context that was kept
	kept    context.Context
}

func (s *bentSession) Receive(ctx context.Context) (*jms.Message, error) {
	if s.c.bend.receive != nil {
		return s.c.bend.receive(ctx, s)
	}
	return s.refSession.Receive(ctx)
}

func (s *bentSession) Commit(ctx context.Context, out ...jms.Outgoing) error {
	s.c.b.mu.Lock()
	s.commits++
	s.c.commits++
	s.c.b.mu.Unlock()
	if s.c.bend.commit != nil {
		return s.c.bend.commit(ctx, s, out)
	}
	return s.refSession.Commit(ctx, out...)
}

func (s *bentSession) Rollback(ctx context.Context) error {
	s.c.b.mu.Lock()
	s.c.rolls++
	s.c.b.mu.Unlock()
	if s.c.bend.rollback != nil {
		return s.c.bend.rollback(ctx, s)
	}
	return s.refSession.Rollback(ctx)
}

func (s *bentSession) Close(ctx context.Context) error {
	if s.c.bend.closeSession != nil {
		return s.c.bend.closeSession(ctx, s)
	}
	return s.refSession.Close(ctx)
}

// holds gives what the session holds.
func (s *bentSession) holds() *refMessage {
	s.c.b.mu.Lock()
	defer s.c.b.mu.Unlock()
	return s.held
}

// locked runs f with the broker's mutex held and wakes everybody afterwards.
func (c *bentConn) locked(f func()) {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	f()
	c.b.changed()
}

// holding counts what the sessions of the connection hold; the broker's mutex is held.
func (c *bentConn) holding() (n int) {
	for s := range c.sessions {
		if s.held != nil {
			n++
		}
	}
	return n
}

// hide makes a message invisible; the broker's mutex is held.
func (c *bentConn) hide(m *refMessage) { m.holder = &c.ghosts }

// unhide gives back what is hidden; the broker's mutex is held.
func (c *bentConn) unhide() {
	for _, m := range c.q.messages {
		if m.holder == &c.ghosts {
			m.holder = nil
		}
	}
}
