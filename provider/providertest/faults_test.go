package providertest_test

import (
	"context"
	"slices"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/providertest"
)

// fault is a provider that breaks one rule. It must fail exactly the case that is named.
type fault struct {
	name, fails string
	bend
	real   bool // runs in real time
	broker func(b *providertest.Broker)

	manager bool // of RunManager
	config  func(c *keyseq.Config)
}

// lateReturn is a loss whose messages come back after 3 s.
func lateReturn(holding int) func(c *bentConn) {
	return func(c *bentConn) {
		c.locked(func() {
			if c.holding() == holding {
				for s := range c.sessions {
					if s.held != nil {
						c.hide(s.held)
						s.held = nil
					}
				}
				time.AfterFunc(3*time.Second, func() { c.locked(c.unhide) })
			}
		})
		c.refConn.Break()
	}
}

// prefetch hides messages behind the first when exactly so many have been sent: most[7] of 7, say.
func prefetch(most map[int]int) func(ctx context.Context, s *bentSession) (*jms.Message, error) {
	return func(ctx context.Context, s *bentSession) (*jms.Message, error) {
		s.c.locked(func() {
			if q := s.refSession.c.q; len(q.messages) == s.c.b.serial && len(q.messages) > most[s.c.b.serial] {
				for _, m := range q.messages[1 : 1+most[s.c.b.serial]] {
					if m.holder == nil {
						s.c.hide(m)
					}
				}
			}
		})
		return s.refSession.Receive(ctx)
	}
}

func release(ctx context.Context, c *bentConn) error { c.locked(c.unhide); return c.refConn.Close(ctx) }

// changed is a fault in what is received.
func changed(change func(s *bentSession, m *jms.Message)) bend {
	return bend{receive: func(ctx context.Context, s *bentSession) (*jms.Message, error) {
		m, err := s.refSession.Receive(ctx)
		if err == nil {
			change(s, m)
		}
		return m, err
	}}
}

// never is a channel that nobody closes. It is made anew, because it may not leave its bubble.
func never() <-chan struct{} { return make(chan struct{}) }

func faults() []fault {
	return slices.Concat(faultsOfReceiving(), faultsOfSettling(), faultsOfEnding(), faultsOfDeclaring())
}
