//go:build unix

package keyseq_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
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

// BenchmarkSnapshot is what a Snapshot costs whoever takes it, one right after another.
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

// BenchmarkSnapshotEvery100ms is what a Snapshot each 100 ms costs beside 100,000 live keys: lots of messages with and without take
// turns, and "more-cpu-%" is by how much the processor time of a message grows. Processor time, because on a shared machine the time on the clock says
// more about the neighbours.
func BenchmarkSnapshotEvery100ms(b *testing.B) {
	const keys, lot, rounds = 100_000, 200_000, 10
	broker, m, done := withLiveKeys(b, keys)
	out := make([]keyseq.Outgoing, lot)
	for i := range out {
		out[i] = keyseq.Outgoing{Queue: inQueue, Body: fmt.Appendf(nil, "h%d.%d", i%1000, i)}
	}
	cpu := map[bool]time.Duration{}
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
			want, before := done.Load()+lot, processorTime(b)
			must(broker.SendBatch(out))
			for tick := time.NewTicker(time.Millisecond); done.Load() < want; {
				<-tick.C
			}
			cpu[with] += processorTime(b) - before
			close(stop)
			watching.Wait()
		}
	}
	b.ReportMetric(float64(cpu[false].Nanoseconds())/float64(b.N*rounds*lot), "cpu-ns/message")
	b.ReportMetric(100*(float64(cpu[true])/float64(cpu[false])-1), "more-cpu-%")
}

// processorTime is what this process has used.
func processorTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
