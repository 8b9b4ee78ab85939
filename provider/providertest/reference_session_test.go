package providertest_test

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/keyseq/keyseq/jms"
)

type refSession struct {
	c      *refConn
	held   *refMessage
	closed bool
}

// end gives back what is held and closes; b.mu is held.
func (s *refSession) end() {
	s.giveBack()
	s.closed = true
	delete(s.c.sessions, s)
}

func (s *refSession) giveBack() {
	if s.held != nil {
		s.held.holder, s.held = nil, nil
		s.c.b.changed()
	}
}

func (s *refSession) Receive(ctx context.Context) (m *jms.Message, err error) {
	err = s.c.await(ctx, func() bool {
		q := s.c.q
		q.messages = slices.DeleteFunc(q.messages, func(m *refMessage) bool {
			return m.holder == nil && !m.Expiration.IsZero() && !time.Now().Before(m.Expiration)
		})
		i := slices.IndexFunc(q.messages, func(m *refMessage) bool { return m.holder == nil })
		if i < 0 {
			return false
		}
		s.held = q.messages[i]
		s.held.holder = s
		s.held.deliveries++
		copied := s.held.Message
		copied.Body, copied.Properties = bytes.Clone(copied.Body), maps.Clone(copied.Properties)
		copied.Redelivered = s.held.deliveries > 1
		if s.c.b.caps.DeliveryCount {
			copied.DeliveryCount = s.held.deliveries
		}
		m = &copied
		return true
	})
	return m, err
}

func (s *refSession) Commit(_ context.Context, out ...jms.Outgoing) error {
	s.c.b.mu.Lock()
	defer s.c.b.mu.Unlock()
	if err := s.c.alive(); err != nil {
		return err
	}
	if err := s.c.b.put(out); err != nil {
		return err
	}
	if s.held != nil {
		s.c.q.messages = slices.DeleteFunc(s.c.q.messages, func(m *refMessage) bool { return m == s.held })
		s.held = nil
	}
	return nil
}

func (s *refSession) Rollback(context.Context) error {
	s.c.b.mu.Lock()
	defer s.c.b.mu.Unlock()
	s.giveBack()
	return nil
}

func (s *refSession) Close(context.Context) error {
	s.c.b.mu.Lock()
	defer s.c.b.mu.Unlock()
	s.end()
	return nil
}
