package memory_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/memory"
	"github.com/keyseq/keyseq/provider/providertest"
)

// profiles are the plain broker and the ones that behave like real ones.
var profiles = map[string]memory.Profile{
	"Plain": {}, "LikeIBMMQ": memory.LikeIBMMQ(), "LikeRabbitMQ": memory.LikeRabbitMQ(), "LikeQuorum": memory.LikeQuorum(),
}

func TestConformance(t *testing.T) {
	for name, profile := range profiles {
		t.Run(name, func(t *testing.T) { providertest.Run(t, harness(profile)) })
	}
}

// The manager on each profile, alone on the queue and as the active instance.
func TestManagerConformance(t *testing.T) {
	for name, profile := range profiles {
		t.Run(name, func(t *testing.T) {
			h := harness(profile)
			t.Run("SingleActive", func(t *testing.T) { providertest.RunManager(t, h) })
			h.NewSingleActive = nil
			t.Run("Alone", func(t *testing.T) { providertest.RunManager(t, h) })
		})
	}
}

func harness(p memory.Profile) providertest.Harness {
	return providertest.Harness{
		Bubble: true,
		New: func(t testing.TB) providertest.Broker {
			return conforming(t, p, memory.Queue{Name: "IN", Shared: true})
		},
		NewSingleActive: func(t testing.TB) providertest.Broker {
			return conforming(t, p, memory.Queue{Name: "IN", SingleActiveConsumer: true})
		},
	}
}

func conforming(t testing.TB, p memory.Profile, in memory.Queue) providertest.Broker {
	in.BackoutQueue, in.BackoutThreshold = "OUT", 5
	closed := newBroker(t)
	closed.Close()
	b := newBroker(t, p, in, memory.Queue{Name: "OUT", Shared: true})
	r := &readers{Broker: b, of: map[jms.Connection]*memory.Reader{}}
	return providertest.Broker{
		Factory: r, Queue: "IN", Other: "OUT", Unknown: "NO.SUCH.QUEUE",
		Send: func(_ context.Context, queue string, out ...jms.Outgoing) error {
			for i := range out {
				out[i].Queue = queue
			}
			_, err := b.SendBatch(out)
			return err
		},
		Break: func(c jms.Connection) {
			l := memory.Loss{}
			if p.ReturnDelay > 0 { // before the moment at which a reader that has waited for it goes on
				l.Broker = p.ReturnDelay - time.Millisecond
			}
			r.find(c).Break(l)
		},
		LoseRole: func(c jms.Connection) { r.find(c).LoseRole(0) },
		Unsettled: func(_ context.Context, queue string) (int, error) {
			s, err := b.Stats(queue)
			return s.Unsettled, err
		},
		Fill: func(queue string) (undo func()) {
			_ = b.InhibitPut(queue, true)
			return func() { _ = b.InhibitPut(queue, false) }
		},
		Unreachable: closed,
	}
}

// readers remembers which connection is which at the broker.
type readers struct {
	*memory.Broker
	mu sync.Mutex
	of map[jms.Connection]*memory.Reader
}

func (r *readers) Connect(ctx context.Context, sub jms.Subscription) (jms.Connection, error) {
	c, err := r.Broker.Connect(ctx, sub)
	if err != nil {
		return nil, err
	}
	all, err := r.Readers(sub.Queue)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, reader := range all {
		if reader.Client() == sub.Client {
			r.of[c] = reader
		}
	}
	return c, nil
}

func (r *readers) find(c jms.Connection) *memory.Reader {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of[c]
}
