package keyseq_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keyseq/keyseq"
)

// R1.01: 10,000 messages of random keys: those of a key one after another, in queue order, while different keys overlap.
func TestR1_01_SameKeyInOrderOthersAtOnce(t *testing.T) {
	profiles(t, func(r *rig) {
		rnd := rand.New(rand.NewPCG(1, 1))
		next := map[string]int{}
		for range 10_000 {
			key := string(rune('a' + rnd.IntN(20)*rnd.IntN(20)))
			r.send(key, next[key])
			next[key]++
		}
		var running, most atomic.Int32
		r.manager(func(context.Context, *keyseq.Delivery) error {
			n := running.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			time.Sleep(time.Millisecond)
			running.Add(-1)
			return nil
		}, func(c *keyseq.Config) { c.MaxInFlight = 2000 }).start()
		r.drained()
		if most.Load() < 10 {
			r.Errorf("at most %d tasks of different keys ran at once; want them to overlap", most.Load())
		}
	})
}

// B4, T1: a message that fails is tried again before its successors, and other keys do not wait for it.
func TestT01_SuccessorsWaitForTheRetryOthersDoNot(t *testing.T) {
	profiles(t, func(r *rig) {
		for n := 1; n <= 4; n++ {
			r.send("K", n)
			r.send("J", n)
		}
		var mu sync.Mutex
		var log []string
		failed := 0
		r.manager(func(_ context.Context, d *keyseq.Delivery) error {
			mu.Lock()
			defer mu.Unlock()
			log = append(log, string(d.Body))
			if string(d.Body) == "K.1" && failed < 2 {
				failed++
				return errors.New("not yet")
			}
			return nil
		}).start()
		r.drained()
		var k []string
		othersBeforeSecond := 0
		for _, body := range log {
			if body[0] == 'K' {
				k = append(k, body)
			} else if len(k) < 2 {
				othersBeforeSecond++
			}
		}
		if got, want := fmt.Sprint(k), fmt.Sprint([]string{"K.1", "K.1", "K.1", "K.2", "K.3", "K.4"}); got != want {
			r.Errorf("attempts of K: %s, want %s", got, want)
		}
		if othersBeforeSecond != 4 {
			r.Errorf("%d of 4 messages of J ran before K's second attempt; a retry must hold its own key only", othersBeforeSecond)
		}
	})
}
