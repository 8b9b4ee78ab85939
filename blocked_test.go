package keyseq_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/memory"
)

// poisonous fails for ever for the messages of keys that begin with p.
func poisonous(_ context.Context, d *keyseq.Delivery) error {
	if strings.HasPrefix(d.Key, "p") {
		return errors.New("poison")
	}
	time.Sleep(time.Millisecond)
	return nil
}

// blockages notes when Blocked was told, and which keys it named.
type blockages struct {
	mu    sync.Mutex
	first time.Time
	n     int
	keys  []string // of the first
}

func (b *blockages) listen(c *keyseq.Config) {
	c.Events = append(c.Events, keyseq.Events{Blocked: func(keys []keyseq.KeyReport) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.n++; b.n == 1 {
			b.first = time.Now()
			for _, k := range keys {
				b.keys = append(b.keys, k.Key)
			}
		}
	}})
}

func (b *blockages) seen() (n int, first time.Time, keys []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.n, b.first, slices.Clone(b.keys)
}

// T15, H13: 1,000 keys, 50 of them poison that is retried for ever: all others are handled, with short pauses and long ones, and where the window
// sizes itself.
func TestT15_PoisonKeysDoNotStopTheOthers(t *testing.T) {
	for _, p := range []memory.Profile{{Name: "plain"}, {Name: "costly sessions", CostlySessions: true}} {
		for _, pause := range []time.Duration{10 * time.Millisecond, time.Minute} {
			t.Run(fmt.Sprint(p.Name, " ", pause), func(t *testing.T) {
				bubble(t, func(r *rig) {
					r.verdict.Incomplete = true
					for k := range 1000 {
						if k%20 == 7 {
							r.send(fmt.Sprint("p", k), 1)
						} else {
							r.send(fmt.Sprint("k", k), 1)
						}
					}
					var b blockages
					m := r.manager(poisonous, func(c *keyseq.Config) {
						c.Workers, c.MaxInFlight = 10, 64
						c.Retry = keyseq.RetryPolicy{MaxRetries: keyseq.Unlimited, Backoff: keyseq.FixedBackoff(pause)}
					}, b.listen).start()
					began := time.Now()
					r.until("all others are done", func() bool { return m.Snapshot().Committed == 950 })
					if took := time.Since(began); took > 5*time.Second {
						r.Errorf("it took %v", took)
					}
					if n, _, _ := b.seen(); n > 0 {
						r.Errorf("Blocked was told %d times, though nothing was", n)
					}
				}, p)
			})
		}
	}
}

// T15, G5: when more poison than the window has places is in front, the stall is told with the names of keys, within a second or two.
func TestT15_AWindowFullOfPoisonIsTold(t *testing.T) {
	bubble(t, func(r *rig) {
		r.verdict.Incomplete = true
		for k := range 100 {
			r.send(fmt.Sprint("p", k), 1)
		}
		r.send("k", 1)
		var b blockages
		m := r.manager(poisonous, func(c *keyseq.Config) {
			c.Workers, c.MaxInFlight = 10, 64
			c.Retry = keyseq.RetryPolicy{MaxRetries: keyseq.Unlimited, Backoff: keyseq.FixedBackoff(time.Minute)}
		}, b.listen).start()
		began := time.Now()
		time.Sleep(10 * time.Second)
		n, first, keys := b.seen()
		if n < 5 || first.Sub(began) > 2*time.Second || len(keys) == 0 || !strings.HasPrefix(keys[0], "p") {
			r.Errorf("told %d times, first after %v, with %v", n, first.Sub(began), keys)
		}
		if m.Snapshot().Committed != 0 {
			r.Error("the window was not full: the test shows nothing")
		}
	})
}

// H13, G5: the window is full of what waits behind tasks that take long, or behind a commit that does not return, while other workers are idle; or
// every worker sits in such a task and nothing else could be read. Each is told, and so are the keys.
func TestH13_AWindowFullBehindSlowKeysIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		workers int
		within  time.Duration
		task    taskFunc
		hang    bool
	}{
		"a task":              {4, 3 * time.Second, sleepy(10 * time.Minute), false},
		"every worker's task": {1, 35 * time.Second, sleepy(10 * time.Minute), false},
		"a commit":            {4, 15 * time.Second, quick, true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				for n := range 50 {
					r.send("slow", n)
				}
				r.send("quick", 1)
				r.verdict.Incomplete = true
				hang := c.hang
				r.broker.SetHook(func(_ context.Context, call memory.Call) error {
					if call.Kind == memory.CallCommit && !call.After && hang {
						hang = false
						time.Sleep(10 * time.Minute)
					}
					return nil
				})
				var b blockages
				m := r.manager(func(ctx context.Context, d *keyseq.Delivery) error {
					if d.Key == "quick" {
						return nil
					}
					return c.task(ctx, d)
				}, func(k *keyseq.Config) {
					k.Workers, k.MaxInFlight, k.CallTimeout, k.DrainTimeout = c.workers, 20, 10*time.Second, 20*time.Minute
				}, b.listen).start()
				began := time.Now()
				time.Sleep(c.within)
				n, first, keys := b.seen()
				if n == 0 {
					r.Errorf("after %v nothing is told: %+v", c.within, m.Snapshot())
				} else if !slices.Contains(keys, "slow") {
					r.Errorf("told after %v, with %v", first.Sub(began), keys)
				}
			})
		})
	}
}

// A key with a long backlog of short tasks fills the window too: that is no stall, and is not told.
func TestH13_AHotKeyThatMovesIsNotTold(t *testing.T) {
	bubble(t, func(r *rig) {
		for n := range 2000 {
			r.send("hot", n)
		}
		var b blockages
		r.manager(sleepy(10*time.Millisecond), func(c *keyseq.Config) { c.MaxInFlight = 20 }, b.listen).start()
		r.drained()
		if n, _, _ := b.seen(); n != 0 {
			r.Errorf("Blocked was told %d times", n)
		}
	})
}

// T16: one key that sleeps for ten minutes costs the 999 others nothing.
func TestT16_OneSleepingKeyCostsTheOthersNothing(t *testing.T) {
	run := func(sleeper bool) (took time.Duration) {
		bubble(t, func(r *rig) {
			if sleeper {
				r.send("sleeper", 1, 2, 3)
			}
			r.interleaved(999, 3)
			m := r.manager(func(_ context.Context, d *keyseq.Delivery) error {
				if d.Key == "sleeper" {
					time.Sleep(10 * time.Minute)
				}
				time.Sleep(time.Millisecond)
				return nil
			}, func(c *keyseq.Config) { c.MaxInFlight = 1000 }).start()
			began := time.Now()
			r.until("the others are done", func() bool { return m.Snapshot().Committed == 2997 })
			took = time.Since(began)
			r.drained()
		})
		return took
	}
	without, with := run(false), run(true)
	if with > without+without*6/100+time.Millisecond { // one worker of 20 is away
		t.Errorf("%v with the sleeper, %v without", with, without)
	}
}

// T17: 200 messages that are retried for an hour cost no more memory at the end than at the beginning.
func TestT17_RetriesDoNotPileUp(t *testing.T) {
	retries := 1000
	if soak() {
		retries = 3600
	}
	bubble(t, func(r *rig) {
		r.unjudged = true // the record of all attempts would be what grows
		for k := range 200 {
			must(r.broker.Send(keyseq.Outgoing{Queue: inQueue, Body: fmt.Appendf(nil, "p%d.1", k)}))
		}
		var attempts atomic.Int64
		listener := keyseq.ListenerFuncs{Task: func(context.Context, *keyseq.Delivery) error {
			attempts.Add(1)
			return errPoison
		}}
		m := must(keyseq.NewSequenceManager(inQueue, r.factory, listener, keyseq.KeyFromBodyBefore("."), func(c *keyseq.Config) {
			c.Retry = keyseq.RetryPolicy{MaxRetries: keyseq.Unlimited, Backoff: keyseq.FixedBackoff(time.Second)}
		}))
		s := &subject{SequenceManager: m, rig: r, name: "A"}
		r.managers = append(r.managers, s)
		s.start()
		heap := func() uint64 {
			runtime.GC()
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
			return stats.HeapAlloc
		}
		time.Sleep(100*time.Second + 500*time.Millisecond)
		before := heap()
		time.Sleep(time.Duration(retries-100) * time.Second)
		synctest.Wait()
		after := heap()
		if n := attempts.Load(); n != int64(200*(retries+1)) {
			r.Errorf("%d attempts, want %d", n, 200*(retries+1))
		}
		if after > before+before/2+1<<20 {
			r.Errorf("the heap has grown from %d to %d bytes", before, after)
		}
		if s := m.Snapshot(); s.Retrying > 200 || s.InFlight > 201 {
			r.Errorf("%+v", s)
		}
	})
}

var errPoison = errors.New("poison")

// T31: keys that have been idle for an hour cost no worker, no session and no goroutine.
func TestT31_IdleKeysCostNothing(t *testing.T) {
	bubble(t, func(r *rig) {
		m := r.manager(quick, func(c *keyseq.Config) { c.Workers = 5 }).start()
		r.send("first", 1)
		r.drained()
		before, sessions := runtime.NumGoroutine(), m.Snapshot().Sessions
		for k := range 2000 {
			r.send(fmt.Sprint("k", k), 1)
			if k%10 == 9 {
				r.drained()
			}
		}
		time.Sleep(time.Hour)
		s := m.Snapshot()
		if s.Keys != 0 || s.Sessions > sessions+10 || s.InFlight > 1 {
			r.Errorf("after an hour: %+v", s)
		}
		if n := runtime.NumGoroutine(); n > before+5 {
			r.Errorf("%d goroutines, %d before", n, before)
		}
	})
}

// H13, R2.13: a broker that allows few sessions is read with those, and all is handled; when it allows more, more are used.
func TestH13_FewSessions(t *testing.T) {
	bubble(t, func(r *rig) {
		other := must(r.broker.Connect(r.Context(), jms.Subscription{Queue: outQueue}))
		for range 7 {
			must(other.OpenSession(r.Context()))
		}
		r.interleaved(20, 10)
		m := r.manager(sleepy(time.Second)).start()
		r.until("three run", func() bool { return m.Snapshot().Running == 3 })
		time.Sleep(10*time.Second + 500*time.Millisecond)
		if s := m.Snapshot(); s.Running != 3 || s.MaxInFlight != 3 {
			r.Errorf("%d run, MaxInFlight %d; the broker has three sessions left", s.Running, s.MaxInFlight)
		}
		must(0, other.Close(r.Context()))
		time.Sleep(time.Minute)
		if s := m.Snapshot(); r.broker.Depth(inQueue) > 0 && s.MaxInFlight < 10 {
			r.Errorf("MaxInFlight is %d a minute after the broker had sessions again", s.MaxInFlight)
		}
		r.drained()
	}, memory.Profile{MaxSessions: 10})
}
