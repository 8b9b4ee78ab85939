package memory

import (
	"context"
	"fmt"
	"time"

	"github.com/keyseq/keyseq/jms"
)

func (s *session) Receive(ctx context.Context) (*jms.Message, error) {
	if s.c.b.hook.Load() == nil {
		return s.receive(ctx)
	}
	var m *jms.Message
	call := s.call(CallReceive)
	err := s.c.b.hooked(ctx, call, func() (err error) {
		m, err = s.receive(ctx)
		call.Message = m
		return err
	}, s.comeTrue)
	if err != nil {
		return nil, err
	}
	return m, nil
}

func (s *session) receive(ctx context.Context) (*jms.Message, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c := s.c
	b, q := c.b, c.q
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := s.reach(ctx); err != nil {
		return nil, err
	}
	switch {
	case s.held != nil || s.undone:
		return nil, fmt.Errorf("memory: queue %q: the session holds a message; commit it or roll it back before the next Receive", q.Name)
	case b.quiescing:
		return nil, b.quiesceError()
	case q.noGet:
		return nil, q.inhibited()
	}
	q.counters.maxReceives = max(q.counters.maxReceives, c.waiters.n+1)
	if e := c.takeNow(); e != nil {
		s.hold(e)
		return s.received(), nil
	}
	s.wait()
	b.mu.Unlock()
	s.listen(ctx)
	b.mu.Lock()
	return s.outcome(ctx)
}

// takeNow returns a message if there is one for this connection.
func (c *conn) takeNow() *entry {
	if c.prefetch > 0 {
		return c.takeAhead()
	}
	if !c.mayTake() {
		return nil
	}
	return c.q.take()
}

// listen waits for an answer until the context ends; where calls are deaf, until the end of the slice in which it has ended. Nothing
// ticks meanwhile, so that a bubble in which everybody waits for ever is seen as that.
func (s *session) listen(ctx context.Context) {
	slice := s.c.b.profile.Deaf
	var start time.Time
	if slice > 0 {
		start = time.Now()
	}
	select {
	case <-s.wake:
		return
	case <-ctx.Done():
	}
	if slice <= 0 {
		return
	}
	begun := time.Since(start) % slice
	if begun == 0 {
		return
	}
	end := time.NewTimer(slice - begun)
	defer end.Stop()
	select {
	case <-s.wake:
	case <-end.C:
	}
}

// outcome ends the waiting of the client. A message that is there is returned, also when the context has ended.
func (s *session) outcome(ctx context.Context) (*jms.Message, error) {
	c := s.c
	answered := !s.listening
	if answered {
		select {
		case <-s.wake: // the answer came together with the end of the context
		default:
		}
		if err := s.refused; err != nil {
			s.refused = nil
			return nil, err
		}
	} else {
		s.hangUp()
	}
	if c.notice != nil && !(answered && s.held != nil) && c.prefetch == 0 {
		// The broker may give, or have given, a message to the dead link: "nothing is held" would be a lie.
		c.tell(fmt.Errorf("memory: queue %q: no answer from the broker: %w", c.q.Name, jms.ErrConnectionLost))
	}
	if err := s.usable(); err != nil {
		return nil, err
	}
	if !answered {
		s.unwait()
		return nil, ctx.Err()
	}
	if s.held == nil { // taken back before its client heard of it
		s.end(s.rolledBack())
		return nil, s.err
	}
	return s.received(), nil
}

// received returns the held message as the client sees it.
func (s *session) received() *jms.Message {
	e := s.held
	p := &s.c.b.profile
	e.q.counters.received++
	m := &e.msg
	if e.sent > 1 || e.marked { // an earlier copy may be in somebody's hands
		again := e.msg
		again.Redelivered = true
		m = &again
		e.q.counters.redelivered++
	}
	if !p.NoDeliveryCount {
		m.DeliveryCount = e.sent
	}
	s.msg = m
	return m
}
