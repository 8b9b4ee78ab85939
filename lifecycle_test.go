package keyseq_test

import (
	"context"
	"errors"
	"fmt"
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

func quick(context.Context, *keyseq.Delivery) error { return nil }

func tenth(context.Context, *keyseq.Delivery) error {
	time.Sleep(100 * time.Millisecond)
	return nil
}

// R1.18: making a manager does no I/O; Start reports a broker that is not there and leaves nothing running; a later Start works.
func TestR1_18_OnlyStartTouchesTheBroker(t *testing.T) {
	bubble(t, func(r *rig) {
		r.unjudged = true
		calls, down := 0, true
		r.hook(func(c memory.Call) error {
			calls++
			if c.Kind == memory.CallConnect && down {
				return jms.ErrConnectionLost
			}
			return nil
		})
		m := r.manager(quick)
		if calls != 0 {
			r.Fatalf("making a manager made %d calls", calls)
		}
		if err := m.Start(r.Context()); !errors.Is(err, jms.ErrConnectionLost) || !strings.Contains(err.Error(), inQueue) {
			r.Errorf("Start: %v, want the broker's error with the name of the queue", err)
		}
		select {
		case <-m.Done():
		default:
			r.Error("Done is open after a Start that failed")
		}
		if s := m.State(); s != keyseq.StateStopped {
			r.Errorf("state %v, want stopped", s)
		}
		before := calls
		time.Sleep(time.Hour)
		synctest.Wait()
		if calls != before {
			r.Errorf("%d calls in the hour after a Start that failed", calls-before)
		}
		r.locked(func() { down = false })
		r.send("K", 1)
		m.start()
		r.drained()
	})
}

// R1.19: Stop finishes what was received, running and waiting, receives nothing more, and no session holds a message then.
func TestR1_19_StopFinishesWhatWasReceived(t *testing.T) {
	profiles(t, func(r *rig) {
		r.interleaved(40, 20)
		m := r.manager(tenth, func(c *keyseq.Config) { c.Workers = 10; c.MaxInFlight = 100 }).start()
		for m.Snapshot().Committed < 25 { // a profile may wait before it reads
			time.Sleep(50 * time.Millisecond)
		}
		if err := m.stop(longest); err != nil {
			r.Fatalf("Stop: %v", err)
		}
		if held := r.spy.holding(); len(held) != 0 {
			r.Errorf("sessions still hold %v", held)
		}
		s := m.Snapshot()
		if s.Received != s.Committed || s.RolledBack != 0 || s.Committed <= 25 {
			r.Errorf("received %d, committed %d, rolled back %d: everything received must be finished", s.Received, s.Committed, s.RolledBack)
		}
		time.Sleep(r.profile.AckDelay)
		if left := r.broker.Depth(inQueue); left+int(s.Committed) != 800 {
			r.Errorf("%d left and %d done of 800", left, s.Committed)
		}
		receives := r.spy.received()
		time.Sleep(time.Hour)
		if r.spy.received() != receives {
			r.Error("it received after Stop had returned")
		}
	})
}

// R1.19, T22: when the time of Stop is over, what has not begun goes back, newest first, and what runs is cancelled; nothing is lost.
func TestR1_19_StopThatRunsOutOfTimeGivesBackTheRest(t *testing.T) {
	profiles(t, func(r *rig) {
		r.interleaved(3, 5)
		var rolledBack journal
		var cancelled atMost
		m := r.manager(func(ctx context.Context, d *keyseq.Delivery) error {
			<-ctx.Done()
			cancelled.enter()
			if !errors.Is(context.Cause(ctx), keyseq.ErrDrainTimeout) {
				r.Errorf("cause of the task's context: %v, want ErrDrainTimeout", context.Cause(ctx))
			}
			return ctx.Err()
		}, func(c *keyseq.Config) {
			c.TaskTimeout = 0
			c.Events = append(c.Events, keyseq.Events{RolledBack: func(e keyseq.MessageEvent) {
				if e.Delivery.Key == "k1" {
					rolledBack.add("%s", e.Delivery.Body)
				}
			}})
		}).start()
		r.until("the tasks run", func() bool { return m.Snapshot().Running == 3 && m.Snapshot().InFlight >= 15 })
		err := m.stop(time.Minute)
		if !errors.Is(err, keyseq.ErrDrainTimeout) || !strings.Contains(err.Error(), `"k0", "k1", "k2"`) {
			r.Errorf("Stop: %v, want ErrDrainTimeout with the keys", err)
		}
		if cancelled.most.Load() != 3 {
			r.Errorf("%d tasks were cancelled, want 3", cancelled.most.Load())
		}
		r.until("it has ended", func() bool { return m.State() == keyseq.StateStopped })
		if left := r.bodies(inQueue); len(left) != 15 {
			r.Errorf("%d of 15 messages are back: %v", len(left), left)
		}
		if got := rolledBack.all(); r.profile.Prefetch == 0 && fmt.Sprint(got) != "[k1.4 k1.3 k1.2 k1.1 k1.0]" {
			r.Errorf("k1 was given back as %v, want newest first", got)
		}
		if n := len(r.messageErrors()); n != 0 {
			r.Errorf("%d calls of OnMessageError: a cancelled task is no failed attempt", n)
		}
	})
}

// R1.20: 50 rounds of Stop and Start go on with the same sessions, where an idle session holds no message; none of them is lost in between.
func TestR1_20_StopAndStartKeepTheSessions(t *testing.T) {
	for _, p := range []memory.Profile{{Name: "plain"}, memory.LikeIBMMQ()} {
		t.Run(p.Name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				m := r.manager(tenth, func(c *keyseq.Config) { c.Workers = 5; c.MaxInFlight = 20 })
				opened := 0
				for round := range 50 {
					for k := range 30 {
						r.send(fmt.Sprint("k", k%10), round*3+k/10)
					}
					m.start()
					r.until("some are done", func() bool { return m.Snapshot().Committed >= uint64(round*20) })
					if err := m.stop(longest); err != nil {
						r.Fatal(err)
					}
					if round == 0 {
						opened = r.spy.opened()
					}
				}
				m.start()
				r.drained()
				if n := r.spy.opened(); n > 21 || n < opened {
					r.Errorf("%d sessions were opened in the first round, %d in all", opened, n)
				}
			}, p)
		})
	}
}

// R1.20: a connection that broke while the manager was stopped is not taken for a good one: Start makes a new one, or says that it cannot.
func TestR1_20_StartAfterTheIdleConnectionBroke(t *testing.T) {
	bubble(t, func(r *rig) {
		r.send("K", 1)
		m := r.manager(quick).start()
		r.drained()
		if err := m.stop(time.Minute); err != nil {
			r.Fatal(err)
		}
		down := true
		r.hook(func(c memory.Call) error {
			if c.Kind == memory.CallConnect && down {
				return jms.ErrConnectionLost
			}
			return nil
		})
		must(r.broker.Break(inQueue, memory.Loss{}))
		synctest.Wait()
		if err := m.Start(r.Context()); !errors.Is(err, jms.ErrConnectionLost) {
			r.Errorf("Start without a broker: %v, want its error", err)
		}
		r.locked(func() { down = false })
		r.send("K", 2)
		if err := m.Start(r.Context()); err != nil && !errors.Is(err, keyseq.ErrRunning) {
			r.Fatal(err)
		}
		r.drained()
	})
}

// G8: closing the connection that Stop has left open takes no longer than the context of Shutdown, or of Start when it is a lost one.
func TestR1_20_TheContextBoundsTheCloseOfAnIdleConnection(t *testing.T) {
	bubble(t, func(r *rig) {
		const hangs = 10 * time.Minute
		closing := 0
		r.broker.SetHook(func(_ context.Context, c memory.Call) error {
			if c.Kind == memory.CallCloseConnection && !c.After {
				if closing++; closing == 1 {
					time.Sleep(hangs)
				}
			}
			return nil
		})
		r.send("K", 1)
		m := r.manager(quick).start()
		r.drained()
		if err := m.stop(time.Minute); err != nil {
			r.Fatal(err)
		}
		began := time.Now()
		if err := m.shutdown(2 * time.Second); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), inQueue) {
			r.Errorf("Shutdown while the close hangs: %v, want its context's error and the queue", err)
		}
		if took := time.Since(began); took > 3*time.Second {
			r.Errorf("Shutdown took %v, its context 2 s", took)
		}
		time.Sleep(hangs)
		r.send("K", 2)
		m.start()
		r.drained()
	})
}

// A Start that Stop or Shutdown ends while it connects says so: its own context has not ended.
func TestR1_21_StartSaysThatItWasEndedWhileItConnected(t *testing.T) {
	bubble(t, func(r *rig) {
		r.unjudged = true
		connecting := make(chan struct{})
		r.broker.SetHook(func(ctx context.Context, c memory.Call) error {
			if c.Kind == memory.CallConnect && !c.After {
				close(connecting)
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})
		m := r.manager(quick)
		started := make(chan error, 1)
		go func() { started <- m.Start(r.Context()) }()
		<-connecting
		if err := m.stop(time.Minute); err != nil {
			r.Errorf("Stop: %v", err)
		}
		if err := <-started; err == nil || !strings.Contains(err.Error(), inQueue) || !strings.Contains(err.Error(), "ended by Stop or Shutdown") {
			r.Errorf("Start: %v, want the queue and who ended it", err)
		}
		if s := m.State(); s != keyseq.StateStopped {
			r.Errorf("State is %v", s)
		}
	})
}

// R1.21, B18: Shutdown lets running tasks finish and settle, skips what has not begun; the skipped messages come after a restart, in order.
func TestR1_21_ShutdownSkipsWhatHasNotBegun(t *testing.T) {
	profiles(t, func(r *rig) {
		r.interleaved(4, 10)
		m := r.manager(func(context.Context, *keyseq.Delivery) error {
			time.Sleep(10 * time.Second) // longer than the seed's five
			return nil
		}).start()
		r.until("tasks run", func() bool { return m.Snapshot().Running == 4 })
		if err := m.shutdown(longest); err != nil {
			r.Fatalf("Shutdown: %v", err)
		}
		if s := m.Snapshot(); s.Committed != 4 || s.InFlight != 0 || s.Keys != 0 {
			r.Errorf("committed %d, want the 4 that ran; in flight %d, keys %d", s.Committed, s.InFlight, s.Keys)
		}
		if n := r.spy.open(); n != 0 {
			r.Errorf("%d sessions are open after Shutdown", n)
		}
		time.Sleep(time.Second)
		if left := r.bodies(inQueue); len(left) != 36 || !slices.Equal(left[:4], []string{"k0.1", "k1.1", "k2.1", "k3.1"}) {
			r.Errorf("%d messages are back on the queue, the first %v; want 36 from k0.1 on", len(left), left[:min(4, len(left))])
		}
		if n := len(r.messageErrors()); n != 0 {
			r.Errorf("%d calls of OnMessageError", n)
		}
		m.start()
		r.drained()
	})
}

// R1.22: 20 rounds of Start, a second, Shutdown.
func TestR1_22_StartAfterShutdownTwentyTimes(t *testing.T) {
	bubble(t, func(r *rig) {
		r.interleaved(50, 80)
		m := r.manager(tenth)
		for range 20 {
			m.start()
			time.Sleep(time.Second)
			if err := m.shutdown(time.Minute); err != nil {
				r.Fatal(err)
			}
		}
		if left := r.broker.Depth(inQueue); left != 0 {
			r.Errorf("%d of 4,000 left after 20 rounds of a second with room for 200", left)
		}
	})
}

// R1.23: 100 keys, 10 versions each, interleaved; start, a second, shutdown, five seconds, until all are done: no gap, no version twice.
func TestR1_23_OrderHoldsAcrossRepeatedStartAndShutdown(t *testing.T) {
	profiles(t, func(r *rig) {
		r.interleaved(100, 10)
		var mu sync.Mutex
		seen := map[string][]string{}
		m := r.manager(func(_ context.Context, d *keyseq.Delivery) error {
			time.Sleep(250 * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			seen[d.Key] = append(seen[d.Key], string(d.Body))
			return nil
		}, func(c *keyseq.Config) { c.Workers = 7 })
		rounds := 0
		for ; r.broker.Depth(inQueue) > 0 && rounds < 200; rounds++ {
			m.start()
			r.until("it reads", func() bool { s := m.State(); return s == keyseq.StateActive })
			time.Sleep(time.Second)
			if err := m.shutdown(time.Minute); err != nil {
				r.Fatal(err)
			}
			time.Sleep(5 * time.Second)
		}
		if rounds < 10 {
			r.Errorf("done in %d rounds: the test must shut down in the middle", rounds)
		}
		for k := range 100 {
			key := fmt.Sprint("k", k)
			if got, want := len(seen[key]), 10; got != want {
				r.Errorf("%s: %v", key, seen[key])
			}
		}
	})
}

// B6: a task deaf to its context makes nothing spin: virtual time goes on only when every goroutine sleeps.
func TestB06_NothingSpinsWhileATaskIgnoresItsContext(t *testing.T) {
	bubble(t, func(r *rig) {
		r.send("K", 1, 2)
		m := r.manager(func(context.Context, *keyseq.Delivery) error {
			time.Sleep(3 * time.Hour)
			return nil
		}).start()
		time.Sleep(time.Second)
		if err := m.stop(time.Second); !errors.Is(err, keyseq.ErrDrainTimeout) {
			r.Errorf("Stop: %v, want ErrDrainTimeout", err)
		}
		<-m.Done()
		if s := m.Snapshot(); s.Committed != 1 || len(r.bodies(inQueue)) != 1 {
			r.Errorf("committed %d, left %v: a task that returns nil after all has done its work", s.Committed, r.bodies(inQueue))
		}
	})
}

// B12: an error of a kind that nobody knows neither ends the reader nor the manager; everything is handled, and State was told.
func TestB12_UnknownErrorsDoNotEndTheReader(t *testing.T) {
	bubble(t, func(r *rig) {
		r.interleaved(10, 10)
		calls := 0
		r.hook(func(c memory.Call) error {
			if calls++; !c.After && calls > 3 && (c.Kind == memory.CallReceive && calls%3 == 0 || c.Kind == memory.CallOpenSession && calls%5 == 0) {
				return errors.New("")
			}
			return nil
		})
		r.manager(quick).start()
		r.drained()
	})
	bubble(t, func(r *rig) { // nothing but failures: the connection is taken for lost, and made anew
		r.interleaved(5, 5)
		bad := true
		r.hook(func(c memory.Call) error {
			if c.Kind == memory.CallReceive && bad {
				return errors.New("")
			}
			return nil
		})
		var states journal
		r.manager(quick, func(c *keyseq.Config) {
			c.Events = append(c.Events, keyseq.Events{State: func(from, to keyseq.State, err error) {
				states.add("%v>%v %t", from, to, err != nil)
			}})
		}).start()
		time.Sleep(time.Minute)
		r.locked(func() { bad = false })
		r.drained()
		if !slices.Contains(states.all(), "active>connecting true") {
			r.Errorf("State was not told of the loss: %v", states.all())
		}
	})
}

// B13: a broken connection is made anew, for as long as it takes; what was held comes again, in order.
func TestB13_ReconnectsAndResumes(t *testing.T) {
	profiles(t, func(r *rig) {
		r.interleaved(20, 20)
		m := r.manager(tenth).start()
		time.Sleep(time.Minute)
		down := true
		r.hook(func(c memory.Call) error {
			if c.Kind == memory.CallConnect && down {
				return jms.ErrConnectionLost
			}
			return nil
		})
		r.interleavedFrom(20, 20, 40)
		time.Sleep(150 * time.Millisecond)
		r.losing("broker gone", func() { must(r.broker.Break(inQueue, memory.Loss{})) })
		time.Sleep(10 * time.Minute)
		if s := m.State(); s != keyseq.StateConnecting {
			r.Errorf("state %v, want connecting", s)
		}
		r.locked(func() { down = false })
		r.drained()
		if s := m.State(); s != keyseq.StateActive {
			r.Errorf("state %v, want active", s)
		}
	})
}

// B14: a Receive that ignores its context: Stop returns in time and says so, Start refuses until it has ended; there is never a second reader.
func TestB14_StartRefusesWhileTheOldReaderIsThere(t *testing.T) {
	bubble(t, func(r *rig) {
		hang := make(chan struct{})
		var once atomic.Bool
		r.broker.SetHook(func(_ context.Context, c memory.Call) error {
			if c.Kind == memory.CallReceive && !c.After && !once.Swap(true) {
				<-hang
			}
			return nil
		})
		m := r.manager(quick, func(c *keyseq.Config) { c.CallTimeout = time.Minute }).start()
		synctest.Wait()
		if err := m.stop(10 * time.Second); err == nil {
			r.Error("Stop returned nil while the reader is still there")
		}
		if err := m.Start(r.Context()); !errors.Is(err, keyseq.ErrStopping) {
			r.Errorf("Start: %v, want ErrStopping", err)
		}
		time.Sleep(time.Hour)
		r.send("K", 1, 2, 3)
		close(hang)
		<-m.Done()
		m.start()
		r.drained()
		if s := must(r.broker.Stats(inQueue)); s.MaxReceives > 1 {
			r.Errorf("%d Receives at once", s.MaxReceives)
		}
	})
}

// B15: Start twice makes one reader; Stop and Shutdown before Start, and twice, do nothing.
func TestB15_StartTwiceStopBeforeStart(t *testing.T) {
	bubble(t, func(r *rig) {
		m := r.manager(quick)
		for name, call := range map[string]func(context.Context) error{"Stop": m.Stop, "Shutdown": m.Shutdown} {
			if err := call(r.Context()); err != nil {
				r.Errorf("%s before Start: %v", name, err)
			}
		}
		m.start()
		if err := m.Start(r.Context()); !errors.Is(err, keyseq.ErrRunning) {
			r.Errorf("second Start: %v, want ErrRunning", err)
		}
		if err := m.Run(r.Context()); !errors.Is(err, keyseq.ErrRunning) {
			r.Errorf("Run beside it: %v, want ErrRunning", err)
		}
		r.interleaved(5, 5)
		r.drained()
		if readers := must(r.broker.Readers(inQueue)); len(readers) != 1 {
			r.Errorf("%d connections, want 1", len(readers))
		}
		for range 2 {
			if err := m.stop(time.Minute); err != nil {
				r.Errorf("Stop: %v", err)
			}
		}
		for range 2 {
			if err := m.shutdown(time.Minute); err != nil {
				r.Errorf("Shutdown: %v", err)
			}
		}
	})
}

// B16, B17: every method at once from many goroutines, while messages come: no race, no key that is stuck, nothing lost.
func TestB17_AllMethodsAtOnceLoseNothing(t *testing.T) {
	profiles(t, func(r *rig) {
		m := r.manager(func(context.Context, *keyseq.Delivery) error {
			time.Sleep(3 * time.Millisecond)
			return nil
		})
		ctx, cancel := context.WithTimeout(r.Context(), 3*time.Minute)
		defer cancel()
		var all sync.WaitGroup
		forever := func(pause time.Duration, call func()) {
			all.Go(func() {
				for ctx.Err() == nil {
					call()
					time.Sleep(pause)
				}
			})
		}
		r.audit.InstanceStopping("A")
		for i := range 3 {
			forever(time.Second+time.Duration(i)*time.Millisecond, func() { _ = m.Start(r.Context()) })
		}
		forever(7*time.Second+13*time.Millisecond, func() { _ = m.Stop(r.Context()) })
		forever(11*time.Second+17*time.Millisecond, func() { _ = m.Shutdown(r.Context()) })
		forever(19*time.Second, func() {
			ctx, cancel := context.WithTimeout(r.Context(), time.Millisecond)
			defer cancel()
			_ = m.Stop(ctx)
		})
		forever(300*time.Millisecond, func() {
			_, _ = m.Explain("k3")
			_, _, _, _ = m.Snapshot(), m.State(), m.Err(), m.Config()
			_ = m.Done()
		})
		n := 0
		forever(100*time.Millisecond, func() {
			for k := range 10 {
				r.send(fmt.Sprint("k", k), n)
			}
			n++
		})
		all.Wait()
		if err := m.shutdown(time.Minute); err != nil {
			r.Fatal(err)
		}
		m.start()
		r.drained()
	})
}

// T22: after Stop: nothing is received, running tasks are cancelled at the deadline, and what was received is settled or back.
func TestT22_ReceivedIsSettledPlusGivenBack(t *testing.T) {
	for _, limit := range []time.Duration{0, 450 * time.Millisecond, time.Minute} {
		for name, end := range map[string]func(*subject) error{
			"Stop":     func(s *subject) error { return s.stop(limit) },
			"Shutdown": func(s *subject) error { return s.shutdown(limit) },
		} {
			profiles(t, func(r *rig) {
				r.interleaved(30, 30)
				var running atMost
				m := r.manager(func(ctx context.Context, d *keyseq.Delivery) error {
					running.enter()
					defer running.leave()
					select {
					case <-ctx.Done():
						return ctx.Err()
					case <-time.After(100 * time.Millisecond):
					}
					if d.Body[len(d.Body)-1] == '3' && d.Attempt < 3 {
						return errors.New("once more")
					}
					return nil
				}, func(c *keyseq.Config) { c.Workers = 10 }).start()
				r.until("it works", func() bool { return m.Snapshot().Committed > 30 })
				time.Sleep(33 * time.Millisecond)
				err := end(m)
				if n := running.now.Load(); n != 0 {
					r.Errorf("%s(%v): %d tasks run after it returned (%v)", name, limit, n, err)
				}
				receives := r.spy.received()
				<-m.Done()
				s := m.Snapshot()
				if s.Received != s.Committed+s.RolledBack || s.InFlight != 0 || s.Keys != 0 {
					r.Errorf("%s(%v): received %d, committed %d, given back %d; in flight %d, keys %d", name, limit, s.Received, s.Committed, s.RolledBack, s.InFlight, s.Keys)
				}
				if held := r.spy.holding(); len(held) != 0 {
					r.Errorf("%s(%v): sessions hold %v", name, limit, held)
				}
				time.Sleep(r.profile.AckDelay)
				if left := r.broker.Depth(inQueue); left+int(s.Committed) != 900 {
					r.Errorf("%s(%v): %d left and %d done of 900", name, limit, left, s.Committed)
				}
				time.Sleep(time.Minute)
				if r.spy.received() != receives {
					r.Errorf("%s(%v): it received after it had returned", name, limit)
				}
			})
		}
	}
}
