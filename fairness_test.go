package keyseq_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/keyseq/keyseq"
)

// T20: 10,000 messages of one key in front, then one each of 100 other keys, 4 workers: the others take turns with the long backlog, in the order in
// which they came, and are not slowed down by it; nor is it by them: its one worker at a time never waits.
func TestT20_ALongBacklogTakesTurnsWithOthers(t *testing.T) {
	bubble(t, func(r *rig) {
		const backlog, service = 10_000, 10 * time.Millisecond
		for n := range backlog {
			r.send("H", n)
		}
		r.interleaved(100, 1)
		var mu sync.Mutex
		began := map[string]time.Duration{}
		hot := 0
		start := time.Now()
		r.manager(func(_ context.Context, d *keyseq.Delivery) error {
			mu.Lock()
			if d.Key != "H" {
				began[d.Key] = time.Since(start)
			} else if len(began) < 100 {
				hot++
			}
			mu.Unlock()
			time.Sleep(service)
			return nil
		}, func(c *keyseq.Config) { c.Workers, c.MaxInFlight = 4, 20_000 }).start()
		r.drained()
		for k := range 100 {
			// H has one turn, like each of the others.
			if key, latest := fmt.Sprint("k", k), time.Duration(k/4+2)*service; began[key] > latest {
				r.Errorf("%s began at %v, want at %v at the latest", key, began[key], latest)
			}
		}
		if hot > 5 {
			r.Errorf("the backlog had %d turns before the others had one each", hot)
		}
		if d, most := time.Since(start), (backlog+2*100)*service; d > most {
			r.Errorf("all took %v, want %v at most: the backlog keeps a worker busy all the time", d, most)
		}
	})
}

// T20: four keys with long backlogs sit on all four workers. A key that comes then starts within two service times.
func TestT20_ANewKeyStartsWithinTwoServiceTimes(t *testing.T) {
	profiles(t, func(r *rig) {
		const service = 100 * time.Millisecond
		r.interleaved(4, 500)
		var mu sync.Mutex
		began := map[string]time.Time{}
		m := r.manager(func(_ context.Context, d *keyseq.Delivery) error {
			mu.Lock()
			began[d.Key] = time.Now()
			mu.Unlock()
			time.Sleep(service)
			return nil
		}, func(c *keyseq.Config) { c.Workers, c.MaxInFlight = 4, 5000 }).start()
		r.until("the backlogs are being worked off", func() bool { return m.Snapshot().Received == 2000 })
		for n := range 100 {
			key := fmt.Sprint("late", n)
			sent := time.Now()
			r.send(key, 0)
			time.Sleep(3*service + 7*time.Millisecond)
			mu.Lock()
			at, ok := began[key]
			mu.Unlock()
			if wait := at.Sub(sent); !ok || wait > 2*service {
				r.Fatalf("%s began %v after it was sent (%t), want within %v", key, wait, ok, 2*service)
			}
		}
		r.drained()
	})
}

// G5, T20: a key that always fails, without any pause, takes turns like any other.
func TestT20_AFailingKeyDoesNotStarveOthers(t *testing.T) {
	profiles(t, func(r *rig) {
		r.send("bad", 0)
		r.interleaved(50, 10)
		r.manager(func(_ context.Context, d *keyseq.Delivery) error {
			time.Sleep(10 * time.Millisecond)
			if d.Key == "bad" && d.Attempt < 200 {
				return keyseq.RetryAfter(0, nil)
			}
			return nil
		}, func(c *keyseq.Config) { c.Workers, c.Retry.MaxRetries = 1, keyseq.Unlimited }).start()
		began := time.Now()
		r.until("only the failing key is left", func() bool { return r.broker.Depth(inQueue) <= 1 })
		if d := time.Since(began) - r.profile.ReturnDelay; d > 12*time.Second && r.profile.ReturnDelay == 0 {
			r.Errorf("500 messages of 10 ms took %v beside a failing key", d)
		}
		r.drained()
	})
}
