package faulty_test

import (
	"context"
	"sync"
	"testing"

	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/faulty"
	"github.com/keyseq/keyseq/provider/memory"
	"github.com/keyseq/keyseq/provider/providertest"
)

// TestHealthyProviderConformsWrapped: without a rule that matches, nothing changes.
func TestHealthyProviderConformsWrapped(t *testing.T) {
	for name, profile := range map[string]memory.Profile{
		"Plain": {}, "LikeIBMMQ": memory.LikeIBMMQ(), "LikeRabbitMQ": memory.LikeRabbitMQ(), "LikeQuorum": memory.LikeQuorum(),
	} {
		t.Run(name, func(t *testing.T) {
			providertest.Run(t, providertest.Harness{
				Bubble: true,
				New: func(t testing.TB) providertest.Broker {
					return wrapped(t, profile, memory.Queue{Name: "IN", Shared: true})
				},
				NewSingleActive: func(t testing.TB) providertest.Broker {
					return wrapped(t, profile, memory.Queue{Name: "IN", SingleActiveConsumer: true})
				},
			})
		})
	}
}

func wrapped(t testing.TB, p memory.Profile, in memory.Queue) providertest.Broker {
	b, err := memory.NewBroker(p, in, memory.Queue{Name: "OUT", Shared: true})
	if err != nil {
		t.Fatal(err)
	}
	n := &named{Factory: faulty.New(b, faulty.On(faulty.Commit).Nth(1e6).Hang()), clients: map[jms.Connection]string{}}
	return providertest.Broker{
		Factory: n, Queue: "IN", Other: "OUT", Unknown: "NO.SUCH.QUEUE",
		Send: func(_ context.Context, queue string, out ...jms.Outgoing) error {
			for i := range out {
				out[i].Queue = queue
			}
			_, err := b.SendBatch(out)
			return err
		},
		Break: func(c jms.Connection) {
			for _, queue := range []string{"IN", "OUT"} {
				readers, err := b.Readers(queue)
				if err != nil {
					t.Error(err)
				}
				for _, r := range readers {
					if r.Client() == n.client(c) {
						r.Break(memory.Loss{})
					}
				}
			}
		},
		Unsettled: func(_ context.Context, queue string) (int, error) {
			s, err := b.Stats(queue)
			return s.Unsettled, err
		},
	}
}

// named remembers the client name of each connection.
type named struct {
	*faulty.Factory
	mu      sync.Mutex
	clients map[jms.Connection]string
}

func (n *named) Connect(ctx context.Context, sub jms.Subscription) (jms.Connection, error) {
	c, err := n.Factory.Connect(ctx, sub)
	if err == nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.clients[c] = sub.Client
	}
	return c, err
}

func (n *named) client(c jms.Connection) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.clients[c]
}
