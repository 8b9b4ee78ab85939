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

// R1.20, R1.22, R1.23: a message that was lost with its session is still locked by the broker when the manager is stopped and started again: its
// successors wait for it all the same.
func TestR1_23_ALossIsRememberedOverStopAndStart(t *testing.T) {
	for name, end := range map[string]func(*subject) error{
		"Stop":     func(s *subject) error { return s.stop(time.Minute) },
		"Shutdown": func(s *subject) error { return s.shutdown(time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			profiles(t, func(r *rig) {
				r.send("K", 1, 2, 3)
				r.send("J", 1)
				var j journal
				lost := make(chan struct{})
				done := false
				r.broker.SetHook(func(_ context.Context, c memory.Call) error {
					if c.Kind == memory.CallCommit && !c.After && string(c.Message.Body) == "K.1" && !done {
						done = true
						r.lossFollows("A", "session lost")
						close(lost)
						return jms.ErrSessionLost
					}
					return nil
				})
				m := r.manager(func(_ context.Context, d *keyseq.Delivery) error {
					j.add("%s", d.Body)
					time.Sleep(100 * time.Millisecond)
					return nil
				}).start()
				<-lost
				for range 3 {
					if err := end(m); err != nil {
						r.Fatal(err)
					}
					m.start()
					time.Sleep(10 * time.Millisecond)
				}
				r.drained()
				var k []string
				for _, body := range j.all() {
					if body[0] == 'K' {
						k = append(k, body)
					}
				}
				if got := fmt.Sprint(k); got != "[K.1 K.1 K.2 K.3]" {
					r.Errorf("tasks of K: %s", got)
				}
			})
		})
	}
}

// R1.21: Run reads until its context ends, lets running tasks finish, and returns nil; the values of its context are those of the tasks', its end is
// not theirs.
func TestR1_21_RunEndsWithItsContext(t *testing.T) {
	type name struct{}
	profiles(t, func(r *rig) {
		r.interleaved(4, 4)
		m := r.manager(func(ctx context.Context, d *keyseq.Delivery) error {
			time.Sleep(5 * time.Second)
			if ctx.Err() != nil || ctx.Value(name{}) != "value" {
				r.Errorf("the task's context: %v, value %v", ctx.Err(), ctx.Value(name{}))
			}
			return nil
		})
		ctx, cancel := context.WithCancel(context.WithValue(r.Context(), name{}, "value"))
		done := make(chan error, 1)
		go func() { done <- m.Run(ctx) }()
		r.until("tasks run", func() bool { return m.Snapshot().Running == 4 })
		r.audit.InstanceStopping("A")
		cancel()
		if err := <-done; err != nil {
			r.Errorf("Run: %v", err)
		}
		if s := m.Snapshot(); s.Committed != 4 || s.State != keyseq.StateStopped {
			r.Errorf("committed %d, state %v", s.Committed, s.State)
		}
	})
}

// R1.21, T22: a task that takes longer than DrainTimeout is cancelled, and Run says which key it was.
func TestR1_21_RunNamesWhatItHadToCancel(t *testing.T) {
	bubble(t, func(r *rig) {
		r.send("slow", 1)
		m := r.manager(func(ctx context.Context, d *keyseq.Delivery) error {
			<-ctx.Done()
			return ctx.Err()
		}, func(c *keyseq.Config) { c.DrainTimeout = 3 * time.Second; c.TaskTimeout = 0 })
		ctx, cancel := context.WithCancel(r.Context())
		done := make(chan error, 1)
		go func() { done <- m.Run(ctx) }()
		r.until("the task runs", func() bool { return m.Snapshot().Running == 1 })
		r.audit.InstanceStopping("A")
		began := time.Now()
		cancel()
		if err := <-done; !errors.Is(err, keyseq.ErrDrainTimeout) || time.Since(began) != 3*time.Second {
			r.Errorf("Run: %v after %v, want ErrDrainTimeout after 3s", err, time.Since(began))
		}
	})
}

// StopAll ends Run with its reason; the message is back on the queue, nothing of its key ran after it.
func TestR1_21_StopAllEndsTheRunAndLosesNothing(t *testing.T) {
	profiles(t, func(r *rig) {
		r.send("K", 1, 2, 3)
		bad := errors.New("database gone")
		first := true
		m := r.manager(func(_ context.Context, d *keyseq.Delivery) error {
			if string(d.Body) == "K.2" && first {
				first = false
				r.audit.InstanceStopping("A")
				return keyseq.StopAll(bad)
			}
			return nil
		})
		if err := m.Run(r.Context()); !errors.Is(err, bad) {
			r.Errorf("Run: %v, want the task's reason", err)
		}
		if err := m.Err(); !errors.Is(err, bad) || m.State() != keyseq.StateFailed {
			r.Errorf("Err: %v, state %v", err, m.State())
		}
		time.Sleep(time.Second)
		if got := r.bodies(inQueue); len(got) == 0 || got[len(got)-1] != "K.3" || got[len(got)-2] != "K.2" {
			r.Errorf("left: %v", got)
		}
		m.start()
		r.drained()
	})
}

// R1.18: Stop while Start is still connecting ends both.
func TestR1_18_StopEndsAStartThatStillConnects(t *testing.T) {
	bubble(t, func(r *rig) {
		r.broker.SetHook(func(ctx context.Context, c memory.Call) error {
			if c.Kind == memory.CallConnect && !c.After {
				<-ctx.Done() // a host that does not answer
				return ctx.Err()
			}
			return nil
		})
		r.unjudged = true // nothing is sent
		m := r.manager(quick)
		started := make(chan error, 1)
		go func() { started <- m.Start(r.Context()) }()
		synctest.Wait()
		if err := m.stop(time.Minute); err != nil {
			r.Errorf("Stop: %v", err)
		}
		if err := <-started; err == nil {
			r.Error("Start returned nil although it was stopped before it had connected")
		}
		if m.State() != keyseq.StateStopped {
			r.Errorf("state %v", m.State())
		}
	})
}

// R1.21: a commit that never returns does not keep Shutdown for ever: its time is over, it says so, and the connection is closed, which ends the
// call.
func TestR1_21_ShutdownWithACommitThatNeverReturns(t *testing.T) {
	bubble(t, func(r *rig) {
		r.send("K", 1, 2)
		r.unjudged = true
		gone := make(chan struct{})
		r.broker.SetHook(func(_ context.Context, c memory.Call) error {
			switch {
			case c.Kind == memory.CallCommit && !c.After:
				<-gone
				return jms.ErrConnectionLost
			case c.Kind == memory.CallCloseConnection && !c.After:
				select {
				case <-gone:
				default:
					close(gone)
				}
			}
			return nil
		})
		m := r.manager(quick, func(c *keyseq.Config) { c.CallTimeout = time.Second }).start()
		time.Sleep(10 * time.Second)
		began := time.Now()
		err := m.shutdown(time.Minute)
		if err == nil || time.Since(began) > 2*time.Minute {
			r.Errorf("Shutdown: %v after %v, want an error in time", err, time.Since(began))
		}
		select {
		case <-m.Done():
		case <-time.After(time.Hour):
			r.Errorf("the run has not ended an hour later: %+v", m.Snapshot())
			close(gone)
		}
	})
}

// B13: Run waits for a broker that is not there yet; Stop ends the wait at once.
func TestB13_RunWaitsForTheBroker(t *testing.T) {
	bubble(t, func(r *rig) {
		r.send("K", 1, 2)
		down, tries := true, 0
		r.hook(func(c memory.Call) error {
			if c.Kind == memory.CallConnect && !c.After {
				if tries++; down {
					return jms.ErrConnectionLost
				}
			}
			return nil
		})
		m := r.manager(quick, func(c *keyseq.Config) { c.Reconnect = keyseq.ExponentialBackoff(time.Second, time.Minute) })
		for round := range 2 {
			done := make(chan error, 1)
			go func() { done <- m.Run(r.Context()) }()
			time.Sleep(time.Hour)
			if m.State() != keyseq.StateConnecting {
				r.Errorf("state %v, want connecting", m.State())
			}
			r.locked(func() {
				if tries < 60 || tries > 400 {
					r.Errorf("%d tries in an hour with pauses up to a minute", tries)
				}
				tries = 0
			})
			if round == 0 {
				began := time.Now()
				if err := m.stop(time.Minute); err != nil || time.Since(began) > 0 {
					r.Errorf("Stop while connecting: %v after %v", err, time.Since(began))
				}
				if err := <-done; err != nil {
					r.Errorf("Run: %v", err)
				}
				continue
			}
			r.locked(func() { down = false })
			r.drained()
			if err := m.shutdown(time.Minute); err != nil {
				r.Error(err)
			}
			<-done
		}
	})
}

// B13: a connection that breaks and is made anew at once: what the dead one held is still locked for a while, and what lies behind it must not
// overtake. Three times, while some keys wait for a retry.
func TestB13_ReconnectingAtOnceOvertakesNothing(t *testing.T) {
	profiles(t, func(r *rig) {
		r.interleaved(10, 40)
		m := r.manager(func(_ context.Context, d *keyseq.Delivery) error {
			time.Sleep(100 * time.Millisecond)
			if d.Attempt == 1 && strings.HasSuffix(string(d.Body), "5") {
				return errors.New("once")
			}
			return nil
		}).start()
		for n := range 3 {
			r.until("some are done", func() bool { return m.Snapshot().Committed > uint64(50+80*n) })
			time.Sleep(33 * time.Millisecond)
			r.losing("connection cut", func() { must(r.broker.Break(inQueue, memory.Loss{})) })
		}
		r.drained()
	})
}

// B14, B18: a task that outlives its connection and the end of Shutdown: Shutdown names its key, Start refuses until it has ended, its result does
// not count, and the message never runs twice at once.
func TestB14_AZombieIsNotJoined(t *testing.T) {
	profiles(t, func(r *rig) {
		r.send("K", 1, 2)
		release := make(chan struct{})
		var tasks atMost
		first := true
		m := r.manager(func(context.Context, *keyseq.Delivery) error {
			tasks.enter()
			defer tasks.leave()
			if first {
				first = false
				<-release // deaf
			}
			return nil
		}, func(c *keyseq.Config) { c.TaskTimeout = 0 }).start()
		r.until("the task runs", func() bool { return m.Snapshot().Running == 1 })
		r.losing("connection cut", func() { must(r.broker.Break(inQueue, memory.Loss{})) })
		time.Sleep(time.Minute)
		err := m.shutdown(time.Second)
		if !errors.Is(err, keyseq.ErrDrainTimeout) || !strings.Contains(err.Error(), `"K"`) {
			r.Errorf("Shutdown: %v, want ErrDrainTimeout that names K", err)
		}
		time.Sleep(time.Hour)
		if err := m.Start(r.Context()); !errors.Is(err, keyseq.ErrStopping) {
			r.Errorf("Start: %v, want ErrStopping", err)
		}
		select {
		case <-m.Done():
			r.Error("Done is closed while a task runs")
		default:
		}
		close(release)
		<-m.Done()
		if n := r.broker.Depth(inQueue); n != 2 {
			r.Errorf("%d messages on the queue, want both: the late result must not count", n)
		}
		m.start()
		r.drained()
		if tasks.most.Load() != 1 {
			r.Errorf("%d tasks of a key at once", tasks.most.Load())
		}
	})
}

// R1.18: a Start that runs out of time leaves nothing running.
func TestR1_18_AStartOutOfTimeLeavesNothingRunning(t *testing.T) {
	bubble(t, func(r *rig) {
		r.send("K", 1)
		r.factory = slowStarter{r.factory}
		m := r.manager(quick, func(c *keyseq.Config) { c.ReturnDelay = time.Minute })
		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		if err := m.Start(ctx); !errors.Is(err, context.DeadlineExceeded) {
			r.Errorf("Start: %v, want context.DeadlineExceeded", err)
		}
		select {
		case <-m.Done():
		default:
			r.Errorf("Done is open, state %v", m.State())
		}
		if n := len(must(r.broker.Readers(inQueue))); n != 0 {
			r.Errorf("%d connections are left open", n)
		}
		m.start()
		r.drained()
	})
}

// slowStarter makes connections that take five seconds to say whether their predecessor ended in order.
type slowStarter struct{ jms.ConnectionFactory }

func (f slowStarter) Connect(ctx context.Context, sub jms.Subscription) (jms.Connection, error) {
	c, err := f.ConnectionFactory.Connect(ctx, sub)
	if err != nil {
		return nil, err
	}
	return slowConnection{c}, nil
}

type slowConnection struct{ jms.Connection }

func (slowConnection) CleanStart(ctx context.Context) (bool, error) {
	select {
	case <-time.After(5 * time.Second):
		return true, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// R1.19: Stop does not wait for a key in a retry pause: it gives the key back, and the attempts that were made still count.
func TestR1_19_StopGivesBackWhatWaitsForItsRetry(t *testing.T) {
	profiles(t, func(r *rig) {
		r.send("K", 1, 2, 3)
		r.send("J", 1)
		var attempts journal
		m := r.manager(func(_ context.Context, d *keyseq.Delivery) error {
			if d.Key == "K" {
				attempts.add("%s %d", d.Body, d.Attempt)
			}
			if string(d.Body) == "K.1" && d.Attempt == 1 {
				return keyseq.RetryAfter(10*time.Minute, errors.New("later"))
			}
			return nil
		}).start()
		r.until("K.1 has failed", func() bool { return len(r.messageErrors()) == 1 && r.broker.Depth(inQueue) == 3 })
		began := time.Now()
		if err := m.stop(time.Hour); err != nil || time.Since(began) > time.Second {
			r.Errorf("Stop: %v after %v, want nil at once", err, time.Since(began))
		}
		if got := fmt.Sprint(r.bodies(inQueue)); got != "[K.1 K.2 K.3]" {
			r.Errorf("left: %s", got)
		}
		m.start()
		if r.profile.NoIDs { // the second delivery cannot be told from a first
			time.Sleep(time.Hour)
		}
		r.drained()
		if got := fmt.Sprint(attempts.all()); !r.profile.NoIDs && got != "[K.1 1 K.1 2 K.2 1 K.3 1]" {
			r.Errorf("attempts: %s", got)
		}
	})
}

// R1.13, R1.19: a task that was done, but whose sends a full queue does not take: the commit is tried again, not the task. When Stop comes first, the
// listener is told that what it did was rolled back.
func TestR1_13_DoneButNotSettledWhenStopped(t *testing.T) {
	bubble(t, func(r *rig) {
		r.send("K", 1, 2)
		check(r.broker.InhibitPut(outQueue, true))
		tasks := 0
		m := r.manager(func(ctx context.Context, d *keyseq.Delivery) error {
			tasks++
			return d.Send(ctx, keyseq.Outgoing{Queue: outQueue, Body: d.Body})
		}).start()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if tasks != 1 || len(r.messageErrors()) != 0 {
			r.Errorf("%d tasks, %d errors while the target is full; want the one task, and no error", tasks, len(r.messageErrors()))
		}
		if err := m.stop(time.Minute); err != nil {
			r.Fatal(err)
		}
		if errs := r.messageErrors(); len(errs) != 1 || !errs[0].performed || !errors.Is(errs[0].err, jms.ErrRolledBack) {
			r.Errorf("OnMessageError: %+v, want one: performed, rolled back", errs)
		}
		check(r.broker.InhibitPut(outQueue, false))
		m.start()
		r.drained()
		if got := fmt.Sprint(r.bodies(outQueue)); got != "[K.1 K.2]" {
			r.Errorf("sent: %s", got)
		}
	})
}
