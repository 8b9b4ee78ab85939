package keyseq_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/memory"
)

// G8: a callback that panics, or ends its goroutine as t.FailNow does, stops nothing, on whichever goroutine of the manager it runs: one that works, that
// reads, that gives back, or that watches.
func TestG8_CallbacksThatPanicOrEndTheirGoroutine(t *testing.T) {
	for how, misbehave := range map[string]func(){"panic": func() { panic("bad callback") }, "exit": runtime.Goexit} {
		bad := func(keyseq.MessageEvent) { misbehave() }
		for name, configure := range map[string]func(r *rig, e *keyseq.Events){
			"Committed":  func(_ *rig, e *keyseq.Events) { e.Committed = bad },
			"RolledBack": func(_ *rig, e *keyseq.Events) { e.RolledBack = bad },
			"Retrying":   func(_ *rig, e *keyseq.Events) { e.Retrying = bad },
			"Started": func(r *rig, e *keyseq.Events) {
				seen := map[string]bool{} // a task that never gets to run is never done
				e.Started = func(m keyseq.MessageEvent) {
					first := false
					r.locked(func() { first, seen[string(m.Delivery.Body)] = !seen[string(m.Delivery.Body)], true })
					if first {
						misbehave()
					}
				}
			},
			"OnMessageError": func(r *rig, _ *keyseq.Events) {
				r.onError = func(*keyseq.Delivery, error, bool) { misbehave() }
			},
			"State": func(r *rig, e *keyseq.Events) {
				e.State = func(from, _ keyseq.State, _ error) {
					if from != keyseq.StateStopped { // not on the caller's own goroutine
						misbehave()
					}
				}
			},
			"Blocked": func(_ *rig, e *keyseq.Events) { e.Blocked = func([]keyseq.KeyReport) { misbehave() } },
			"Stuck":   func(_ *rig, e *keyseq.Events) { e.Stuck = func(keyseq.KeyReport) { misbehave() } },
		} {
			t.Run(how+" in "+name, func(t *testing.T) {
				bubble(t, func(r *rig) {
					r.unjudged = true // it cannot keep its books either
					for n := range 30 {
						r.send("K", n)
						r.send("L", n)
					}
					commits := 0
					r.broker.SetHook(func(_ context.Context, c memory.Call) error {
						if c.Kind != memory.CallCommit || c.After {
							return nil
						}
						var outcome error
						hang := false
						r.locked(func() {
							commits++
							hang = commits == 5
							outcome = map[int]error{3: jms.ErrRolledBack, 8: jms.ErrSessionLost, 12: jms.ErrBusy}[commits]
						})
						if hang {
							time.Sleep(20 * time.Second)
						}
						return outcome
					})
					fails := map[string]bool{}
					var e keyseq.Events
					m := r.manager(func(_ context.Context, d *keyseq.Delivery) error {
						time.Sleep(time.Second)
						var failed bool
						r.locked(func() {
							failed = !fails[string(d.Body)] && len(d.Body)%2 == 0
							fails[string(d.Body)] = true
						})
						if failed {
							return errors.New("once")
						}
						return nil
					}, func(c *keyseq.Config) {
						c.MaxInFlight, c.CallTimeout, c.MaxHold, c.TaskTimeout = 8, 5*time.Second, 25*time.Second, 10*time.Second
						c.Retry.Backoff = keyseq.FixedBackoff(2 * time.Second)
						configure(r, &e)
						c.Events = []keyseq.Events{e}
					}).start()
					time.Sleep(time.Minute)
					must(r.broker.Break(inQueue, memory.Loss{}))
					r.drainedSlowly()
					if err := m.shutdown(time.Minute); err != nil {
						r.Errorf("Shutdown: %v", err)
					}
				})
			})
		}
	}
}

// An OnMessageError that blocks holds its own key only.
func TestG5_AnOnMessageErrorThatBlocksHoldsItsKeyOnly(t *testing.T) {
	bubble(t, func(r *rig) {
		release := make(chan struct{})
		r.onError = func(*keyseq.Delivery, error, bool) { <-release }
		r.send("K", 1, 2)
		r.interleaved(10, 10)
		m := r.manager(func(_ context.Context, d *keyseq.Delivery) error {
			if string(d.Body) == "K.1" && d.Attempt == 1 {
				return errors.New("once")
			}
			return nil
		}).start()
		time.Sleep(time.Hour)
		if s := m.Snapshot(); s.Committed != 100 {
			r.Errorf("%d of the 100 others are done", s.Committed)
		}
		close(release)
		r.drained()
	})
}
