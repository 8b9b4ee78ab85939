//go:build mqistandin

package mqistandin_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keyseq/keyseq/provider/ibmmq/internal/mqistandin"
)

// BenchmarkReceiveCommit shows what the stand-in allows at most, so that a slow
// provider is not taken for a slow queue manager: persistent 1 KiB texts through
// jms20, one to a commit. It says nothing about IBM MQ.
func BenchmarkReceiveCommit(b *testing.B) {
	for _, form := range []string{"one process", "two processes"} {
		for _, contexts := range []int{1, 100} {
			for _, latency := range []time.Duration{0, 500 * time.Microsecond} {
				b.Run(fmt.Sprintf("%s/%d contexts/%v", form, contexts, latency), func(b *testing.B) {
					mqistandin.Use("")
					if form == "two processes" {
						q, err := mqistandin.StartQueueManager("unix:" + b.TempDir() + "/mq.sock")
						if err != nil {
							b.Fatal(err)
						}
						b.Cleanup(func() { mqistandin.Use(""); _ = q.Close() })
						mqistandin.Use(q.Address)
					}
					mqistandin.Reset()
					receiveAndCommit(b, contexts, latency)
				})
			}
		}
	}
}

func receiveAndCommit(b *testing.B, contexts int, latency time.Duration) {
	mqistandin.Define("BENCH:maxdepth=999999999")
	p := open(b, transacted)
	body := strings.Repeat("x", 1024)
	for i := range b.N {
		ok(b, p.CreateProducer().SendString(p.CreateQueue("BENCH"), body))
		if i%1000 == 999 {
			ok(b, p.Commit())
		}
	}
	ok(b, p.Commit())
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	start := make(chan struct{})
	for range contexts {
		ctx := open(b, transacted)
		c := consume(b, ctx, "BENCH")
		wg.Go(func() {
			<-start
			for left.Add(-1) >= 0 {
				if s, err := c.ReceiveStringBody(1000); err != nil || s == nil {
					b.Error(s, err)
					return
				}
				if err := ctx.Commit(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	mqistandin.Latency(latency)
	b.ResetTimer()
	close(start)
	wg.Wait()
	b.StopTimer()
	mqistandin.Latency(0)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
}
