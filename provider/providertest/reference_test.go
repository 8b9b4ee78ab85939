package providertest_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/providertest"
)

// refBroker is a small correct provider with every power. The broken ones in this package are wrapped around it.
type refBroker struct {
	mu     sync.Mutex
	wake   chan struct{} // closed and replaced at every change
	caps   jms.Capabilities
	queues map[string]*refQueue
	serial int
}

type refQueue struct {
	messages []*refMessage
	line     []*refConn // who wants to be the single active consumer, the active one first
	full     bool
}

type refMessage struct {
	jms.Message
	holder     *refSession
	deliveries int
}

func newRefBroker(caps jms.Capabilities, queues ...string) *refBroker {
	b := &refBroker{wake: make(chan struct{}), caps: caps, queues: map[string]*refQueue{}}
	for _, q := range queues {
		b.queues[q] = &refQueue{}
	}
	return b
}

// changed wakes everybody who waits; b.mu is held.
func (b *refBroker) changed() {
	close(b.wake)
	b.wake = make(chan struct{})
}

func (b *refBroker) Send(_ context.Context, queue string, out ...jms.Outgoing) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range out {
		out[i].Queue = queue
	}
	return b.put(out)
}

// put checks everything first, so that nothing is half sent; b.mu is held.
func (b *refBroker) put(out []jms.Outgoing) error {
	for _, o := range out {
		q := b.queues[o.Queue]
		if q == nil {
			return fmt.Errorf("reference: no queue %q: %w", o.Queue, jms.ErrConfig)
		}
		if q.full {
			return fmt.Errorf("reference: queue %q is full: %w", o.Queue, jms.ErrBusy)
		}
	}
	for _, o := range out {
		b.serial++
		m := &refMessage{Message: jms.Message{
			ID: fmt.Sprintf("ref-%d", b.serial), CorrelationID: o.CorrelationID, GroupID: o.GroupID, ReplyTo: o.ReplyTo,
			Timestamp: time.Now(), Priority: 4, Persistent: !o.NonPersistent, Text: o.Text, Body: bytes.Clone(o.Body),
			Properties: maps.Clone(o.Properties),
		}}
		for name, v := range m.Properties {
			if i, ok := v.(int); ok {
				m.Properties[name] = int64(i)
			}
		}
		if o.Priority != nil {
			m.Priority = *o.Priority
		}
		if o.TTL > 0 {
			m.Expiration = time.Now().Add(o.TTL)
		}
		q := b.queues[o.Queue]
		q.messages = append(q.messages, m)
	}
	b.changed()
	return nil
}

func (b *refBroker) Unsettled(_ context.Context, queue string) (n int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.queues[queue].messages {
		if m.holder != nil {
			n++
		}
	}
	return n, nil
}

func (b *refBroker) Fill(queue string) (undo func()) {
	set := func(full bool) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.queues[queue].full = full
	}
	set(true)
	return func() { set(false) }
}

func (b *refBroker) Connect(ctx context.Context, sub jms.Subscription) (jms.Connection, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.queues[sub.Queue]
	if q == nil {
		return nil, fmt.Errorf("reference: no queue %q: %w", sub.Queue, jms.ErrConfig)
	}
	c := &refConn{b: b, q: q, done: make(chan struct{}), sessions: map[*refSession]bool{}}
	if sub.SingleActiveConsumer {
		q.line = append(q.line, c)
		c.single = true
	}
	return c, nil
}

type refConn struct {
	b        *refBroker
	q        *refQueue
	single   bool
	done     chan struct{}
	err      error // not nil when lost
	closed   bool
	sessions map[*refSession]bool
}

func (c *refConn) Capabilities() jms.Capabilities { return c.b.caps }
func (c *refConn) Done() <-chan struct{}          { return c.done }

func (c *refConn) Err() error {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	return c.err
}

// alive says why nothing can be done any more; b.mu is held.
func (c *refConn) alive() error {
	if c.err != nil {
		return c.err
	}
	if c.closed {
		return fmt.Errorf("reference: closed: %w", jms.ErrConnectionLost)
	}
	return nil
}

func (c *refConn) active() bool { return !c.single || len(c.q.line) > 0 && c.q.line[0] == c }

// end gives everything back, the active role last; b.mu is held.
func (c *refConn) end() {
	for s := range c.sessions {
		s.end()
	}
	c.q.line = slices.DeleteFunc(c.q.line, func(o *refConn) bool { return o == c })
	c.b.changed()
}

func (c *refConn) Close(context.Context) error {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	c.closed = true
	c.end()
	return nil
}

// Break loses the connection, or its active role.
func (c *refConn) Break() {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	if c.err == nil && !c.closed {
		c.err = fmt.Errorf("reference: cut: %w", jms.ErrConnectionLost)
		close(c.done)
		c.end()
	}
}

// await waits until ok says so; ok runs with b.mu held.
func (c *refConn) await(ctx context.Context, ok func() bool) error {
	for {
		c.b.mu.Lock()
		if err := c.alive(); err != nil {
			c.b.mu.Unlock()
			return err
		}
		if c.active() && ok() {
			c.b.mu.Unlock()
			return nil
		}
		wake := c.b.wake
		c.b.mu.Unlock()
		select {
		case <-wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (c *refConn) AwaitActive(ctx context.Context) error {
	return c.await(ctx, func() bool { return true })
}
func (c *refConn) CleanStart(context.Context) (bool, error) { return true, nil }
func (c *refConn) Backout(context.Context) (string, int, error) {
	for name, q := range c.b.queues {
		if q != c.q {
			return name, 5, nil
		}
	}
	return "", 0, nil
}

func (c *refConn) CheckQueue(_ context.Context, queue string) error {
	if c.b.queues[queue] == nil {
		return fmt.Errorf("reference: no queue %q: %w", queue, jms.ErrConfig)
	}
	return nil
}

func (c *refConn) OpenSession(context.Context) (jms.Session, error) {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	if err := c.alive(); err != nil {
		return nil, err
	}
	s := &refSession{c: c}
	c.sessions[s] = true
	return s, nil
}

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

// everything is what the reference provider can do.
var everything = jms.Capabilities{
	Broker: "reference", CheapSessions: true, AtomicSends: true, RollbackInPlace: true, ReturnsAtOnce: true,
	MaxHold: time.Hour, StableIDs: true, DeliveryCount: true,
}

// referenceBroker gives the suite all powers over a reference provider.
func referenceBroker(b *refBroker) providertest.Broker {
	cut := func(c jms.Connection) { c.(interface{ Break() }).Break() }
	return providertest.Broker{
		Factory: b, Queue: "IN", Other: "OUT", Unknown: "NO.SUCH.QUEUE",
		Send: b.Send, Break: cut, LoseRole: cut, Fill: b.Fill, Unsettled: b.Unsettled, Unreachable: unreachable{},
	}
}

type unreachable struct{}

func (unreachable) Connect(context.Context, jms.Subscription) (jms.Connection, error) {
	return nil, fmt.Errorf("reference: nobody answers: %w", jms.ErrConnectionLost)
}

func TestReference(t *testing.T) {
	providertest.Run(t, providertest.Harness{
		Bubble: true,
		New:    func(testing.TB) providertest.Broker { return referenceBroker(newRefBroker(everything, "IN", "OUT")) },
	})
}

// The least that a provider can promise, in real time.
func TestReferenceModest(t *testing.T) {
	providertest.Run(t, providertest.Harness{
		Quiet: 20 * time.Millisecond,
		New: func(testing.TB) providertest.Broker {
			b := referenceBroker(newRefBroker(jms.Capabilities{ReturnDelay: 50 * time.Millisecond, MaxInFlight: 10}, "IN", "OUT"))
			return providertest.Broker{Factory: b.Factory, Queue: b.Queue, Other: b.Other, Send: b.Send}
		},
	})
}
