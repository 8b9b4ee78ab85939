package ibmmq_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/providertest"
)

func TestConformance(t *testing.T) { providertest.Run(t, harness(2*time.Second)) }

// TestManager runs the manager's guarantees with the lock queue. The queue manager notices losses soon, and the manager is told so.
func TestManager(t *testing.T) {
	h := harness(300 * time.Millisecond)
	h.Quiet = 500 * time.Millisecond
	h.Config = func(c *keyseq.Config) { c.ReturnDelay = 600 * time.Millisecond }
	providertest.RunManager(t, h)
}

// harness has a queue manager that notices a lost client after that time.
func harness(notices time.Duration) providertest.Harness {
	made := func(t testing.TB) providertest.Broker {
		b := newBench(t)
		names := &applications{ConnectionFactory: b.factory(), of: map[jms.Connection]string{}}
		broker := providertest.Broker{
			Factory: names, Queue: b.queue, Other: b.other, Unknown: b.unknown, Send: b.sender(),
		}
		if b.fail == nil {
			return broker
		}
		b.detect(notices)
		broker.Break = func(c jms.Connection) { b.breakName(names.name(c), false) }
		broker.LoseRole = func(c jms.Connection) { b.breakName(names.name(c), true) }
		broker.Unsettled = func(context.Context, string) (int, error) { return b.unsettled(), nil }
		broker.Fill = func(queue string) (undo func()) {
			b.define(queue + ":put=0")
			return func() { b.define(queue + ":put=1") }
		}
		broker.Unreachable = b.unreachable
		return broker
	}
	return providertest.Harness{New: made, NewSingleActive: made}
}

// applications remembers the application name of each connection.
type applications struct {
	jms.ConnectionFactory
	mu sync.Mutex
	of map[jms.Connection]string
}

func (a *applications) Connect(ctx context.Context, sub jms.Subscription) (jms.Connection, error) {
	c, err := a.ConnectionFactory.Connect(ctx, sub)
	if err == nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.of[c] = sub.Client
	}
	return c, err
}

func (a *applications) name(c jms.Connection) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.of[c]
}
