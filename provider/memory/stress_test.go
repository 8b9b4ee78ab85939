package memory_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/memory"
)

// TestConcurrentUse is for the race detector: readers that settle, give back and close, and somebody who breaks what they use. In the end each
// message was settled once, and each settlement sent once.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	for _, p := range []memory.Profile{
		{}, {Name: "late", ReturnDelay: 2 * time.Millisecond}, {Name: "deaf", Deaf: time.Millisecond},
		{Name: "push", Prefetch: 8, Rollback: memory.RollbackLosesConnection},
	} {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			b := newBroker(t, p, memory.Queue{Name: queue, Shared: true}, memory.Queue{Name: "OUT"})
			const n = 3000
			var unknown atomic.Int64
			var sent atomic.Bool
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			var readers, others sync.WaitGroup
			for i := range 3 {
				readers.Go(func() {
					for (!sent.Load() || b.Depth(queue) > 0) && ctx.Err() == nil {
						c, err := b.Connect(ctx, jms.Subscription{Queue: queue, Client: fmt.Sprint(i)})
						if err != nil {
							t.Error(err)
							return
						}
						var sessions sync.WaitGroup
						for range 3 {
							sessions.Go(func() { unknown.Add(work(ctx, b, c)) })
						}
						sessions.Wait()
						_ = c.Close(ctx)
					}
				})
			}
			stop := make(chan struct{})
			others.Go(func() {
				for {
					select {
					case <-stop:
						return
					case <-time.After(time.Millisecond):
					}
					disturb(b)
				}
			})
			for i := range n {
				send(t, b, fmt.Sprint(i))
			}
			sent.Store(true)
			readers.Wait()
			close(stop)
			others.Wait()
			s := stats(t, b)
			out := int64(b.Depth("OUT"))
			if s.Depth != 0 || s.Settled != n || s.Sent != n || out < n || out > n+unknown.Load() {
				t.Fatalf("%+v, OUT %d, %d commits failed", s, out, unknown.Load())
			}
		})
	}
}

// work reads until the connection is lost or nothing comes, and returns how many commits failed.
func work(ctx context.Context, b *memory.Broker, c jms.Connection) (failed int64) {
	for ctx.Err() == nil {
		s, err := c.OpenSession(ctx)
		if err != nil {
			return failed
		}
		for err == nil {
			short, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
			_, err = s.Receive(short)
			cancel()
			switch {
			case errors.Is(err, context.DeadlineExceeded) && b.Depth(queue) > 0:
				err = nil
				continue
			case err != nil:
				continue
			}
			switch r := rand.IntN(100); {
			case r < 3:
				err = s.Rollback(ctx)
			case r < 5:
				err = s.Close(ctx)
			default:
				if err = s.Commit(ctx, jms.Outgoing{Queue: "OUT"}); err != nil {
					failed++
				}
			}
		}
		_ = s.Close(ctx)
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, jms.ErrConnectionLost) {
			return failed
		}
	}
	return failed
}

func disturb(b *memory.Broker) {
	switch rand.IntN(6) {
	case 0:
		readers, _ := b.Readers(queue)
		if len(readers) > 0 {
			readers[rand.IntN(len(readers))].Break(memory.Loss{Client: time.Duration(rand.IntN(3)) * time.Millisecond})
		}
	case 1:
		_, _ = b.LoseReceive(queue, memory.Loss{})
	default:
		held, _ := b.Held(queue)
		if len(held) == 0 {
			return
		}
		id := held[rand.IntN(len(held))].ID
		if rand.IntN(2) == 0 {
			_ = b.TakeBack(id) // fails if it was settled meanwhile
		} else {
			_ = b.LoseSession(id, memory.Loss{})
		}
	}
}
