package keyseq_test

import (
	"context"
	"errors"
	"fmt"
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

// T23, H14: a task ignores its context and the drain deadline passes: no second task of its key begins, in this run, in a later one, or in
// another instance; what is held goes back; the error names the key; the role is released only when the task has ended.
func TestT23_ATaskDeafToItsContextIsNeverJoined(t *testing.T) {
	electionsAndPush(t, func(r *rig) {
		r.send("K", 1, 2, 3, 4)
		r.send("L", 1, 2)
		release := make(chan struct{})
		var running, most atomic.Int32
		task := func(_ context.Context, d *keyseq.Delivery) error {
			if d.Key != "K" {
				return nil
			}
			if n := running.Add(1); n > most.Load() {
				most.Store(n)
			}
			defer running.Add(-1)
			<-release
			return nil
		}
		a := r.standingBy("A", 0, task).start()
		r.slowly("K.1 runs and all is received", func() bool { return running.Load() == 1 && a.Snapshot().Received >= 6 })
		b := r.standingBy("B", 0, task)
		go func() { _ = b.Run(context.Background()) }()
		err := a.shutdown(10 * time.Second)
		if !errors.Is(err, keyseq.ErrDrainTimeout) || !strings.Contains(err.Error(), `"K"`) {
			r.Errorf("Shutdown: %v, want ErrDrainTimeout with the key", err)
		}
		if err := a.Start(r.Context()); !errors.Is(err, keyseq.ErrStopping) {
			r.Errorf("Start: %v, want ErrStopping", err)
		}
		time.Sleep(20 * time.Minute) // a broker that limits how long a message is held takes the role away at some time
		if s := b.Snapshot(); s.Received != 0 {
			r.Errorf("B has received %d messages while a task of A runs", s.Received)
		}
		select {
		case <-a.Done():
			r.Error("the run has ended while its task runs")
		default:
		}
		close(release)
		<-a.Done()
		r.drainedSlowly()
		if most.Load() != 1 {
			r.Errorf("%d tasks of K at once", most.Load())
		}
	})
}

// H14: Stop does not wait for a key whose next attempt is hours away, or whose dead-letter queue is full, or whose message is in doubt: they go back.
func TestH14_StopDoesNotWaitForKeysThatWait(t *testing.T) {
	profiles(t, func(r *rig) {
		if err := r.broker.InhibitPut(deadQueue, true); err != nil {
			r.Fatal(err)
		}
		r.send("pause", 1, 2)
		r.send("dead", 1, 2)
		r.send("doubt", 1, 2)
		pull := r.profile.Prefetch == 0
		m := r.manager(func(_ context.Context, d *keyseq.Delivery) error {
			switch d.Key {
			case "pause":
				return keyseq.RetryAfter(2*time.Hour, errors.New("down"))
			case "dead":
				return keyseq.DeadLetter(errors.New("bad"))
			}
			return nil
		}, func(c *keyseq.Config) {
			c.DeadLetterQueue = deadQueue
			c.ReturnDelay = 5 * time.Minute
			c.Retry.MaxRetries = keyseq.Unlimited
		})
		if pull {
			r.failCommit("doubt.1", 1, jms.ErrCommitUnknown, nil)
		}
		m.start()
		time.Sleep(6 * time.Minute) // a first read may wait for ReturnDelay
		began := time.Now()
		if err := m.stop(time.Hour); err != nil {
			r.Errorf("Stop: %v", err)
		}
		if took := time.Since(began); took > time.Minute {
			r.Errorf("Stop took %v", took)
		}
		if held := r.spy.holding(); len(held) != 0 {
			r.Errorf("still held: %v", held)
		}
		r.verdict.Incomplete = true
	})
}

// H15: Stop where the broker sends ahead: everything received is settled, the connection is closed, so that another instance may go on; the next
// Start opens a new one.
func TestH15_StopOnABrokerThatSendsAhead(t *testing.T) {
	for _, p := range []memory.Profile{memory.LikeRabbitMQ(), memory.LikeQuorum()} {
		t.Run(p.Name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.interleaved(10, 60)
				a := r.standingBy("A", 0, tenth).start()
				r.slowly("A works", func() bool { return a.Snapshot().Committed > 20 })
				b := r.standingBy("B", 0, tenth).start()
				if err := a.stop(time.Hour); err != nil {
					r.Fatal(err)
				}
				if s := a.Snapshot(); s.Received != s.Committed {
					r.Errorf("%d received, %d settled", s.Received, s.Committed)
				}
				time.Sleep(10 * time.Second)
				if b.Snapshot().Committed == 0 {
					r.Error("B does not go on: the stopped instance still has what was sent ahead")
				}
				a.start()
				r.drainedSlowly()
			}, p, single)
		})
	}
}

// B18: a task that needs longer than any close waits for is settled, in Stop and in Shutdown, and is not done again.
func TestB18_RunningTasksAreSettledHoweverLongTheyTake(t *testing.T) {
	for name, end := range map[string]func(*subject) error{
		"Stop":     func(s *subject) error { return s.stop(time.Hour) },
		"Shutdown": func(s *subject) error { return s.shutdown(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			profiles(t, func(r *rig) {
				r.send("K", 1, 2)
				var j journal
				m := r.manager(starts(&j, sleepy(10*time.Minute))).start()
				r.slowly("K.1 runs", func() bool { return m.Snapshot().Running == 1 && m.Snapshot().InFlight >= 2 })
				if err := end(m); err != nil {
					r.Fatalf("%v", err)
				}
				time.Sleep(r.profile.AckDelay)
				want := map[string]string{"Stop": "", "Shutdown": "K.2"}[name]
				r.want("left", r.bodies(inQueue), want)
				m.start()
				r.drainedSlowly()
				r.want("K", j.all(), "K.1 K.2")
			})
		})
	}
}

// StopAll and ActionStop, of a task and of a key: the run ends with the reason, the message goes back before its followers, and the next run begins with it.
func TestH14_ARunThatIsStoppedByATaskLosesNothing(t *testing.T) {
	bad := errors.New("bad")
	for name, c := range map[string]struct {
		configure func(*keyseq.Config)
		err       error
		body      string
	}{
		"StopAll":                {func(*keyseq.Config) {}, keyseq.StopAll(bad), "K.2"},
		"retries exhausted":      {func(c *keyseq.Config) { c.Retry.MaxRetries, c.Retry.OnExhausted = 0, keyseq.ActionStop }, bad, "K.2"},
		"no key":                 {func(c *keyseq.Config) { c.OnKeyError = keyseq.ActionStop }, nil, "nokey"},
		"no dead-letter queue":   {func(*keyseq.Config) {}, nil, "nokey"},
		"StopAll in a long task": {func(c *keyseq.Config) { c.DrainTimeout = time.Second }, keyseq.StopAll(bad), "K.2"},
	} {
		t.Run(name, func(t *testing.T) {
			profiles(t, func(r *rig) {
				if c.body == "nokey" {
					r.unjudged = true // it is on no key's record
				}
				r.send("K", 1)
				if c.body == "nokey" {
					must(r.broker.Send(keyseq.Outgoing{Queue: inQueue, Body: []byte(c.body)}))
				}
				r.send("K", 2, 3)
				r.send("L", 1, 2, 3)
				fail := true
				m := r.manager(func(ctx context.Context, d *keyseq.Delivery) error {
					if string(d.Body) == c.body && fail {
						return c.err
					}
					if d.Key == "L" && strings.Contains(name, "long") {
						select {
						case <-ctx.Done():
							return ctx.Err()
						case <-time.After(time.Minute):
						}
					}
					return nil
				}, c.configure)
				ended := make(chan error, 1)
				go func() { ended <- m.Run(context.Background()) }()
				err := <-ended
				if err == nil || c.err != nil && !errors.Is(err, bad) || !strings.Contains(err.Error(), inQueue) {
					r.Errorf("Run: %v", err)
				}
				if m.State() != keyseq.StateFailed || m.Live() == nil {
					r.Errorf("state %v, Live %v", m.State(), m.Live())
				}
				time.Sleep(time.Second)
				left := r.bodies(inQueue)
				if got := strings.Join(ofKey(left, "K"), " "); !strings.HasSuffix(got, "K.2 K.3") {
					r.Errorf("left of K: %s", got)
				}
				if c.body == "nokey" {
					return
				}
				fail = false
				m.start()
				r.drainedSlowly()
			})
		})
	}
}

// Two instances start, stop and shut down at random, for hours: nothing is lost, nothing runs twice at once, and in the end each can still start.
func TestH14_TwoInstancesStartAndStopAtRandom(t *testing.T) {
	electionsAndPush(t, func(r *rig) {
		r.interleaved(10, 100)
		task := func(ctx context.Context, _ *keyseq.Delivery) error {
			timer := time.NewTimer(3 * time.Second)
			defer timer.Stop()
			select {
			case <-timer.C:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		a, b := r.standingBy("A", 5*time.Second, task), r.standingBy("B", 5*time.Second, task)
		restless := func(s *subject, step time.Duration, rounds int) {
			for i := range rounds {
				ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
				err := s.Start(ctx)
				cancel()
				if err != nil && !errors.Is(err, keyseq.ErrStopping) && !errors.Is(err, keyseq.ErrRunning) && !errors.Is(err, context.DeadlineExceeded) {
					r.Errorf("%s: Start: %v", s.name, err)
				}
				time.Sleep(step * time.Duration(1+i%4))
				limit := []time.Duration{time.Second, time.Minute}[i%2]
				if i%3 == 0 {
					err = s.stop(limit)
				} else {
					err = s.shutdown(limit)
				}
				if err != nil && !errors.Is(err, keyseq.ErrDrainTimeout) {
					r.Errorf("%s: end: %v", s.name, err)
				}
				time.Sleep(step / 2)
			}
		}
		done := make(chan struct{}, 2)
		go func() { restless(a, 7*time.Second, 20); done <- struct{}{} }()
		go func() { restless(b, 11*time.Second, 12); done <- struct{}{} }()
		<-done
		<-done
		synctest.Wait()
		for _, s := range []*subject{a, b} {
			<-s.Done()
			if s.Snapshot().InFlight > 0 {
				r.Errorf("%s has ended and holds %d", s.name, s.Snapshot().InFlight)
			}
			s.start()
		}
		r.drainedSlowly()
	})
}

// Stop while the instance waits for the tasks of its predecessor, and again, and then for good: no task begins before the wait is over.
func TestH14_StopDuringATakeover(t *testing.T) {
	electionsAndPush(t, func(r *rig) {
		r.send("K", 1, 2, 3)
		deaf := func(ctx context.Context, _ *keyseq.Delivery) error {
			<-ctx.Done()
			time.Sleep(55 * time.Second)
			return ctx.Err()
		}
		a := r.standingBy("A", 0, deaf).start()
		r.slowly("A works", func() bool { return a.Snapshot().Running == 1 })
		b := r.standingBy("B", time.Minute, quick)
		go func() { _ = b.Run(context.Background()) }()
		time.Sleep(time.Second)
		loss := r.audit.Loss("", "A is cut off", 0)
		r.reader("A").Break(memory.Loss{Broker: memory.AtOnce})
		loss.Done()
		go func() { _ = a.shutdown(time.Second) }()
		for i := range 3 {
			time.Sleep(5 * time.Second)
			var err error
			if i%2 == 0 {
				err = b.stop(time.Minute)
			} else {
				err = b.shutdown(time.Minute)
			}
			if err != nil {
				r.Errorf("end %d: %v", i, err)
			}
			if b.Snapshot().Committed > 0 {
				r.Errorf("B has worked while a task of A runs")
			}
			b.start()
		}
		r.drainedSlowly()
	})
}

// G8, H18: a Stop that has all the time in the world does not wait for ever for a commit that does not return: it closes the connection, and if even
// that does not end the call it names the key. The key is not joined before the call has returned.
func TestH18_StopDoesNotWaitForACommitThatNeverReturns(t *testing.T) {
	for _, closeEnds := range []bool{true, false} {
		for name, end := range map[string]func(*subject) error{
			"Stop":     func(s *subject) error { return s.Stop(context.Background()) },
			"Shutdown": func(s *subject) error { return s.Shutdown(context.Background()) },
		} {
			t.Run(fmt.Sprintf("%s/close ends the call %t", name, closeEnds), func(t *testing.T) {
				profiles(t, func(r *rig) {
					r.send("K", 1, 2, 3)
					r.send("L", 1)
					gone := make(chan struct{})
					var once sync.Once
					r.broker.SetHook(func(_ context.Context, c memory.Call) error {
						switch {
						case c.Kind == memory.CallCommit && !c.After && string(c.Message.Body) == "K.1":
							<-gone
						case c.Kind == memory.CallCloseConnection && !c.After && closeEnds:
							once.Do(func() { close(gone) })
						}
						return nil
					})
					var j journal
					m := r.manager(starts(&j, quick), func(c *keyseq.Config) { c.CallTimeout, c.DrainTimeout = 5*time.Second, 10*time.Second }).start()
					r.slowly("L is done", func() bool { return m.Snapshot().Committed == 1 })
					loss := r.audit.Loss("", "a commit does not return", 0)
					r.audit.InstanceStopping("A")
					began := time.Now()
					err := end(m)
					if took := time.Since(began); took > 30*time.Second {
						r.Errorf("%s took %v", name, took)
					}
					if !errors.Is(err, keyseq.ErrDrainTimeout) || !strings.Contains(err.Error(), `"K"`) {
						r.Errorf("%s: %v, want ErrDrainTimeout and the key", name, err)
					}
					if !closeEnds {
						if err := m.Start(r.Context()); !errors.Is(err, keyseq.ErrStopping) {
							r.Errorf("Start: %v, want ErrStopping: the call has not returned", err)
						}
						r.want("K, whose commit hangs", ofKey(j.all(), "K"), "K.1")
						once.Do(func() { close(gone) })
					}
					<-m.Done()
					m.start()
					r.drainedSlowly()
					loss.Done()
				})
			})
		}
	}
}
