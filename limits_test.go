package keyseq_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/provider/memory"
)

// R1.07, B7: messages that wait for their predecessor hold no worker: with two workers, 50 waiting messages of a key do not delay another key.
func TestR1_07_WaitingMessagesHoldNoWorker(t *testing.T) {
	profiles(t, func(r *rig) {
		for n := range 51 {
			r.send("A", n)
		}
		r.send("B", 0)
		began := map[string]time.Time{}
		var mu sync.Mutex
		start := time.Now()
		r.manager(func(_ context.Context, d *keyseq.Delivery) error {
			mu.Lock()
			began[string(d.Body)] = time.Now()
			mu.Unlock()
			time.Sleep(time.Second)
			return nil
		}, func(c *keyseq.Config) { c.Workers = 2 }).start()
		r.drained()
		if d := began["B.0"].Sub(began["A.0"]); d != 0 {
			r.Errorf("B's head began %v after A's, want at once (test began at %v)", d, start)
		}
	})
}

// R1.11: never more than Workers tasks at once, and all of them when there are keys enough.
func TestR1_11_WorkersIsTheLimitAndIsReached(t *testing.T) {
	for _, workers := range []int{1, 7, 150} {
		profiles(t, func(r *rig) {
			r.interleaved(200, 3)
			var tasks atMost
			m := r.manager(func(context.Context, *keyseq.Delivery) error {
				tasks.enter()
				defer tasks.leave()
				time.Sleep(time.Second)
				return nil
			}, func(c *keyseq.Config) { c.Workers = workers }).start()
			r.drained()
			if n := int(tasks.most.Load()); n != workers {
				r.Errorf("at most %d tasks at once, want %d", n, workers)
			}
			if n := m.Snapshot().Workers; n > workers {
				r.Errorf("%d workers exist, limit %d", n, workers)
			}
		})
	}
}

// R1.12, B8: with all workers busy the broker shows exactly MaxInFlight unsettled messages, never one more; and who waits for room can be stopped.
func TestR1_12_ExactlyMaxInFlightIsReceived(t *testing.T) {
	profiles(t, func(r *rig) {
		r.interleaved(20, 2)
		release := make(chan struct{})
		m := r.manager(func(context.Context, *keyseq.Delivery) error {
			<-release
			return nil
		}, func(c *keyseq.Config) { c.MaxInFlight = 5; c.TaskTimeout = 0 }).start()
		r.until("the window is full", func() bool { return m.Snapshot().Running == 5 })
		time.Sleep(time.Minute)
		held := must(r.broker.Held(inQueue))
		if s := must(r.broker.Stats(inQueue)); len(held) != 5 || s.Unsettled != 5 || s.MaxUnsettled != 5 {
			r.Errorf("%d held, %d unsettled, at most %d; want 5 each", len(held), s.Unsettled, s.MaxUnsettled)
		}
		receives := r.spy.received()
		close(release)
		r.drained()
		if s := must(r.broker.Stats(inQueue)); s.MaxUnsettled != 5 {
			r.Errorf("in the end at most %d were unsettled, want 5", s.MaxUnsettled)
		}
		if receives > 5 {
			r.Errorf("%d Receives while there was room for 5 messages", receives)
		}
	})
	bubble(t, func(r *rig) {
		r.interleaved(20, 1)
		m := r.manager(func(ctx context.Context, _ *keyseq.Delivery) error { time.Sleep(time.Minute); return nil }, func(c *keyseq.Config) {
			c.MaxInFlight = 5
		}).start()
		synctest.Wait()
		began := time.Now()
		if err := m.shutdown(longest); err != nil || time.Since(began) != time.Minute {
			r.Errorf("Shutdown with a reader that waits for room: %v after %v, want nil after the minute of the tasks", err, time.Since(began))
		}
	})
}

// R1.12: the window also counts bytes: no message is received while those held have reached the limit.
func TestR1_12_BytesBoundTheWindow(t *testing.T) {
	bubble(t, func(r *rig) {
		r.unjudged = true
		for k := range 20 {
			must(r.broker.Send(keyseq.Outgoing{Queue: inQueue, Body: append(fmt.Appendf(nil, "k%d.", k), make([]byte, 1000)...)}))
		}
		m := r.manager(func(context.Context, *keyseq.Delivery) error { time.Sleep(time.Minute); return nil }, func(c *keyseq.Config) {
			c.MaxInFlightBytes = 5000
		}).start()
		time.Sleep(time.Second)
		if n := m.Snapshot().Running; n != 5 {
			r.Errorf("%d messages of 1,003 bytes run with a limit of 5,000, want 5", n)
		}
		r.drained()
	})
}

// B7: the pattern that ruins a pool in which waiting messages hold workers: 24 messages of a key in a row. With a window of 1,300 it runs nearly as
// fast as the interleaved one; the ideal is 400 a second.
func TestB07_GroupedLoadIsAsFastAsInterleaved(t *testing.T) {
	const keys, each = 480, 24
	for _, c := range []struct {
		name    string
		grouped bool
		least   float64
	}{{"grouped", true, 320}, {"interleaved", false, 360}} {
		for _, p := range []memory.Profile{{Name: "plain"}, costly()} {
			t.Run(c.name+" "+p.Name, func(t *testing.T) {
				bubble(t, func(r *rig) {
					if c.grouped {
						for k := range keys {
							for n := range each {
								r.send(fmt.Sprint("k", k), n)
							}
						}
					} else {
						r.interleaved(keys, each)
					}
					m := r.manager(func(context.Context, *keyseq.Delivery) error { time.Sleep(250 * time.Millisecond); return nil }, func(c *keyseq.Config) {
						c.Workers, c.MaxInFlight = 100, 1300
					})
					began := time.Now()
					m.start()
					r.drained()
					rate := keys * each / time.Since(began).Seconds()
					if rate < c.least {
						r.Errorf("%.0f messages a second, want at least %.0f", rate, c.least)
					}
					r.Logf("%.0f messages a second, %d sessions", rate, r.spy.most)
					if !c.grouped && p.CostlySessions && r.spy.most > 115 {
						r.Errorf("%d sessions, where 100 tasks of different keys need little more than 100", r.spy.most)
					}
				}, p)
			})
		}
	}
}

// costly is a broker on which a session costs a connection.
func costly() memory.Profile {
	p := memory.LikeIBMMQ()
	p.Name, p.MaxSessions = "costly sessions", 2000
	return p
}

// T19: a queue of any length in front of blocked tasks: no more than the window is taken from the broker.
func TestT19_ALongQueueStaysAtTheBroker(t *testing.T) {
	n := 50_000
	if soak() {
		n = 1_000_000
	}
	bubble(t, func(r *rig) {
		r.unjudged = true // too many for an audit
		out := make([]keyseq.Outgoing, 1000)
		for i := 0; i < n; i += len(out) {
			for j := range out {
				out[j] = keyseq.Outgoing{Queue: inQueue, Body: fmt.Appendf(nil, "k%d.%d", (i+j)%100, i+j)}
			}
			must(r.broker.SendBatch(out))
		}
		m := r.manager(func(ctx context.Context, _ *keyseq.Delivery) error { <-ctx.Done(); return ctx.Err() }, func(c *keyseq.Config) {
			c.MaxInFlight = 64
		}).start()
		time.Sleep(10 * time.Minute)
		if s := m.Snapshot(); s.InFlight != 64 || s.Received != 64 || s.Running != 20 {
			r.Errorf("in flight %d, received %d, running %d; want 64, 64, 20", s.InFlight, s.Received, s.Running)
		}
		if s := must(r.broker.Stats(inQueue)); s.MaxUnsettled != 64 {
			r.Errorf("at most %d were unsettled at the broker, want 64", s.MaxUnsettled)
		}
		if err := m.shutdown(time.Second); err == nil {
			r.Error("Shutdown returned nil although it had to cancel tasks")
		}
		r.until("it has ended", func() bool { return m.State() == keyseq.StateStopped })
	})
}
