package keyseq_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/memory"
)

// hangOnce has the k-th call of a kind wait, deaf to its context, before or after its effect.
func (r *rig) hangOnce(kind memory.CallKind, after bool, k int, length time.Duration) {
	var calls atomic.Int32
	r.broker.SetHook(func(_ context.Context, c memory.Call) error {
		if c.Kind != kind || c.After != after || c.Queue != inQueue || int(calls.Add(1)) != k {
			return nil
		}
		time.Sleep(length)
		return nil
	})
}

// H18, G8: whichever call does not return for ten minutes, before its effect or after it: the manager goes on, and the order holds.
func TestH18_ACallThatDoesNotReturnStopsNothingElse(t *testing.T) {
	kinds := []memory.CallKind{memory.CallConnect, memory.CallAwaitActive, memory.CallOpenSession, memory.CallReceive, memory.CallCommit,
		memory.CallRollback, memory.CallCloseSession, memory.CallCloseConnection}
	early := lateReturn()
	early.RoleFirst = true
	for _, p := range []memory.Profile{{Name: "plain"}, early, memory.LikeIBMMQ(), memory.LikeRabbitMQ()} {
		for _, kind := range kinds {
			for _, after := range []bool{false, true} {
				for _, k := range []int{1, 3} {
					t.Run(fmt.Sprint(p.Name, "/", kind, k, after), func(t *testing.T) {
						bubble(t, func(r *rig) {
							r.interleaved(6, 10)
							r.verdict.OutputsRepeat = true
							loss := r.audit.Loss("", "calls that hang", 0)
							r.hangOnce(kind, after, k, 10*time.Minute)
							m := r.standingBy("A", 0, func(_ context.Context, d *keyseq.Delivery) error {
								time.Sleep(time.Second)
								return nil
							}, func(c *keyseq.Config) { c.CallTimeout = 5 * time.Second; c.MaxHold = time.Hour })
							run := make(chan error, 1)
							go func() { run <- m.Run(context.Background()) }()
							for range 4 { // something of each kind happens
								time.Sleep(5 * time.Second)
								held := must(r.broker.Held(inQueue))
								if len(held) > 0 {
									_ = r.broker.TakeBack(held[0].ID)
								}
								if len(held) > 1 {
									_ = r.broker.LoseSession(held[len(held)-1].ID, memory.Loss{})
								}
								time.Sleep(20 * time.Second)
								must(r.broker.Break(inQueue, memory.Loss{}))
							}
							r.drainedSlowly()
							loss.Done()
							select {
							case err := <-run:
								r.Errorf("Run has ended: %v", err)
							default:
							}
							if err := m.shutdown(time.Hour); err != nil {
								r.Errorf("Shutdown: %v", err)
							}
							<-run
							time.Sleep(11 * time.Minute)
						}, p, single)
					})
				}
			}
		}
	}
}

// T24: the connection drops while every worker is inside Commit, and the calls return only later, or say that they are done.
func TestT24_TheConnectionDropsWhileAllWorkersAreInCommit(t *testing.T) {
	for name, outcome := range map[string]error{"lost": jms.ErrConnectionLost, "unknown": jms.ErrCommitUnknown, "done": nil} {
		t.Run(name, func(t *testing.T) {
			profiles(t, func(r *rig) {
				r.interleaved(40, 3)
				var inside atomic.Int32
				release := make(chan struct{})
				r.broker.SetHook(func(_ context.Context, c memory.Call) error {
					if c.Kind != memory.CallCommit || c.After != (outcome == nil) || inside.Add(1) > 20 {
						return nil
					}
					<-release
					return outcome
				})
				m := r.manager(quick).start()
				r.slowly("all workers are in Commit", func() bool { return inside.Load() == 20 && m.Snapshot().Running == 20 })
				loss := r.audit.Loss("", "connection", 0)
				must(r.broker.Break(inQueue, memory.Loss{}))
				time.Sleep(time.Minute)
				close(release)
				r.drainedSlowly()
				loss.Done()
			})
		})
	}
}

// T24, H18: a commit hangs, its connection is lost and another one made, a Shutdown begins, and only then it says that it was done.
func TestT24_ACommitHangsAcrossALossAndAShutdown(t *testing.T) {
	profiles(t, func(r *rig) {
		r.send("K", 1, 2, 3)
		r.send("L", 1, 2, 3)
		release := make(chan struct{})
		var once atomic.Bool
		r.broker.SetHook(func(_ context.Context, c memory.Call) error {
			if c.Kind == memory.CallCommit && !c.After && string(c.Message.Body) == "K.1" && !once.Swap(true) {
				<-release
			}
			return nil
		})
		var j journal
		m := r.manager(starts(&j, quick), func(c *keyseq.Config) { c.CallTimeout = 5 * time.Second }).start()
		time.Sleep(time.Minute)
		loss := r.audit.Loss("", "connection", 0)
		must(r.broker.Break(inQueue, memory.Loss{}))
		r.slowly("the others are done", func() bool { return len(ofKey(j.all(), "L")) >= 3 && m.Snapshot().Committed >= 3 })
		time.Sleep(time.Minute)
		r.want("K, whose commit hangs", ofKey(j.all(), "K"), "K.1")
		if err := m.shutdown(time.Minute); !errors.Is(err, keyseq.ErrDrainTimeout) {
			r.Errorf("Shutdown: %v, want ErrDrainTimeout: a call has not returned", err)
		}
		if err := m.Start(r.Context()); !errors.Is(err, keyseq.ErrStopping) {
			r.Errorf("Start: %v, want ErrStopping", err)
		}
		close(release)
		<-m.Done()
		m.start()
		r.drainedSlowly()
		loss.Done()
		r.want("K", ofKey(j.all(), "K"), "K.1 K.1 K.2 K.3")
	})
}

// T11: a Rollback fails, in many ways: its session is replaced, the key goes on, and no session leaks.
func TestT11_ARollbackThatFailsLeavesNoHole(t *testing.T) {
	for _, failure := range []error{errors.New("code 2195"), jms.ErrSessionLost, jms.ErrRolledBack, jms.ErrBusy, jms.ErrConfig} {
		t.Run(failure.Error(), func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.interleaved(4, 50)
				rollbacks := 0
				r.hook(func(c memory.Call) error {
					if c.Kind == memory.CallRollback && !c.After {
						if rollbacks++; rollbacks%2 == 1 {
							return failure
						}
					}
					return nil
				})
				loss := r.audit.Loss("", "rollbacks fail", 0)
				m := r.manager(sleepy(time.Second), func(c *keyseq.Config) {
					c.MaxInFlight = 30
					c.MaxHold, c.TaskTimeout = 6*time.Second, 5*time.Second
				}).start()
				r.drainedSlowly()
				loss.Done()
				r.locked(func() {
					if rollbacks < 10 {
						r.Errorf("%d rollbacks: the test needs some", rollbacks)
					}
				})
				if open, pooled := r.spy.open(), m.Snapshot().Sessions; open > 31 || open != pooled {
					r.Errorf("%d sessions are open, the manager counts %d, MaxInFlight is 30", open, pooled)
				}
			})
		})
	}
}

// H18: one lost session is not a lost connection: the healthy ones go on.
func TestH18_OneLostSessionLeavesTheOthersAlone(t *testing.T) {
	for _, p := range []memory.Profile{{Name: "plain"}, lateReturn(), memory.LikeIBMMQ()} {
		t.Run(p.Name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.interleaved(10, 20)
				cancelled := 0
				connects := 0
				r.hook(func(c memory.Call) error {
					if c.Kind == memory.CallConnect && !c.After {
						connects++
					}
					return nil
				})
				m := r.manager(func(ctx context.Context, d *keyseq.Delivery) error {
					timer := time.NewTimer(2 * time.Second)
					defer timer.Stop()
					select {
					case <-timer.C:
					case <-ctx.Done():
						r.locked(func() { cancelled++ })
						return ctx.Err()
					}
					return nil
				}).start()
				r.slowly("it works", func() bool { return m.Snapshot().Running == 10 })
				for range 3 {
					time.Sleep(5 * time.Second)
					loss := r.audit.Loss("A", "one session", 0)
					held := must(r.broker.Held(inQueue))
					must(0, r.broker.LoseSession(held[0].ID, memory.Loss{}))
					loss.Done()
				}
				r.drainedSlowly()
				r.locked(func() {
					if cancelled > 0 || connects != 1 {
						r.Errorf("%d tasks were cancelled, %d connections made", cancelled, connects)
					}
				})
			}, p)
		})
	}
}

// H18: attempts that the manager has ended by its own doing do not count: a message that is interrupted many times is not given up.
func TestH18_InterruptedAttemptsDoNotCount(t *testing.T) {
	profiles(t, func(r *rig) {
		r.send("K", 1, 2)
		m := r.manager(func(ctx context.Context, d *keyseq.Delivery) error {
			if d.Attempt != 1 {
				r.Errorf("attempt %d", d.Attempt)
			}
			timer := time.NewTimer(10 * time.Second)
			defer timer.Stop()
			select {
			case <-timer.C:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}, func(c *keyseq.Config) { c.Retry.MaxRetries = 1; c.DeadLetterQueue = deadQueue }).start()
		for range 6 {
			r.slowly("it works", func() bool { return m.Snapshot().Running == 1 })
			time.Sleep(5 * time.Second)
			r.losing("flap", func() { must(r.broker.Break(inQueue, memory.Loss{})); synctest.Wait() })
			time.Sleep(time.Second)
		}
		r.drainedSlowly()
		if n := len(r.bodies(deadQueue)); n != 0 {
			r.Errorf("%d messages were given up", n)
		}
		if n := len(r.messageErrors()); n != 0 {
			r.Errorf("%d calls of OnMessageError", n)
		}
	})
}

// Errors that say two things are taken for the worse of the two.
func TestH18_ErrorsThatSayTwoThings(t *testing.T) {
	both := func(a, b error) error { return fmt.Errorf("%w and %w", a, b) }
	for _, p := range []memory.Profile{{Name: "plain"}, lateReturn(), memory.LikeIBMMQ(), memory.LikeRabbitMQ()} {
		for _, failure := range []error{
			both(jms.ErrRolledBack, jms.ErrSessionLost), both(jms.ErrRolledBack, jms.ErrConnectionLost), both(jms.ErrRolledBack, jms.ErrCommitUnknown),
			both(jms.ErrBusy, jms.ErrSessionLost), both(jms.ErrBusy, jms.ErrConnectionLost), both(jms.ErrCommitUnknown, jms.ErrConnectionLost),
			both(jms.ErrQuiescing, jms.ErrConnectionLost),
		} {
			for _, kind := range []memory.CallKind{memory.CallCommit, memory.CallReceive, memory.CallOpenSession} {
				t.Run(fmt.Sprint(p.Name, "/", kind, "/", failure), func(t *testing.T) {
					bubble(t, func(r *rig) {
						r.send("K", 1, 2, 3, 4)
						r.send("L", 1, 2, 3, 4)
						calls := 0
						r.hook(func(c memory.Call) error {
							if c.Kind == kind && !c.After {
								if calls++; calls == 2 {
									r.lossNow(failure.Error())
									return failure
								}
							}
							return nil
						})
						r.manager(sleepy(time.Second)).start()
						r.drainedSlowly()
					}, p)
				})
			}
		}
	}
}

// deafFactory is a provider that cannot notice by itself that a connection is lost: Done is nil.
type deafFactory struct{ jms.ConnectionFactory }

func (f deafFactory) Connect(ctx context.Context, sub jms.Subscription) (jms.Connection, error) {
	c, err := f.ConnectionFactory.Connect(ctx, sub)
	return deafConnection{c}, err
}

type deafConnection struct{ jms.Connection }

func (deafConnection) Done() <-chan struct{} { return nil }

// A provider without Done is told by the next call; a kept connection that broke meanwhile is no reason to fail.
func TestB13_AProviderThatCannotNotice(t *testing.T) {
	profiles(t, func(r *rig) {
		r.factory = deafFactory{r.factory}
		r.interleaved(5, 10)
		m := r.manager(sleepy(time.Second)).start()
		for range 2 {
			r.slowly("it works", func() bool { return m.Snapshot().Running == 5 })
			r.losing("connection", func() { must(r.broker.Break(inQueue, memory.Loss{})); time.Sleep(5 * time.Second) })
		}
		r.drainedSlowly()
		if err := m.stop(time.Minute); err != nil {
			r.Fatal(err)
		}
		must(r.broker.Break(inQueue, memory.Loss{}))
		r.interleavedFrom(5, 10, 12)
		m.start()
		r.drainedSlowly()
	})
}

// ErrQuiescing: the broker is about to stop. What is held is finished, nothing is repeated, and the manager is there again when the broker is.
func TestB13_ABrokerThatIsAboutToStop(t *testing.T) {
	profiles(t, func(r *rig) {
		r.interleaved(5, 20)
		m := r.manager(sleepy(time.Second), func(c *keyseq.Config) { c.MaxInFlight = 10 }).start()
		r.slowly("it works", func() bool { return m.Snapshot().Running == 5 })
		r.broker.Quiesce()
		time.Sleep(10 * time.Second)
		s := m.Snapshot()
		if s.RolledBack != 0 || s.Committed < 9 || s.InFlight > 1 {
			r.Errorf("%+v: what was held must be settled", s)
		}
		time.Sleep(time.Minute)
		r.losing("restart", func() { r.broker.Restart(); time.Sleep(time.Minute) })
		r.drainedSlowly()
	})
}

// H18, G7: a Receive that does not return takes no place of the window away from the connection that is made instead.
func TestH18_AReceiveThatNeverReturnsKeepsNoPlace(t *testing.T) {
	bubble(t, func(r *rig) {
		r.hangOnce(memory.CallReceive, false, 1, time.Hour)
		m := r.standingBy("A", 0, quick, func(c *keyseq.Config) { c.MaxInFlight, c.CallTimeout = 1, 5*time.Second }).start()
		r.send("K", 1, 2, 3)
		time.Sleep(10 * time.Minute)
		if n := m.Snapshot().Committed; n != 3 {
			r.Errorf("%d of 3 messages are done while a Receive of an earlier connection hangs", n)
		}
		time.Sleep(time.Hour)
	}, single)
}
