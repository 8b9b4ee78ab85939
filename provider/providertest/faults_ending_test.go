package providertest_test

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/keyseq/keyseq/jms"
)

func faultsOfEnding() []fault {
	return []fault{
		{name: "close of a session keeps its message", fails: "rule08/SessionGivesBack", bend: bend{
			closeSession: func(ctx context.Context, s *bentSession) error {
				if s.holds() != nil {
					return nil
				}
				return s.refSession.Close(ctx)
			}}},
		{name: "close of a connection gives back to the tail", fails: "rule08/ConnectionGivesBack", bend: bend{
			closeConn: func(ctx context.Context, c *bentConn) error {
				c.locked(func() {
					if c.holding() >= 4 && c.rolls == 0 && c.commits == 0 {
						q := c.q
						q.messages = append(q.messages[1:], q.messages[0])
					}
				})
				return c.refConn.Close(ctx)
			}}},
		{name: "the second close fails", fails: "rule08/Twice", bend: bend{
			closeConn: func(ctx context.Context, c *bentConn) error {
				c.b.mu.Lock()
				again := c.refConn.closed
				c.b.mu.Unlock()
				if again {
					return errors.New("bent: already closed")
				}
				return c.refConn.Close(ctx)
			}}},
		{name: "close during calls commits what is held", fails: "rule08/DuringCalls", bend: bend{
			commit: slowCommit,
			closeConn: func(ctx context.Context, c *bentConn) error {
				c.locked(func() {
					if c.opened < 8 {
						return
					}
					for s := range c.sessions {
						if s.held != nil {
							c.q.messages = slices.DeleteFunc(c.q.messages, func(m *refMessage) bool { return m == s.held })
						}
					}
				})
				return c.refConn.Close(ctx)
			}}},
		{name: "a commit hangs when close comes", fails: "rule08/DuringCalls", bend: bend{
			commit: func(ctx context.Context, s *bentSession, out []jms.Outgoing) error {
				err := slowCommit(ctx, s, out)
				if errors.Is(err, jms.ErrConnectionLost) && s.c.refConn.Err() == nil {
					<-ctx.Done()
				}
				return err
			}}},
		{name: "a goroutine is left", fails: "rule08/NothingLeftRunning", real: true, bend: bend{
			connect: func(ctx context.Context, b *refBroker, sub jms.Subscription) (jms.Connection, error) {
				go func() { <-never() }()
				return b.Connect(ctx, sub)
			}}},
		{name: "a receive keeps the others out", fails: "rule09/CommitWhileReceiving", bend: bend{
			receive: func(ctx context.Context, s *bentSession) (*jms.Message, error) {
				defer s.c.exclusive()()
				return s.refSession.Receive(ctx)
			},
			commit: func(ctx context.Context, s *bentSession, out []jms.Outgoing) error {
				defer s.c.exclusive()()
				return s.refSession.Commit(ctx, out...)
			}}},
		{name: "with many sessions some sends are doubled", fails: "rule09/FiftySessions", bend: bend{
			commit: func(ctx context.Context, s *bentSession, out []jms.Outgoing) error {
				s.c.b.mu.Lock()
				if s.c.opened > 20 && s.c.commits%100 == 0 {
					out = append(out, out...)
				}
				s.c.b.mu.Unlock()
				return s.refSession.Commit(ctx, out...)
			}}},
		{name: "sessions opened side by side are one", fails: "rule09/OpeningSideBySide", bend: bend{
			openSession: func(ctx context.Context, c *bentConn) (jms.Session, error) {
				c.b.mu.Lock()
				s := c.beingOpened
				c.b.mu.Unlock()
				if s != nil {
					return s, nil
				}
				n, err := c.refConn.OpenSession(ctx)
				if err != nil {
					return nil, err
				}
				c.locked(func() { c.beingOpened = n.(*refSession) })
				time.Sleep(time.Millisecond)
				c.locked(func() { c.beingOpened = nil })
				return n, nil
			}}},
		{name: "one session is opened at a time, others are refused", fails: "rule09/OpeningSideBySide", bend: bend{
			openSession: func(ctx context.Context, c *bentConn) (jms.Session, error) {
				c.b.mu.Lock()
				busy := c.openingNow
				c.openingNow = true
				c.b.mu.Unlock()
				if busy {
					return nil, errors.New("bent: one at a time")
				}
				defer c.locked(func() { c.openingNow = false })
				time.Sleep(time.Millisecond)
				return c.refConn.OpenSession(ctx)
			}}},
		{name: "Err tells of a loss that was not", fails: "rule10/OpenWhileConnected",
			bend: bend{err: func(*bentConn) error { return jms.ErrConnectionLost }}},
		{name: "nobody hears of a loss", fails: "rule10/ClosedAtLoss", bend: bend{done: func(c *bentConn) <-chan struct{} {
			if !c.single {
				return never()
			}
			return c.refConn.Done()
		}}},
		{name: "a loss does not end a receive", fails: "rule10/EndsReceive", bend: bend{
			receive: func(ctx context.Context, s *bentSession) (*jms.Message, error) {
				start := time.Now()
				m, err := s.refSession.Receive(ctx)
				if errors.Is(err, jms.ErrConnectionLost) && s.c.refConn.Err() != nil && time.Since(start) > 0 {
					<-ctx.Done()
				}
				return m, err
			}}},
		{name: "nobody hears that the role is lost", fails: "rule10/ClosedAtLossOfRole", bend: bend{done: func(c *bentConn) <-chan struct{} {
			if c.single {
				return never()
			}
			return c.refConn.Done()
		}}},
	}
}

func slowCommit(ctx context.Context, s *bentSession, out []jms.Outgoing) error {
	time.Sleep(time.Millisecond)
	return s.refSession.Commit(ctx, out...)
}

// exclusive lets one call at a time pass. It is no mutex, because those stop virtual time.
func (c *bentConn) exclusive() (leave func()) {
	c.b.mu.Lock()
	if c.oneAtATime == nil {
		c.oneAtATime = make(chan struct{}, 1)
	}
	one := c.oneAtATime
	c.b.mu.Unlock()
	one <- struct{}{}
	return func() { <-one }
}
