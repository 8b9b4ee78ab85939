package providertest_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
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
