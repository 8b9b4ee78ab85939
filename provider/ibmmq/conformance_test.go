package ibmmq_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/providertest"
)

func TestConformance(t *testing.T) { providertest.Run(t, harness(400*time.Millisecond)) }

// TestManager runs the manager's guarantees with the lock queue. The queue manager notices losses soon.
func TestManager(t *testing.T) {
	h := harness(300 * time.Millisecond)
	h.Quiet = 500 * time.Millisecond
	providertest.RunManager(t, h)
}

// harness has a queue manager that notices a lost client after that time.
func harness(notices time.Duration) providertest.Harness {
	made := func(t testing.TB) providertest.Broker {
		b := newBench(t)
		names := &applications{ConnectionFactory: b.factory(), notices: notices, of: map[jms.Connection]string{}}
		broker := providertest.Broker{
			Factory: names, Queue: b.queue, Other: b.other, Unknown: b.unknown, Send: b.sender(),
		}
		if b.fail == nil {
			names.notices = 0
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

// applications remembers the application name of each connection. Where the queue manager can be told how soon it notices a loss, the
// connections declare that, because the shortest heartbeat there is would make the suite wait for 3 s each time.
type applications struct {
	jms.ConnectionFactory
	notices time.Duration
	mu      sync.Mutex
	of      map[jms.Connection]string
}

// everything is what a connection of this provider can do.
type everything interface {
	jms.Connection
	jms.Elector
	jms.Predecessor
	jms.CleanStarter
	jms.Inquirer
	jms.QueueChecker
}

type hasty struct {
	everything
	delay time.Duration
}

func (h hasty) Capabilities() jms.Capabilities {
	c := h.everything.Capabilities()
	c.ReturnDelay = h.delay
	return c
}

func (a *applications) Connect(ctx context.Context, sub jms.Subscription) (jms.Connection, error) {
	c, err := a.ConnectionFactory.Connect(ctx, sub)
	if err != nil {
		return nil, err
	}
	if a.notices > 0 {
		c = hasty{c.(everything), 2 * a.notices}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.of[c] = sub.Client
	return c, nil
}

func (a *applications) name(c jms.Connection) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.of[c]
}
