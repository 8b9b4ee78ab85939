package keyseq_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/provider/memory"
)

func TestSmoke(t *testing.T) {
	for _, profile := range []memory.Profile{{}, memory.LikeIBMMQ(), memory.LikeRabbitMQ(), memory.LikeQuorum()} {
		t.Run(profile.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, err := memory.NewBroker(profile, memory.Queue{Name: "Q"}, memory.Queue{Name: "DLQ"}, memory.Queue{Name: "OUT"})
				if err != nil {
					t.Fatal(err)
				}
				for v := range 10 {
					for k := range 100 {
						b.Send(keyseq.Outgoing{Queue: "Q", Body: fmt.Appendf(nil, "%d.%d", k, v)})
					}
				}
				var mu sync.Mutex
				seen := map[string][]string{}
				fails := map[string]int{}
				m, err := keyseq.NewSequenceManager("Q", b, keyseq.ListenerFuncs{Task: func(ctx context.Context, d *keyseq.Delivery) error {
					time.Sleep(20 * time.Millisecond)
					mu.Lock()
					defer mu.Unlock()
					body := string(d.Body)
					if strings.HasSuffix(body, "3") && fails[body] < 2 {
						fails[body]++
						return errors.New("no")
					}
					if body == "7.5" {
						return keyseq.DeadLetter(errors.New("bad"))
					}
					seen[d.Key] = append(seen[d.Key], body)
					return d.Send(ctx, keyseq.Outgoing{Queue: "OUT", Body: d.Body})
				}}, keyseq.KeyFromBodyBefore("."), func(c *keyseq.Config) { c.DeadLetterQueue = "DLQ"; c.Workers = 50 })
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error)
				go func() { done <- m.Run(ctx) }()
				for b.Depth("Q") > 0 {
					time.Sleep(10 * time.Millisecond)
					if time.Since(start) > time.Hour {
						t.Fatalf("stuck: %+v", m.Snapshot())
					}
				}
				t.Logf("took %v out %d dlq %d", time.Since(start), b.Depth("OUT"), b.Depth("DLQ"))
				cancel()
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				for k, l := range seen {
					for i := 1; i < len(l); i++ {
						if l[i] <= l[i-1] {
							t.Errorf("key %s: %v", k, l)
						}
					}
				}
				b.Close()
			})
		})
	}
}

func BenchmarkWhole(b *testing.B) {
	br, _ := memory.NewBroker(memory.Queue{Name: "Q"})
	for i := range b.N {
		br.Send(keyseq.Outgoing{Queue: "Q", Body: fmt.Appendf(nil, "%d.%d", i%1000, i)})
	}
	n := 0
	var mu sync.Mutex
	all := make(chan struct{})
	m, _ := keyseq.NewSequenceManager("Q", br, keyseq.ListenerFuncs{Task: func(ctx context.Context, d *keyseq.Delivery) error {
		mu.Lock()
		n++
		if n == b.N {
			close(all)
		}
		mu.Unlock()
		return nil
	}}, keyseq.KeyFromBodyBefore("."))
	b.ReportAllocs()
	b.ResetTimer()
	if err := m.Start(context.Background()); err != nil {
		b.Fatal(err)
	}
	<-all
	b.StopTimer()
	m.Shutdown(context.Background())
	br.Close()
}
