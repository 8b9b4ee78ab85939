package keyseq_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/provider/memory"
)

// H6: an instance stood still, another has taken over, and its client notices two seconds later: until then the timers of its retries start nothing beside
// the other one's tasks.
func TestH06_AThawedInstanceStartsNothingBeforeItsClientNotices(t *testing.T) {
	for name, asleep := range map[string]bool{"process stopped": false, "machine asleep": true} {
		t.Run(name, func(t *testing.T) {
			electionsAndPush(t, func(r *rig) {
				const notices = 2 * time.Second
				r.send("K", 1, 2)
				r.send("L", 1, 2)
				var j journal
				a := r.standingBy("A", 0, starts(&j, func(context.Context, *keyseq.Delivery) error { return errors.New("not yet") }))
				go func() { _ = a.Run(context.Background()) }()
				r.slowly("A tries both", func() bool { return a.Snapshot().Retries >= 2 && a.Snapshot().Running == 0 })
				b := r.standingBy("B", 0, quick)
				go func() { _ = b.Run(context.Background()) }()
				time.Sleep(10 * time.Millisecond)
				before := len(j.all())
				loss := r.audit.Loss("A", "frozen", 0)
				keyseq.StandStill(a.SequenceManager, 10*time.Second, asleep)
				if r.profile.Prefetch > 0 {
					r.reader("A").Break(memory.Loss{Broker: memory.AtOnce, Client: notices})
				} else {
					r.reader("A").LoseRole(notices)
				}
				r.drainedSlowly()
				loss.Done()
				time.Sleep(time.Minute)
				if late := j.all()[before:]; len(late) > 0 {
					r.Errorf("A has started %v after it stood still", late)
				}
			})
		})
	}
}

// H6: where nothing was lost meanwhile it goes on after the moment that the client is given; what was put off is no attempt.
func TestH06_AThawedInstanceGoesOn(t *testing.T) {
	bubble(t, func(r *rig) {
		var began []time.Time
		sent := 0
		m := r.standingBy("A", 0, func(_ context.Context, d *keyseq.Delivery) error {
			r.locked(func() { began = append(began, time.Now()) })
			if d.Attempt != 1 {
				r.Errorf("%s: attempt %d", d.Body, d.Attempt)
			}
			return nil
		}).start()
		next := func() (wait time.Duration) {
			now := time.Now()
			r.locked(func() { began = nil })
			r.send("K", sent)
			sent++
			r.until("it goes on", func() (done bool) { r.locked(func() { done = len(began) > 0 }); return done })
			r.locked(func() { wait = began[0].Sub(now) })
			return wait
		}
		if wait := next(); wait != 0 {
			r.Errorf("a task waits for %v", wait)
		}
		keyseq.StandStill(m.SequenceManager, time.Second, false)
		if wait := next(); wait != 0 {
			r.Errorf("after a moment without the processor a task waits for %v", wait)
		}
		time.Sleep(time.Minute)
		keyseq.StandStill(m.SequenceManager, 2*time.Second, false)
		if wait := next(); wait < 3*time.Second || wait > 5*time.Second {
			r.Errorf("after the freeze a task waits for %v, want 3 s and a little", wait)
		}
		time.Sleep(time.Second)
		if wait := next(); wait != 0 {
			r.Errorf("later a task waits for %v", wait)
		}
	}, single)
}

// H6, R1.24: while no task may start, nothing is read, and no session is opened for it: where each costs a connection, a freeze would be followed by
// a storm of hundreds.
func TestH06_AThawedInstanceReadsNoFurther(t *testing.T) {
	bubble(t, func(r *rig) {
		r.slowOpens(nil)
		r.interleaved(800, 1)
		m := r.standingBy("A", 0, sleepy(250*time.Millisecond), wide(10, 1000)).start()
		r.slowly("it works", func() bool { return m.Snapshot().Committed > 50 })
		before := r.spy.opened()
		for range 3 {
			keyseq.StandStill(m.SequenceManager, 10*time.Second, false)
			time.Sleep(10 * time.Second)
			synctest.Wait()
		}
		if got := r.spy.opened(); got > before+openAtOnce {
			r.Errorf("%d sessions were opened, %d of them after the process stood still; want at most %d", got, got-before, openAtOnce)
		}
		r.drainedSlowly()
	}, memory.LikeIBMMQ(), single)
}

// frozenEnv makes the test program a process that is to be frozen.
const frozenEnv = "KEYSEQ_TEST_FROZEN"

// retryForever tries a message every few milliseconds and says so on its standard output, until it is killed.
func retryForever() error {
	broker, err := memory.NewBroker(single)
	if err != nil {
		return err
	}
	if _, err := broker.Send(keyseq.Outgoing{Queue: inQueue, Body: []byte("K.1")}); err != nil {
		return err
	}
	task := func(context.Context, *keyseq.Delivery) error {
		fmt.Println("attempt")
		return errors.New("not yet")
	}
	m, err := keyseq.NewSequenceManager(inQueue, broker, keyseq.ListenerFuncs{Task: task}, keyseq.KeyFromBodyBefore("."), func(c *keyseq.Config) {
		c.SingleActiveConsumer = true
		c.Retry = keyseq.RetryPolicy{MaxRetries: keyseq.Unlimited, Backoff: keyseq.FixedBackoff(20 * time.Millisecond)}
	})
	if err != nil {
		return err
	}
	return m.Run(context.Background())
}
