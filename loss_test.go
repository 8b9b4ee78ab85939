package keyseq_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/memory"
)

// lateReturn is a broker that keeps what was lost locked for 15 s and gives back in place, and whose calls obey their contexts.
func lateReturn() memory.Profile {
	return memory.Profile{Name: "late return", ReturnDelay: 15 * time.Second}
}

// starts notes the tasks of each key, in the order in which they begin.
func starts(j *journal, task taskFunc) taskFunc {
	return func(ctx context.Context, d *keyseq.Delivery) error {
		j.add("%s", d.Body)
		return task(ctx, d)
	}
}

// ofKey picks the messages of a key.
func ofKey(bodies []string, key string) (own []string) {
	for _, b := range bodies {
		if strings.HasPrefix(b, key+".") {
			own = append(own, b)
		}
	}
	return own
}

// want compares what was started with what must have been.
func (r *rig) want(what string, got []string, want string) {
	r.Helper()
	if s := strings.Join(got, " "); s != want {
		r.Errorf("%s: %s, want %s", what, s, want)
	}
}

// H1: a Receive is lost on an idle queue, and the message that it takes when one arrives is locked by a client that knows nothing of it. Nothing of
// the queue is read before that message must be back.
func TestH01_ALostReceiveWaitsForTheWholeQueue(t *testing.T) {
	for _, p := range []memory.Profile{lateReturn(), memory.LikeIBMMQ()} {
		t.Run(p.Name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				var j journal
				m := r.manager(starts(&j, quick)).start()
				r.slowly("it reads", func() bool { return m.State() == keyseq.StateActive })
				time.Sleep(time.Second)
				r.losing("receive", func() {
					if n := must(r.broker.LoseReceive(inQueue, memory.Loss{})); n != 1 {
						r.Fatalf("%d Receives were lost", n)
					}
					r.send("K", 5) // taken by the lost Receive
				})
				r.send("K", 6)
				r.send("L", 1)
				time.Sleep(14 * time.Second)
				r.want("before the message of the lost Receive is back", j.all(), "")
				r.drainedSlowly()
				r.want("K", ofKey(j.all(), "K"), "K.5 K.6")
			}, p)
		})
	}
}

// H1: the Receive is lost while reading comes to a stop, because another key has to give back, or because it is asked whether it is alive.
func TestH01_AReceiveLostWhileReadingStopsWaitsToo(t *testing.T) {
	t.Run("give back", func(t *testing.T) {
		bubble(t, func(r *rig) {
			var j journal
			failed := make(chan struct{})
			r.failCommit("A.1", 1, jms.ErrSessionLost, func() { close(failed) })
			r.manager(starts(&j, quick)).start()
			r.send("A", 1)
			<-failed
			time.Sleep(15*time.Second + 100*time.Millisecond) // A.1 is back, and held; the Receive behind it looks at its context each second
			r.losing("receive", func() {
				if n := must(r.broker.LoseReceive(inQueue, memory.Loss{})); n != 1 {
					r.Fatalf("%d Receives were lost", n)
				}
				r.send("K", 5)
			})
			r.send("K", 6)
			r.drainedSlowly()
			r.want("K", ofKey(j.all(), "K"), "K.5 K.6")
		}, memory.LikeIBMMQ())
	})
	t.Run("probe", func(t *testing.T) {
		bubble(t, func(r *rig) {
			var j journal
			m := r.manager(starts(&j, quick), func(c *keyseq.Config) { c.CallTimeout = 10 * time.Second }).start()
			r.slowly("it reads", func() bool { return m.State() == keyseq.StateActive })
			for i := range 10 { // some of them hit the slice in which the Receive is being ended
				time.Sleep(10*time.Second + 100*time.Millisecond)
				r.losing("receive", func() {
					must(r.broker.LoseReceive(inQueue, memory.Loss{}))
					r.send("K", 2*i)
				})
				r.send("K", 2*i+1)
				r.drainedSlowly()
			}
		}, memory.LikeIBMMQ())
	})
}

// lossNow records a loss of this moment: what was settled in the same one may be lost with it.
func (r *rig) lossNow(what string) {
	loss := r.audit.Loss("A", what, 0)
	time.AfterFunc(10*time.Millisecond, loss.Done)
}

// failCommit has the first n commits of a message fail, and tells the audit and then.
func (r *rig) failCommit(body string, n int, err error, then func()) {
	r.broker.SetHook(func(_ context.Context, c memory.Call) error {
		if c.Kind != memory.CallCommit || c.After || string(c.Message.Body) != body {
			return nil
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if n == 0 {
			return nil
		}
		n--
		r.lossNow(err.Error())
		if then != nil {
			then()
		}
		return err
	})
}

// H5, counterexample H: after a start, what a dead process held is still locked: a Start that is ended while it waits for that, and made again,
// waits anew.
func TestH05_AStartThatIsCutShortDoesNotCountAsWaited(t *testing.T) {
	for name, end := range map[string]func(*subject) error{
		"Stop":     func(s *subject) error { return s.stop(time.Minute) },
		"Shutdown": func(s *subject) error { return s.shutdown(time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.send("K", 1, 2)
				r.deadReader(1)
				var j journal
				m := r.manager(starts(&j, quick)).start()
				time.Sleep(2 * time.Second)
				if err := end(m); err != nil {
					r.Fatal(err)
				}
				m.start()
				r.drainedSlowly()
				r.want("K", j.all(), "K.1 K.2")
			}, lateReturn())
		})
	}
}

// deadReader has another process receive n messages and die: they stay locked for the profile's return delay.
func (r *rig) deadReader(n int) {
	r.Helper()
	c := must(r.broker.Connect(r.Context(), jms.Subscription{Queue: inQueue, Client: "dead"}))
	for range n {
		must(must(c.OpenSession(r.Context())).Receive(r.Context()))
	}
	must(r.broker.Break(inQueue, memory.Loss{}))
}

// H4, H3: the link goes dark, and each end notices when it likes: the client first, the broker at the very end of the return delay, or the
// other way round.
func TestH04_ALinkThatGoesDark(t *testing.T) {
	profiles(t, func(r *rig) {
		r.interleaved(20, 20)
		m := r.manager(sleepy(time.Second)).start()
		for i, loss := range []memory.Loss{
			{}, {Client: 15 * time.Second, Broker: 15*time.Second + r.profile.ReturnDelay - time.Millisecond}, {Client: 10 * time.Second, Broker: memory.AtOnce},
		} {
			r.slowly("it works", func() bool { return m.Snapshot().Running > 0 })
			time.Sleep(time.Second)
			if r.profile.ReturnDelay == 0 && loss.Broker > loss.Client {
				loss.Broker = loss.Client
			}
			cut := r.audit.Loss("", "dark", 0)
			if n := must(r.broker.Break(inQueue, loss)); n != 1 {
				r.Fatalf("round %d: %d connections", i, n)
			}
			time.Sleep(max(loss.Client, 0) + time.Second)
			cut.Done()
		}
		r.drainedSlowly()
	})
}

// B13: the connection breaks again and again, also while it is made: all is settled in order, each loss told, and not in a storm.
func TestB13_AFlappingConnection(t *testing.T) {
	profiles(t, func(r *rig) {
		r.interleaved(20, 10)
		connects, flaps := 0, 0
		r.hook(func(c memory.Call) error {
			if c.Kind == memory.CallConnect && !c.After {
				if connects++; connects%3 == 2 {
					return jms.ErrConnectionLost
				}
			}
			return nil
		})
		m := r.manager(tenth, func(c *keyseq.Config) {
			c.Workers = 2
			c.Reconnect = keyseq.ExponentialBackoff(time.Second, 30*time.Second)
		}).start()
		flapping := r.audit.Loss("", "flapping", 0)
		for began := time.Now(); time.Since(began) < 10*time.Minute && r.broker.Depth(inQueue) > 0; {
			for m.State() != keyseq.StateActive && r.broker.Depth(inQueue) > 0 {
				time.Sleep(100 * time.Millisecond)
			}
			time.Sleep(300 * time.Millisecond)
			flaps += must(r.broker.Break(inQueue, memory.Loss{}))
		}
		r.drainedSlowly()
		flapping.Done()
		r.locked(func() {
			if flaps < 5 || connects > 3*flaps+3 {
				r.Errorf("%d connections for %d flaps", connects, flaps)
			}
		})
	})
}

// T25: a crash between the end of the task and its commit: one duplicate, marked as redelivered, and no successor before it.
func TestT25_ACrashBeforeTheCommit(t *testing.T) {
	profiles(t, func(r *rig) {
		r.send("K", 1, 2, 3)
		r.failCommit("K.1", 1, jms.ErrConnectionLost, nil)
		var j journal
		r.manager(func(_ context.Context, d *keyseq.Delivery) error {
			j.add("%s/%t", d.Body, d.Redelivered)
			time.Sleep(time.Second)
			return nil
		}).start()
		r.drainedSlowly()
		got := strings.Join(j.all(), " ")
		if !strings.HasPrefix(got, "K.1/false K.1/true K.2/") || len(j.all()) != 4 {
			r.Errorf("%s, want K.1 once more, marked, and then K.2 and K.3", got)
		}
	})
}

// H7: acknowledgements that were written and not processed are lost with their connection: each key begins again at or before its first
// unsettled message and runs forward.
func TestH07_AcknowledgementsAreLostWithTheConnection(t *testing.T) {
	for _, p := range []memory.Profile{memory.LikeRabbitMQ(), memory.LikeQuorum()} {
		p.AckDelay = 50 * time.Millisecond
		t.Run(p.Name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.interleaved(3, 60)
				var j journal
				m := r.manager(starts(&j, sleepy(7*time.Millisecond))).start()
				for range 4 {
					r.slowly("it works", func() bool { return m.Snapshot().Running == 3 })
					time.Sleep(100 * time.Millisecond)
					r.losing("crash", func() { r.broker.Restart() })
				}
				r.drainedSlowly()
				if n := len(j.all()); n <= 180 {
					r.Errorf("%d tasks for 180 messages: the test must lose acknowledgements", n)
				}
			}, p)
		})
	}
}

// H23: what was lost never comes again, because it has expired or another reader took it: its key goes on when the return delay is over.
func TestH23_WhatNeverComesAgainHoldsItsKeyForTheReturnDelayOnly(t *testing.T) {
	t.Run("expired", func(t *testing.T) {
		bubble(t, func(r *rig) {
			r.unjudged = true // K.1 leaves the queue by its expiry
			must(r.broker.Send(keyseq.Outgoing{Queue: inQueue, Body: []byte("K.1"), TTL: 10 * time.Second}))
			r.send("K", 2)
			r.failCommit("K.1", 1, jms.ErrSessionLost, nil)
			var j journal
			r.manager(starts(&j, quick)).start()
			began := time.Now()
			r.drainedSlowly()
			r.want("K", j.all(), "K.1 K.2")
			if took := time.Since(began); took < 15*time.Second || took > 17*time.Second {
				r.Errorf("K.2 was settled after %v, want 15 s", took)
			}
		}, lateReturn())
	})
	t.Run("the commit was done", func(t *testing.T) {
		bubble(t, func(r *rig) {
			r.send("K", 1, 2)
			done := false
			r.hook(func(c memory.Call) error {
				if c.Kind == memory.CallCommit && c.After && !done {
					done = true
					return jms.ErrCommitUnknown
				}
				return nil
			})
			var j journal
			r.manager(starts(&j, quick)).start()
			began := time.Now()
			r.drainedSlowly()
			r.want("K", j.all(), "K.1 K.2")
			if took := time.Since(began); took < 15*time.Second || took > 17*time.Second {
				r.Errorf("K.2 was settled after %v, want 15 s", took)
			}
		}, lateReturn())
	})
	t.Run("no IDs, and equal ones", func(t *testing.T) {
		p := lateReturn()
		p.NoIDs = true
		bubble(t, func(r *rig) {
			r.send("K", 1, 2, 3)
			r.failCommit("K.1", 3, jms.ErrSessionLost, nil)
			var j journal
			r.manager(starts(&j, quick)).start()
			r.drainedSlowly()
			r.want("K", j.all(), "K.1 K.1 K.1 K.1 K.2 K.3")
		}, p)
	})
}

// T32, G3, G4: whatever fails, no message is lost and none is settled twice.
func TestT32_NothingIsLostUnderRandomFailures(t *testing.T) {
	profiles(t, func(r *rig) {
		r.interleaved(30, 30)
		r.verdict.Outputs = func(string, int64) int { return 1 }
		random := rand.New(rand.NewPCG(4711, 0))
		storm := r.audit.Loss("", "storm", 0)
		faults := 0
		outcomes := []error{jms.ErrRolledBack, jms.ErrSessionLost, jms.ErrCommitUnknown, jms.ErrConnectionLost, jms.ErrBusy}
		r.hook(func(c memory.Call) error {
			if c.Kind != memory.CallCommit && c.Kind != memory.CallReceive && c.Kind != memory.CallRollback || random.IntN(60) > 0 || faults == 40 {
				return nil
			}
			faults++
			return outcomes[random.IntN(len(outcomes))]
		})
		r.manager(func(ctx context.Context, d *keyseq.Delivery) error {
			_, number := split(string(d.Body))
			time.Sleep(time.Duration(number%7) * 10 * time.Millisecond)
			return d.Send(ctx, keyseq.Outgoing{Queue: outQueue, Body: d.Body})
		}).start()
		r.drainedSlowly()
		time.Sleep(r.profile.AckDelay)
		storm.Done()
		r.locked(func() {
			if faults < 10 {
				r.Errorf("%d faults", faults)
			}
		})
	})
}

// H23: a ReturnDelay that the user sets counts instead of the provider's, be it longer or shorter.
func TestH23_TheUsersReturnDelayCounts(t *testing.T) {
	for _, p := range []memory.Profile{{Name: "plain"}, {Name: "late", ReturnDelay: 10 * time.Minute}} {
		t.Run(p.Name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.unjudged = true // shorter than the broker's is the user's own risk
				r.send("K", 1)
				var lost time.Time
				r.failCommit("K.1", 1, jms.ErrSessionLost, func() { lost = time.Now() })
				var at []time.Time
				r.manager(func(context.Context, *keyseq.Delivery) error {
					r.locked(func() { at = append(at, time.Now()) })
					return nil
				}, func(c *keyseq.Config) { c.ReturnDelay = time.Minute }).start()
				time.Sleep(time.Second)
				r.send("K", 2)
				time.Sleep(2 * time.Minute)
				r.mu.Lock()
				defer r.mu.Unlock()
				if len(at) < 2 {
					r.Fatalf("%d tasks have begun", len(at))
				}
				if waited := at[1].Sub(lost); waited < time.Minute || waited > time.Minute+time.Second {
					r.Errorf("the next task of the key began %v after the loss, want a minute", waited)
				}
			}, p)
		})
	}
}
