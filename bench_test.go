package keyseq_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/provider/memory"
)

// BenchmarkWholePath is one message on its whole way, from the embedded broker through an empty task to its commit, for few and for many keys.
// cpu-ns/op counts the time of all cores, which a busy machine does not change.
func BenchmarkWholePath(b *testing.B) {
	for _, keys := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			broker := must(memory.NewBroker(memory.Queue{Name: inQueue}))
			defer broker.Close()
			for i := range b.N {
				must(broker.Send(keyseq.Outgoing{Queue: inQueue, Body: fmt.Appendf(nil, "%d.%d", i%keys, i)}))
			}
			var done atomic.Int64
			all := make(chan struct{})
			m := must(keyseq.NewSequenceManager(inQueue, broker, keyseq.ListenerFuncs{Task: func(context.Context, *keyseq.Delivery) error {
				if done.Add(1) == int64(b.N) {
					close(all)
				}
				return nil
			}}, keyseq.KeyFromBodyBefore(".")))
			b.ReportAllocs()
			b.ResetTimer()
			before := cpuTime()
			if err := m.Start(b.Context()); err != nil {
				b.Fatal(err)
			}
			<-all
			b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op")
			b.StopTimer()
			if err := m.Shutdown(context.Background()); err != nil {
				b.Error(err)
			}
		})
	}
}
