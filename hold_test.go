package keyseq_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/memory"
)

// lostByBroker notes each connection that was lost, as against given up in order.
func lostByBroker(j *journal) func(*keyseq.Config) {
	return func(c *keyseq.Config) {
		c.Events = append(c.Events, keyseq.Events{State: func(from, to keyseq.State, err error) {
			if errors.Is(err, jms.ErrConnectionLost) {
				j.add("%v", err)
			}
		}})
	}
}

// H10: a key with a backlog of an hour: what waits longer than the broker allows is given back before the broker takes it, and with it every
// running task of the connection.
func TestH10_ALongBacklogIsGivenBackBeforeTheBrokerTakesIt(t *testing.T) {
	for _, p := range []memory.Profile{memory.LikeRabbitMQ(), memory.LikeQuorum(), {Name: "pull", HoldTimeout: 30 * time.Minute}} {
		t.Run(p.Name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				for n := range 1000 {
					r.send("K", n)
				}
				var lost journal
				m := r.manager(func(context.Context, *keyseq.Delivery) error {
					time.Sleep(3 * time.Second)
					return nil
				}, func(c *keyseq.Config) { c.MaxInFlight = 1000 }, lostByBroker(&lost)).start()
				r.drainedSlowly()
				if got := lost.all(); len(got) != 0 {
					r.Errorf("%d connections were closed by the broker: %v", len(got), got)
				}
				if s := m.Snapshot(); s.RolledBack == 0 || s.Retries != 0 {
					r.Errorf("%d given back, %d failed attempts; want some and none", s.RolledBack, s.Retries)
				}
			}, p)
		})
	}
}

// drainedSlowly is drained for tests in which minutes or hours pass.
func (r *rig) drainedSlowly() {
	r.Helper()
	r.slowly("the queue is empty", func() bool { return r.broker.Depth(inQueue) == 0 })
}

// slowly is until for tests in which minutes or hours pass: it looks each hundredth of what it has waited.
func (r *rig) slowly(what string, ok func() bool) {
	r.Helper()
	for began := time.Now(); ; {
		synctest.Wait()
		if ok() {
			return
		}
		waited := time.Since(began)
		if waited > 24*time.Hour {
			for _, s := range r.managers {
				r.Logf("%s: %+v", s.name, s.Snapshot())
			}
			r.Fatalf("it never came to pass that %s", what)
		}
		time.Sleep(max(10*time.Millisecond, waited/100))
	}
}

// H10: a head that fails for hours is given back too, whether it waits between its attempts or not, and what is known of its attempts is kept.
func TestH10_AHeadThatIsRetriedForHoursIsGivenBack(t *testing.T) {
	for _, pause := range []time.Duration{0, time.Minute, 14 * time.Minute} {
		t.Run(fmt.Sprint(pause), func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.send("K", 1, 2)
				r.send("L", 1)
				var lost, attempts journal
				m := r.manager(func(_ context.Context, d *keyseq.Delivery) error {
					if string(d.Body) != "K.1" {
						return nil
					}
					attempts.add("%d", d.Attempt)
					time.Sleep(4 * time.Minute)
					if d.Attempt < 12 {
						return errors.New("not yet")
					}
					return nil
				}, func(c *keyseq.Config) { c.Retry.Backoff = keyseq.FixedBackoff(pause) }, lostByBroker(&lost)).start()
				r.drainedSlowly()
				if got := lost.all(); len(got) != 0 {
					r.Errorf("connections were closed by the broker: %v", got)
				}
				r.want("attempts", attempts.all(), "1 2 3 4 5 6 7 8 9 10 11 12")
				if s := m.Snapshot(); s.RolledBack == 0 {
					r.Error("nothing was given back in 48 minutes")
				}
			}, memory.Profile{Name: "pull", HoldTimeout: 30 * time.Minute})
		})
	}
}

// H10: what waits, for its next attempt or behind a long task, goes back when MaxHold is over, not when its turn comes.
func TestH10_WhatWaitsGoesBackInTime(t *testing.T) {
	bubble(t, func(r *rig) {
		r.send("pause", 1)
		r.send("behind", 1, 2)
		back := map[string]time.Duration{}
		began := time.Now()
		m := r.manager(func(_ context.Context, d *keyseq.Delivery) error {
			if time.Since(began) > time.Minute {
				return nil
			}
			if d.Key == "pause" {
				time.Sleep(20 * time.Second)
				return keyseq.RetryAfter(39*time.Second, errors.New("down"))
			}
			time.Sleep(59 * time.Second) // deaf, and longer than allowed
			return nil
		}, func(c *keyseq.Config) {
			c.TaskTimeout, c.MaxHold = 39*time.Second, 40*time.Second
			c.Events = append(c.Events, keyseq.Events{RolledBack: func(e keyseq.MessageEvent) {
				r.locked(func() {
					if body := string(e.Delivery.Body); back[body] == 0 {
						back[body] = time.Since(began)
					}
				})
			}})
		}).start()
		r.drainedSlowly()
		r.locked(func() {
			for _, body := range []string{"pause.1", "behind.2"} {
				if at := back[body]; at < 40*time.Second || at > 42*time.Second {
					r.Errorf("%s was given back after %v, want 40 s", body, at)
				}
			}
		})
		if s := m.Snapshot(); s.Committed != 3 {
			r.Errorf("%+v", s)
		}
	})
}

// H10: where only closing the connection gives back, what runs is settled first, for DrainTimeout: nothing is interrupted and nothing done twice.
func TestH10_WhatRunsIsSettledBeforeTheConnectionIsClosed(t *testing.T) {
	for _, p := range []memory.Profile{memory.LikeRabbitMQ(), memory.LikeQuorum(), {Name: "closes", Rollback: memory.RollbackLosesConnection}} {
		t.Run(p.Name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				for n := range 300 {
					r.send("K", n)
				}
				for n := range 10 {
					r.send("L", n)
				}
				var j, interrupted journal
				m := r.manager(starts(&j, func(ctx context.Context, d *keyseq.Delivery) error {
					length := time.Second
					if d.Key == "L" {
						length = 25 * time.Second
					}
					select {
					case <-time.After(length):
						return nil
					case <-ctx.Done():
						interrupted.add("%s", d.Body)
						return ctx.Err()
					}
				}), func(c *keyseq.Config) {
					c.MaxInFlight = 400
					c.TaskTimeout, c.MaxHold, c.DrainTimeout = 30*time.Second, 40*time.Second, 30*time.Second
				}).start()
				r.drainedSlowly()
				if m.Snapshot().RolledBack == 0 {
					r.Error("nothing was given back: the test shows nothing")
				}
				if n := len(j.all()); n != 310 || len(interrupted.all()) != 0 {
					r.Errorf("%d tasks for 310 messages, interrupted %v", n, interrupted.all())
				}
			}, p)
		})
	}
}

// H10: a pause or a task that could outlast the hold is refused at Start, with both numbers.
func TestH10_PausesLongerThanTheHoldAreRefused(t *testing.T) {
	bubble(t, func(r *rig) {
		r.unjudged = true // nothing runs
		m := r.manager(quick, func(c *keyseq.Config) {
			c.TaskTimeout = time.Hour
			c.Retry.Backoff = keyseq.StepBackoff(time.Minute, 30*time.Minute, 2*time.Hour)
		})
		err := m.Start(r.Context())
		if !errors.Is(err, jms.ErrConfig) {
			r.Fatalf("Start: %v, want ErrConfig", err)
		}
		for _, part := range []string{"TaskTimeout", "1h0m0s", "Retry.Backoff", "30m0s", "15m0s"} {
			if !strings.Contains(err.Error(), part) {
				r.Errorf("the error does not say %s: %v", part, err)
			}
		}
	}, memory.LikeRabbitMQ())
}

// H10, H3: the broker takes back in silence what its log has no room for any more; the order of the key holds all the same.
func TestH10_TakenBackInSilenceForLogSpace(t *testing.T) {
	bubble(t, func(r *rig) {
		for n := range 40 {
			r.send("K", n)
		}
		r.manager(func(context.Context, *keyseq.Delivery) error {
			time.Sleep(time.Minute)
			return nil
		}, func(c *keyseq.Config) { c.MaxHold = 10 * time.Hour }).start() // the user believes in more than the broker allows
		loss := r.audit.Loss("", "the broker takes back what is held", 0)
		r.drainedSlowly()
		loss.Done()
	}, memory.Profile{Name: "pull", HoldTimeout: 10 * time.Minute})
}
