package keyseq_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/memory"
)

// The counterexamples A to L of docs/model.md are the shortest traces by which an order breaks if one clause of the give-back rule is left
// out. Each is played here with the real manager.

// sleepy is a task of a length, whatever its context says.
func sleepy(d time.Duration) taskFunc {
	return func(context.Context, *keyseq.Delivery) error {
		time.Sleep(d)
		return nil
	}
}

// A: from the moment of the loss the key starts nothing, also while reading is still being stopped.
func TestCounterexampleA_ARolledBackKeyStartsNothing(t *testing.T) {
	profiles(t, func(r *rig) {
		r.send("K", 1, 2, 3)
		r.failCommit("K.1", 2, jms.ErrRolledBack, nil)
		var j journal
		r.manager(starts(&j, sleepy(10*time.Millisecond))).start()
		r.drainedSlowly()
		r.want("K", j.all(), "K.1 K.1 K.1 K.2 K.3")
	})
}

// B: a Rollback that fails while the key is given back is a loss like any other: its key waits until the broker has the message.
func TestCounterexampleB_ARollbackThatFailsIsALoss(t *testing.T) {
	for _, failure := range []error{jms.ErrSessionLost, jms.ErrConnectionLost, errors.New("code 2195")} {
		t.Run(failure.Error(), func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.send("K", 1, 2, 3)
				committed, given := false, false
				r.hook(func(c memory.Call) error {
					switch {
					case c.Kind == memory.CallCommit && !c.After && !committed:
						committed = true
						return jms.ErrRolledBack
					case c.Kind == memory.CallRollback && !c.After && string(c.Message.Body) == "K.1" && !given:
						given = true // the copy that the outstanding Receive has brought
						r.lossNow(failure.Error())
						return failure
					}
					return nil
				})
				var j journal
				r.manager(starts(&j, sleepy(time.Second))).start()
				r.drainedSlowly()
				r.want("K", j.all(), "K.1 K.1 K.2 K.3")
				if !given {
					r.Error("the test needs a second copy of K.1 that is given back")
				}
			}, lateReturn())
		})
	}
}

// C: the deadline counts from the LAST loss of any session of the queue.
func TestCounterexampleC_TheLastLossCounts(t *testing.T) {
	bubble(t, func(r *rig) {
		r.send("L", 1, 2)
		r.send("K", 1, 2)
		failed := map[string]bool{}
		var second time.Time
		r.hook(func(c memory.Call) error {
			if body := ""; c.Kind == memory.CallCommit && !c.After {
				body = string(c.Message.Body)
				if strings.HasSuffix(body, ".1") && !failed[body] {
					failed[body] = true
					r.lossNow("loss")
					second = time.Now()
					return jms.ErrSessionLost
				}
			}
			return nil
		})
		var j journal
		r.manager(starts(&j, func(_ context.Context, d *keyseq.Delivery) error {
			if len(ofKey(j.all(), d.Key)) == 1 && d.Key == "K" {
				time.Sleep(10 * time.Second)
			}
			return nil
		})).start()
		r.drainedSlowly()
		r.want("K", ofKey(j.all(), "K"), "K.1 K.1 K.2")
		r.want("L", ofKey(j.all(), "L"), "L.1 L.1 L.2")
		if waited := time.Since(second); waited < 15*time.Second {
			r.Errorf("all is settled %v after the second loss, before its message was back", waited)
		}
	}, lateReturn())
}

// D: a commit that has overrun CallTimeout is no loss yet: its key waits until it returns, whatever it says then, and whatever has passed; the
// others go on, with its worker.
func TestCounterexampleD_AnOverdueCommitHoldsItsKeyUntilItReturns(t *testing.T) {
	for _, p := range []memory.Profile{{Name: "plain"}, lateReturn(), memory.LikeIBMMQ()} {
		for _, outcome := range []error{nil, jms.ErrRolledBack, jms.ErrCommitUnknown, jms.ErrSessionLost} {
			t.Run(fmt.Sprint(p.Name, "/", outcome), func(t *testing.T) {
				bubble(t, func(r *rig) {
					r.send("K", 1, 2, 3)
					r.send("L", 1, 2, 3)
					hung := false
					returns := make(chan struct{})
					r.broker.SetHook(func(_ context.Context, c memory.Call) error {
						if c.Kind == memory.CallCommit && !c.After && string(c.Message.Body) == "K.1" && !hung {
							hung = true
							<-returns
							if outcome != nil {
								r.lossNow(outcome.Error())
							}
							return outcome
						}
						return nil
					})
					var j, stuck journal
					m := r.manager(starts(&j, quick), func(c *keyseq.Config) {
						c.Workers, c.CallTimeout = 1, 10*time.Second
						c.Events = append(c.Events, keyseq.Events{Stuck: func(k keyseq.KeyReport) { stuck.add("%s", k.Key) }})
					}).start()
					time.Sleep(10 * time.Minute)
					r.want("while the commit hangs", ofKey(j.all(), "K"), "K.1")
					r.want("the others, with one worker", ofKey(j.all(), "L"), "L.1 L.2 L.3")
					r.want("Stuck", stuck.all(), "K")
					if err := m.Live(); err != nil {
						r.Errorf("Live: %v, though the other keys go on", err)
					}
					close(returns)
					r.drainedSlowly()
					want := "K.1 K.1 K.2 K.3"
					if outcome == nil {
						want = "K.1 K.2 K.3"
					}
					r.want("K", ofKey(j.all(), "K"), want)
				}, p)
			})
		}
	}
}

// E: where only closing the connection gives back, a task that goes on after its connection is lost just goes when it ends: it is no new
// loss, or two such tasks would take the connections from each other for ever.
func TestCounterexampleE_ATaskThatOutlivesItsConnectionIsNoNewLoss(t *testing.T) {
	profiles(t, func(r *rig) {
		for _, key := range []string{"K", "L", "M"} {
			r.send(key, 1, 2, 3)
		}
		connects := 0
		r.hook(func(c memory.Call) error {
			if c.Kind == memory.CallConnect && !c.After {
				connects++
			}
			return nil
		})
		var j journal
		m := r.manager(starts(&j, sleepy(40*time.Second))).start()
		r.slowly("all run", func() bool { return m.Snapshot().Running == 3 })
		time.Sleep(time.Second)
		r.losing("connection", func() {
			must(r.broker.Break(inQueue, memory.Loss{}))
			r.drainedSlowly()
		})
		if connects != 2 {
			r.Errorf("%d connections, want 2: one was lost", connects)
		}
		r.want("K", ofKey(j.all(), "K"), "K.1 K.1 K.2 K.3")
	})
}

// I: what was lost while a Stop or Shutdown was under way is still locked at the next Start.
func TestCounterexampleI_TheDeadlineOutlivesTheRun(t *testing.T) {
	for name, end := range map[string]func(*subject) error{
		"Stop":     func(s *subject) error { return s.stop(time.Minute) },
		"Shutdown": func(s *subject) error { return s.shutdown(time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			profiles(t, func(r *rig) {
				r.send("K", 1)
				r.failCommit("K.1", 1, jms.ErrSessionLost, nil)
				var j journal
				m := r.manager(starts(&j, sleepy(10*time.Second))).start()
				r.slowly("K.1 runs", func() bool { return len(j.all()) == 1 })
				r.send("K", 2)
				if err := end(m); err != nil {
					r.Fatal(err)
				}
				time.Sleep(time.Second)
				m.start()
				r.drainedSlowly()
				if got := strings.Join(j.all(), " "); got != "K.1 K.1 K.2" {
					r.Errorf("K: %s", got)
				}
			})
		})
	}
}

// J: the messages behind a task that outlives its connection come twice, not three times.
func TestCounterexampleJ_AZombieThatEndsGivesNothingBack(t *testing.T) {
	profiles(t, func(r *rig) {
		r.send("K", 1, 2, 3)
		var received, j journal
		m := r.manager(starts(&j, func(context.Context, *keyseq.Delivery) error {
			if len(j.all()) == 1 {
				time.Sleep(5 * time.Minute)
			}
			return nil
		}), func(c *keyseq.Config) {
			c.Events = append(c.Events, keyseq.Events{Received: func(e keyseq.MessageEvent) { received.add("%s", e.Delivery.Body) }})
		}).start()
		r.slowly("all are received", func() bool { return m.Snapshot().Received == 3 })
		r.losing("connection", func() {
			must(r.broker.Break(inQueue, memory.Loss{}))
			r.drainedSlowly()
		})
		r.want("received", received.all(), "K.1 K.2 K.3 K.1 K.2 K.3")
		r.want("K", j.all(), "K.1 K.1 K.2 K.3")
	})
}

// K: where a message that is given back alone loses its place, none is: whatever happens, only closing the connection gives back.
func TestCounterexampleK_NothingIsGivenBackAloneWhereThatLosesThePlace(t *testing.T) {
	for _, p := range []memory.Profile{
		{Name: "to the tail", Rollback: memory.RollbackToTail}, {Name: "closes", Rollback: memory.RollbackLosesConnection},
		{Name: "in the order of return", ReturnOrder: true}, memory.LikeRabbitMQ(), memory.LikeQuorum(),
	} {
		t.Run(p.Name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				alone := 0
				r.hook(func(c memory.Call) error {
					if c.After || c.Message == nil {
						return nil
					}
					if c.Kind == memory.CallRollback || c.Kind == memory.CallCloseSession {
						alone++
					}
					return nil
				})
				r.interleaved(3, 20)
				failed := map[string]bool{}
				m := r.manager(func(_ context.Context, d *keyseq.Delivery) error {
					time.Sleep(10 * time.Second)
					if r.mu.Lock(); !failed[string(d.Body)] {
						failed[string(d.Body)] = true
						r.mu.Unlock()
						return errors.New("once")
					}
					r.mu.Unlock()
					return nil
				}, func(c *keyseq.Config) {
					c.MaxHold = 30 * time.Second
					c.TaskTimeout = 20 * time.Second
					c.Retry.Backoff = keyseq.FixedBackoff(5 * time.Second)
				}).start()
				for range 4 {
					time.Sleep(90 * time.Second)
					if err := m.stop(25 * time.Second); err != nil && !errors.Is(err, keyseq.ErrDrainTimeout) {
						r.Fatal(err)
					}
					<-m.Done()
					m.start()
				}
				r.drainedSlowly()
				r.locked(func() {
					if alone != 0 {
						r.Errorf("%d messages were given back alone", alone)
					}
				})
				if m.Snapshot().RolledBack == 0 {
					r.Error("nothing was given back: the test shows nothing")
				}
			}, p)
		})
	}
}

// H2: the followers of a lost message fill the window and must not keep it out.
func TestH02_FollowersDoNotKeepALostMessageOut(t *testing.T) {
	profiles(t, func(r *rig) {
		for n := range 60 {
			r.send("K", n)
			r.send(fmt.Sprint("L", n%7), n)
		}
		r.failCommit("K.0", 3, jms.ErrSessionLost, nil)
		r.manager(quick, func(c *keyseq.Config) { c.MaxInFlight = 10 }).start()
		r.drainedSlowly()
	})
}

// H3: a message comes back before its holder knows, or at another place than it had.
func TestH03_AMessageThatIsBackBeforeItsLossIsKnown(t *testing.T) {
	held := func(r *rig, body string) string {
		for _, m := range must(r.broker.Held(inQueue)) {
			if string(m.Body) == body {
				return m.ID
			}
		}
		r.Fatalf("%s is not held", body)
		return ""
	}
	for name, lose := range map[string]func(r *rig){
		"the running one, taken back in silence": func(r *rig) { must(r.broker.TakeBack(held(r, "K.1")), nil) },
		"a waiting one, taken back in silence":   func(r *rig) { must(r.broker.TakeBack(held(r, "K.3")), nil) },
		"its session, at once":                   func(r *rig) { must(r.broker.LoseSession(held(r, "K.1"), memory.Loss{Broker: memory.AtOnce}), nil) },
		"a waiting one's session, at once":       func(r *rig) { must(r.broker.LoseSession(held(r, "K.3"), memory.Loss{Broker: memory.AtOnce}), nil) },
		"the later one is back first": func(r *rig) {
			must(r.broker.LoseSession(held(r, "K.1"), memory.Loss{}), nil)
			must(r.broker.LoseSession(held(r, "K.3"), memory.Loss{Broker: memory.AtOnce}), nil)
		},
		"all waiting ones, the latest first": func(r *rig) {
			for i, body := range []string{"K.5", "K.4", "K.3", "K.2"} {
				must(r.broker.LoseSession(held(r, body), memory.Loss{Broker: time.Duration(i+1) * 3 * time.Second}), nil)
			}
		},
	} {
		for _, p := range []memory.Profile{{Name: "plain"}, lateReturn(), memory.LikeIBMMQ()} {
			t.Run(name+"/"+p.Name, func(t *testing.T) {
				bubble(t, func(r *rig) {
					r.send("K", 1, 2, 3, 4, 5)
					var j journal
					m := r.manager(starts(&j, func(_ context.Context, d *keyseq.Delivery) error {
						if string(d.Body) == "K.1" {
							time.Sleep(time.Minute)
						}
						return nil
					})).start()
					r.slowly("all are received", func() bool { return m.Snapshot().Received == 5 })
					time.Sleep(time.Second)
					r.losing(name, func() {
						lose(r)
						r.drainedSlowly()
					})
				}, p)
			})
		}
	}
}

// T2: what was sent ahead behind a message that fails does not reach the task before that one is settled.
func TestT02_WhatWasSentAheadWaitsForTheOneThatFailed(t *testing.T) {
	profiles(t, func(r *rig) {
		r.send("K", 0, 1, 2, 3, 4)
		var j journal
		m := r.manager(starts(&j, func(_ context.Context, d *keyseq.Delivery) error {
			if string(d.Body) == "K.0" && d.Attempt < 3 {
				return errors.New("not yet")
			}
			return nil
		}), func(c *keyseq.Config) { c.Retry.Backoff = keyseq.FixedBackoff(time.Minute) }).start()
		r.slowly("all five are received", func() bool { return m.Snapshot().InFlight >= 5 })
		r.drainedSlowly()
		r.want("K", j.all(), "K.0 K.0 K.0 K.1 K.2 K.3 K.4")
	})
}

// T3: one failure in the middle, retried in place or rolled back at the broker: the order is the same.
func TestT03_AFailureInTheMiddleEitherWay(t *testing.T) {
	t.Run("in place", func(t *testing.T) {
		profiles(t, func(r *rig) {
			r.send("K", 1, 2, 3, 4, 5)
			var j journal
			r.manager(starts(&j, func(_ context.Context, d *keyseq.Delivery) error {
				if string(d.Body) == "K.3" && d.Attempt == 1 {
					return errors.New("once")
				}
				return nil
			})).start()
			r.drainedSlowly()
			r.want("K", j.all(), "K.1 K.2 K.3 K.3 K.4 K.5")
		})
	})
	t.Run("rolled back", func(t *testing.T) {
		profiles(t, func(r *rig) {
			r.send("K", 1, 2, 3, 4, 5)
			r.failCommit("K.3", 1, jms.ErrRolledBack, nil)
			var j journal
			r.manager(starts(&j, sleepy(time.Second))).start() // longer than an acknowledgement needs
			r.drainedSlowly()
			r.want("K", j.all(), "K.1 K.2 K.3 K.3 K.4 K.5")
		})
	})
}

// Give-back goes from the newest to the oldest, so that whoever looks at the queue meanwhile never finds a later message in front of a missing one.
func TestH03_GivesBackNewestFirst(t *testing.T) {
	for _, p := range []memory.Profile{{Name: "plain"}, lateReturn(), memory.LikeIBMMQ()} {
		t.Run(p.Name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.send("K", 1, 2, 3, 4, 5)
				var back journal
				failed := false
				r.hook(func(c memory.Call) error {
					switch {
					case c.Kind == memory.CallCommit && !c.After && !failed:
						failed = true
						r.lossNow("session")
						return jms.ErrSessionLost
					case c.Kind == memory.CallRollback && !c.After && string(c.Message.Body) != "K.1":
						back.add("%s", c.Message.Body)
					}
					return nil
				})
				r.manager(sleepy(time.Second)).start()
				r.drainedSlowly()
				r.want("given back", back.all(), "K.5 K.4 K.3 K.2")
			}, p)
		})
	}
}

// H18: a Rollback that does not return costs its connection, so that giving back a hundred messages costs one CallTimeout and not a hundred; whatever it
// does later does nothing.
func TestH18_ARollbackThatDoesNotReturnCostsItsConnection(t *testing.T) {
	for _, p := range []memory.Profile{{Name: "plain"}, lateReturn(), memory.LikeIBMMQ()} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprint(p.Name, "/effect first ", after), func(t *testing.T) {
				bubble(t, func(r *rig) {
					for n := range 100 {
						r.send("K", n)
					}
					r.send("L", 1, 2, 3)
					var rollbacks, commits atomic.Int32
					const late = time.Hour
					r.broker.SetHook(func(_ context.Context, c memory.Call) error {
						switch {
						case c.Kind == memory.CallCommit && !c.After && string(c.Message.Body) == "K.0" && commits.Add(1) == 1:
							return jms.ErrRolledBack
						case c.Kind == memory.CallRollback && c.After == after:
							rollbacks.Add(1)
							time.Sleep(late)
						}
						return nil
					})
					var stuck journal
					m := r.manager(func(_ context.Context, d *keyseq.Delivery) error {
						if string(d.Body) == "K.0" {
							time.Sleep(time.Second) // all others are received
						}
						return nil
					}, func(c *keyseq.Config) {
						c.CallTimeout = 30 * time.Second
						c.Events = append(c.Events, keyseq.Events{Stuck: func(k keyseq.KeyReport) { stuck.add("%s: %s", k.Key, k.Reason) }})
					}).start()
					began := time.Now()
					loss := r.audit.Loss("", "a Rollback hangs", 0)
					r.drainedSlowly()
					loss.Done()
					if took := time.Since(began); took > 2*time.Minute+2*r.profile.ReturnDelay {
						r.Errorf("the 100 messages of K took %v", took)
					}
					if n := rollbacks.Load(); n != 1 {
						r.Errorf("%d Rollbacks hung, want 1", n)
					}
					r.want("Stuck", stuck.all(), "K: rollback does not return: its connection is closed")
					if err := m.shutdown(time.Minute); err != nil {
						r.Errorf("Shutdown: %v", err)
					}
					time.Sleep(2 * late)
				}, p)
			})
		}
	}
}
