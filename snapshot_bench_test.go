package keyseq_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/provider/memory"
)

// withLiveKeys runs a manager that holds so many keys, each with one message in a long retry pause, and a listener that counts all others.
func withLiveKeys(b *testing.B, keys int) (broker *memory.Broker, m *keyseq.SequenceManager, done *atomic.Int64) {
	broker = must(memory.NewBroker(memory.Queue{Name: inQueue}))
	done = new(atomic.Int64)
	m = must(keyseq.NewSequenceManager(inQueue, broker, keyseq.ListenerFuncs{Task: func(_ context.Context, d *keyseq.Delivery) error {
		if d.Key[0] == 'p' {
			return keyseq.RetryAfter(time.Hour, nil)
		}
		done.Add(1)
		return nil
	}}, keyseq.KeyFromBodyBefore("."), func(c *keyseq.Config) { c.MaxInFlight = keys + 8192 }))
	for k := range keys {
		must(broker.Send(keyseq.Outgoing{Queue: inQueue, Body: fmt.Appendf(nil, "p%d.0", k)}))
	}
	if err := m.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	for tick := time.NewTicker(time.Millisecond); m.Snapshot().Retrying < keys; {
		<-tick.C
	}
	b.Cleanup(func() {
		if err := m.Shutdown(context.Background()); err != nil {
			b.Error(err)
		}
		broker.Close()
	})
	return broker, m, done
}

// BenchmarkSnapshot is what a Snapshot costs whoever takes it, with nothing else going on. Where the visit of every key takes long it is
// repeated once a second only, so "visit" is measured a second apart.
func BenchmarkSnapshot(b *testing.B) {
	for _, keys := range []int{100, 10_000, 100_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			_, m, _ := withLiveKeys(b, keys)
			b.ReportAllocs()
			for b.Loop() {
				if s := m.Snapshot(); s.Keys != keys || s.Oldest.IsZero() || len(s.Blocked) == 0 {
					b.Fatalf("%+v", s)
				}
			}
		})
	}
}

// BenchmarkSnapshotEvery100ms is what the messages pay for a Snapshot each 100 ms beside 100,000 live keys: lots with and without are
// measured in turns, and "slowdown-%" is what the ratio of the fastest lots says.
func BenchmarkSnapshotEvery100ms(b *testing.B) {
	const keys, lot, rounds = 100_000, 200_000, 12
	broker, m, done := withLiveKeys(b, keys)
	out := make([]keyseq.Outgoing, lot)
	for i := range out {
		out[i] = keyseq.Outgoing{Queue: inQueue, Body: fmt.Appendf(nil, "h%d.%d", i%1000, i)}
	}
	measure := func() time.Duration {
		want := done.Load() + lot
		began := time.Now()
		must(broker.SendBatch(out))
		for tick := time.NewTicker(200 * time.Microsecond); done.Load() < want; {
			<-tick.C
		}
		return time.Since(began)
	}
	best := map[bool]time.Duration{}
	for range b.N {
		for round := range 2 * rounds {
			with := round%2 == 1
			var watching sync.WaitGroup
			stop := make(chan struct{})
			if with {
				watching.Go(func() {
					tick := time.NewTicker(100 * time.Millisecond)
					defer tick.Stop()
					for {
						m.Snapshot()
						select {
						case <-tick.C:
						case <-stop:
							return
						}
					}
				})
			}
			took := measure()
			close(stop)
			watching.Wait()
			if best[with] == 0 || took < best[with] {
				best[with] = took
			}
		}
	}
	b.ReportMetric(float64(best[false].Nanoseconds())/lot, "ns/message")
	b.ReportMetric(100*(float64(best[true])/float64(best[false])-1), "slowdown-%")
}
