package keyseq_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/memory"
)

// G8: readiness follows what the instance does, and says what it waits for.
func TestHealth_Ready(t *testing.T) {
	bubble(t, func(r *rig) {
		m := r.manager(func(context.Context, *keyseq.Delivery) error { time.Sleep(time.Minute); return nil }, func(c *keyseq.Config) { c.SingleActiveConsumer = true })
		expect := func(m *subject, when, ready string) {
			r.Helper()
			err := m.Ready()
			if ready == "" && err != nil || ready != "" && (err == nil || !strings.Contains(err.Error(), ready)) {
				r.Errorf("%s: Ready says %v, want %q", when, err, ready)
			}
			if err := m.Live(); err != nil {
				r.Errorf("%s: Live says %v", when, err)
			}
		}
		expect(m, "before Start", "stopped")
		m.start()
		r.until("it reads", func() bool { return m.State() == keyseq.StateActive }) // Start returns when it stands in the election
		expect(m, "reading", "")
		standby := r.instance("B", func(context.Context, *keyseq.Delivery) error { return nil }, func(c *keyseq.Config) { c.SingleActiveConsumer = true }).start()
		if standby.State() != keyseq.StateStandby {
			r.Fatalf("the second instance is %v", standby.State())
		}
		expect(standby, "standing by", "")
		r.send("K", 0)
		synctest.Wait()
		ended := make(chan error, 1)
		go func() { ended <- m.shutdown(time.Hour) }()
		synctest.Wait()
		expect(m, "draining", "draining")
		if err := <-ended; err != nil {
			r.Error(err)
		}
		expect(m, "after Shutdown", "stopped")
	}, memory.Queue{Name: inQueue, SingleActiveConsumer: true})
}

// G8: a broker that cannot be reached makes an instance not ready, with the reason, but not dead: a restart mends no broker.
func TestHealth_WithoutABrokerItLives(t *testing.T) {
	bubble(t, func(r *rig) {
		r.unjudged = true // no message
		m := r.manager(func(context.Context, *keyseq.Delivery) error { return nil }, func(c *keyseq.Config) {
			c.Reconnect = keyseq.FixedBackoff(30 * time.Second)
		}).start()
		down := true
		r.hook(func(c memory.Call) error {
			if down && c.Kind == memory.CallConnect && !c.After {
				return errors.Join(jms.ErrConnectionLost, errors.New("host unreachable"))
			}
			return nil
		})
		must(r.broker.Break(inQueue, memory.Loss{}))
		time.Sleep(time.Hour)
		if err := m.Ready(); err == nil || !strings.Contains(err.Error(), "connecting") || !strings.Contains(err.Error(), "host unreachable") {
			r.Errorf("Ready says %v, want that it connects, and why it still does", err)
		}
		if err := m.Live(); err != nil {
			r.Errorf("Live says %v: a restart would mend nothing", err)
		}
		r.locked(func() { down = false })
		r.until("it is ready again", func() bool { return m.Ready() == nil })
	})
}

// G8: a run that has failed is neither ready nor live, and both say why.
func TestHealth_AFailedRunIsNotLive(t *testing.T) {
	bubble(t, func(r *rig) {
		r.send("K", 0)
		reason := errors.New("the ledger is corrupt")
		m := r.manager(func(context.Context, *keyseq.Delivery) error { return keyseq.StopAll(reason) })
		if err := m.Start(r.Context()); err != nil && !errors.Is(err, reason) { // it may end before Start has returned
			r.Fatal(err)
		}
		<-m.Done()
		if err := m.Live(); !errors.Is(err, reason) {
			r.Errorf("Live says %v, want the reason", err)
		}
		if err := m.Ready(); !errors.Is(err, reason) {
			r.Errorf("Ready says %v, want the reason", err)
		}
	})
}

// G8: busy, failing and waiting are life, also for hours, also with an empty queue; a supervisor that hangs in user code is not.
func TestHealth_Live(t *testing.T) {
	bubble(t, func(r *rig) {
		r.unjudged = true
		r.send("slow", 0, 1)
		r.send("bad", 0, 1)
		hang := make(chan struct{})
		m := r.manager(func(ctx context.Context, d *keyseq.Delivery) error {
			if d.Key == "bad" {
				return errTimeout
			}
			<-ctx.Done()
			return ctx.Err()
		}, func(c *keyseq.Config) {
			c.TaskTimeout, c.Retry.MaxRetries, c.Retry.Backoff = 0, keyseq.Unlimited, keyseq.FixedBackoff(time.Minute)
			c.Events = append(c.Events, keyseq.Events{State: func(_, to keyseq.State, _ error) {
				if to == keyseq.StateConnecting {
					<-hang
				}
			}})
		})
		starting := make(chan error, 1)
		go func() { starting <- m.Start(r.Context()) }()
		hang <- struct{}{} // the first time it connects
		if err := <-starting; err != nil {
			r.Fatal(err)
		}
		for range 12 {
			time.Sleep(5 * time.Minute)
			if err := m.Live(); err != nil {
				r.Fatalf("Live says %v", err)
			}
		}
		must(r.broker.Break(inQueue, memory.Loss{}))
		hang <- struct{}{} // it goes on as soon as it may
		r.until("it reads again", func() bool { return m.State() == keyseq.StateActive })
		if err := m.Live(); err != nil {
			r.Errorf("after a reconnect Live says %v", err)
		}
		_ = m.shutdown(time.Second) // it has to cancel the slow task
	})
}

// G8: an event func that never returns holds up the goroutine that supervises. That shows after four times CallTimeout and DrainTimeout.
func TestHealth_ASupervisorThatHangsIsNotLive(t *testing.T) {
	bubble(t, func(r *rig) {
		r.unjudged = true // no message
		hang := make(chan struct{})
		m := r.manager(func(context.Context, *keyseq.Delivery) error { return nil }, func(c *keyseq.Config) {
			c.CallTimeout, c.DrainTimeout = time.Second, 5*time.Second
			c.Events = append(c.Events, keyseq.Events{State: func(_, to keyseq.State, _ error) {
				if to == keyseq.StateActive {
					<-hang
				}
			}})
		}).start()
		time.Sleep(8 * time.Second)
		if err := m.Live(); err != nil {
			r.Errorf("after 8 s Live says %v", err)
		}
		time.Sleep(2 * time.Second)
		if err := m.Live(); err == nil || !strings.Contains(err.Error(), "does not move") {
			r.Errorf("after 10 s Live says %v", err)
		}
		close(hang)
		r.until("it moves again", func() bool { return m.Live() == nil })
	})
}

// G8: a KeyExtractor that never returns holds up all reading, while messages wait at the broker. That shows after four times CallTimeout.
func TestHealth_AnExtractorThatHangsIsNotLive(t *testing.T) {
	bubble(t, func(r *rig) {
		r.unjudged = true
		r.send("K", 0, 1)
		hang := make(chan struct{})
		m := must(keyseq.NewSequenceManager(inQueue, r.factory, keyseq.ListenerFuncs{Task: func(context.Context, *keyseq.Delivery) error { return nil }},
			keyseq.KeyExtractorFunc(func(*keyseq.Message) (string, error) {
				<-hang
				return "K", nil
			}), func(c *keyseq.Config) { c.CallTimeout = time.Second }))
		if err := m.Start(r.Context()); err != nil {
			r.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		if err := m.Live(); err != nil {
			r.Errorf("after 3 s Live says %v", err)
		}
		time.Sleep(2 * time.Second)
		if err := m.Live(); err == nil || !strings.Contains(err.Error(), "KeyExtractor") {
			r.Errorf("after 5 s Live says %v", err)
		}
		close(hang)
		r.drained()
		if err := m.Live(); err != nil {
			r.Errorf("when it moves again Live says %v", err)
		}
		if err := m.Shutdown(context.Background()); err != nil {
			r.Error(err)
		}
	})
}
