package keyseq_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/memory"
)

var errTimeout = errors.New("timeout\nand a second line")

// Why a key does not move, in words, for each place in which its head can be.
func TestExplain_SaysWhyAKeyDoesNotMove(t *testing.T) {
	for _, c := range []struct {
		name, want string
		next       time.Duration // until the next attempt, at the look
		attempt    int
		configure  func(*keyseq.Config)
		task       taskFunc
		act        func(r *rig) // up to the look
	}{
		{
			name:    "retry pause",
			want:    "attempt 3 of 17 failed 12 s ago: timeout; next in 48 s; 5 messages wait, oldest 2 min",
			attempt: 3, next: 48 * time.Second,
			configure: func(c *keyseq.Config) {
				c.Retry.Backoff = keyseq.StepBackoff(54*time.Second, 54*time.Second, time.Minute)
			},
			task: func(context.Context, *keyseq.Delivery) error { return errTimeout },
			act:  func(*rig) { time.Sleep(120 * time.Second) },
		},
		{
			name: "running", want: "attempt 1 of 17 runs for 45 s; 5 messages wait, oldest 45 s", attempt: 1,
			task: func(context.Context, *keyseq.Delivery) error { time.Sleep(time.Minute); return nil },
			act:  func(*rig) { time.Sleep(45 * time.Second) },
		},
		{
			name: "running again", want: "attempt 1 of 17 failed 3 s ago: timeout; attempt 2 of 17 runs for 2 s; 5 messages wait, oldest 3 s", attempt: 2,
			configure: func(c *keyseq.Config) { c.Retry.Backoff = keyseq.FixedBackoff(time.Second) },
			task: func(_ context.Context, d *keyseq.Delivery) error {
				if d.Attempt == 1 {
					return errTimeout
				}
				time.Sleep(time.Minute)
				return nil
			},
			act: func(*rig) { time.Sleep(3 * time.Second) },
		},
		{
			name: "retries without end", want: "attempt 2 failed 500 ms ago: timeout; next in 500 ms; 5 messages wait, oldest 2 s", attempt: 2, next: 500 * time.Millisecond,
			configure: func(c *keyseq.Config) {
				c.Retry.MaxRetries, c.Retry.Backoff = keyseq.Unlimited, keyseq.FixedBackoff(time.Second)
			},
			task: func(context.Context, *keyseq.Delivery) error { return errTimeout },
			act:  func(*rig) { time.Sleep(1500 * time.Millisecond) },
		},
		{
			name: "held", want: "attempt 4 failed 30 min ago: timeout; retries are exhausted, the key is held; next in 30 min; 5 messages wait, oldest 4 h", attempt: 4, next: 30 * time.Minute,
			configure: func(c *keyseq.Config) {
				c.Retry = keyseq.RetryPolicy{MaxRetries: 2, Backoff: keyseq.FixedBackoff(time.Hour), OnExhausted: keyseq.ActionHold}
			},
			task: func(context.Context, *keyseq.Delivery) error { return errTimeout },
			act:  func(*rig) { time.Sleep(3*time.Hour + 30*time.Minute) },
		},
		{
			name: "nowhere to go", want: "attempt 1 of 17 failed 500 ms ago: dead letter: timeout; no dead-letter queue is known, the key is held; next in 500 ms; 5 messages wait, oldest 500 ms", attempt: 1, next: 500 * time.Millisecond,
			configure: func(c *keyseq.Config) { c.Retry.Backoff = keyseq.FixedBackoff(time.Second) },
			task:      func(context.Context, *keyseq.Delivery) error { return keyseq.DeadLetter(errTimeout) },
			act:       func(*rig) { time.Sleep(500 * time.Millisecond) },
		},
		{
			name: "commit under way", want: "settlement is under way; 5 messages wait, oldest 4 s", attempt: 1,
			task: func(context.Context, *keyseq.Delivery) error { return nil },
			act: func(r *rig) {
				r.broker.SetHook(func(_ context.Context, c memory.Call) error {
					if c.Kind == memory.CallCommit && !c.After && string(c.Message.Body) == "K.0" {
						time.Sleep(5 * time.Second)
					}
					return nil
				})
				time.Sleep(4 * time.Second)
			},
		},
		{
			name: "dead letter refused", want: `dead letter refused 2 s ago: memory: queue "ORDERS.DEAD" is inhibited for sending; switch it on with InhibitPut: jms: try again later; next in 3 s; 5 messages wait, oldest 2 s`, attempt: 1, next: 3 * time.Second,
			configure: func(c *keyseq.Config) {
				c.DeadLetterQueue, c.Retry = deadQueue, keyseq.RetryPolicy{Backoff: keyseq.FixedBackoff(5 * time.Second)}
			},
			task: func(context.Context, *keyseq.Delivery) error { return errTimeout },
			act: func(r *rig) {
				must(0, r.broker.InhibitPut(deadQueue, true))
				time.Sleep(2 * time.Second)
			},
		},
		{
			name: "waits for a worker", want: "ready: waits for a worker; 5 messages wait, oldest 2 s", attempt: 0,
			configure: func(c *keyseq.Config) { c.Workers = 1 },
			task:      func(context.Context, *keyseq.Delivery) error { time.Sleep(time.Minute); return nil },
			act:       func(*rig) { time.Sleep(2 * time.Second) },
		},
		{
			name: "blocked until the broker has it back", want: "blocked: goes back to the queue when everything lost is back there; 4 messages wait", attempt: 0,
			task: func(_ context.Context, d *keyseq.Delivery) error { return nil },
			act: func(r *rig) {
				lost := false
				r.hook(func(c memory.Call) error {
					if c.Kind == memory.CallCommit && !c.After && string(c.Message.Body) == "K.0" && !lost {
						lost = true
						return jms.ErrSessionLost
					}
					return nil
				})
				time.Sleep(5 * time.Second)
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var options []memory.Option
			if strings.HasPrefix(c.name, "blocked") {
				options = append(options, memory.LikeIBMMQ())
			}
			bubble(t, func(r *rig) {
				r.unjudged = true
				if c.name == "waits for a worker" {
					r.send("other", 0)
				}
				r.send("K", 0, 1, 2, 3, 4, 5)
				configure := c.configure
				if configure == nil {
					configure = func(*keyseq.Config) {}
				}
				m := r.manager(c.task, configure)
				if c.name == "dead letter refused" || c.name == "commit under way" || len(options) > 0 {
					go func() { _ = m.Start(r.Context()) }()
				} else {
					m.start()
				}
				began := time.Now()
				c.act(r)
				report, ok := m.Explain("K")
				if !ok || !strings.HasPrefix(report.Reason, c.want) {
					r.Errorf("after %v: %t,\n %s; want\n %s", time.Since(began), ok, report.Reason, c.want)
				}
				if report.Key != "K" || report.MessageID == "" || report.Attempt != c.attempt {
					r.Errorf("key %q, message %q, attempt %d; want K, its head, %d", report.Key, report.MessageID, report.Attempt, c.attempt)
				}
				if next := report.NextAttempt; c.next > 0 && time.Until(next) != c.next || c.next == 0 && !next.IsZero() {
					r.Errorf("next attempt %v from now, want %v", time.Until(next), c.next)
				}
				must(0, r.broker.InhibitPut(deadQueue, false))
				r.broker.SetHook(nil)
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				_ = m.Shutdown(ctx)
				<-m.Done()
			}, options...)
		})
	}
}

// A Snapshot agrees with what is going on, and names the keys that do not move: those held longest first, at most twenty, none that only waits
// for a worker.
func TestSnapshot_NamesTheKeysThatDoNotMove(t *testing.T) {
	bubble(t, func(r *rig) {
		r.unjudged = true
		began := time.Now()
		m := r.manager(func(_ context.Context, d *keyseq.Delivery) error {
			if strings.HasPrefix(d.Key, "bad") {
				return errTimeout
			}
			time.Sleep(time.Hour)
			return nil
		}, func(c *keyseq.Config) { c.Workers = 2; c.Retry.Backoff = keyseq.FixedBackoff(time.Hour) }).start()
		for k := range 25 {
			r.send("bad"+string(rune('a'+k)), 0)
			time.Sleep(time.Second)
		}
		for _, key := range []string{"slow1", "slow2", "waiting"} {
			r.send(key, 0, 1)
		}
		time.Sleep(time.Second)
		s := m.Snapshot()
		if s.State != keyseq.StateActive || s.Running != 2 || s.Ready != 1 || s.Retrying != 25 || s.Keys != 28 || s.Retries != 25 || s.Received != 31 || s.MaxInFlight != 200 {
			r.Errorf("%+v", s)
		}
		if s.InFlight != 32 { // with the place for the message that is waited for
			r.Errorf("%d in flight, want 31 and a reserved place", s.InFlight)
		}
		if !s.Oldest.Equal(began) {
			r.Errorf("the oldest was received %v after the start, want at once", s.Oldest.Sub(began))
		}
		if len(s.Blocked) != 20 || s.Blocked[0].Key != "bada" || s.Blocked[19].Key != "badt" {
			r.Errorf("%d blocked keys, want the 20 oldest: %+v", len(s.Blocked), s.Blocked)
		}
		s.Blocked[0].Key = "changed by its owner"
		if again := m.Snapshot(); again.Blocked[0].Key != "bada" {
			r.Error("two Snapshots share their Blocked")
		}
		if _, ok := m.Explain("nobody"); ok {
			r.Error("Explain knows a key of which nothing is held")
		}
	})
}

// curious is an error whose text asks the manager.
type curious struct{ m *subject }

func (e curious) Error() string {
	report, _ := e.m.Explain("K")
	return "asked, and heard of " + report.Key
}

// rude is an error that has no text to give.
type rude struct{}

func (rude) Error() string { panic("no words") }

// A key whose head waited its turn is in trouble since the failure, or the attempt, and not since the head was received.
func TestExplain_SinceIsNotOldest(t *testing.T) {
	bubble(t, func(r *rig) {
		r.verdict.Incomplete = true
		began := time.Now()
		r.send("K", 1, 2)
		m := r.manager(func(_ context.Context, d *keyseq.Delivery) error {
			time.Sleep(10 * time.Second)
			if string(d.Body) == "K.2" {
				return errTimeout
			}
			return nil
		}, func(c *keyseq.Config) { c.Retry.Backoff = keyseq.FixedBackoff(time.Minute) }).start()
		look := func(since time.Duration) {
			time.Sleep(15 * time.Second)
			k, _ := m.Explain("K")
			if k.MessageID == "" || !k.Oldest.Equal(began) || !k.Since.Equal(began.Add(since)) {
				r.Errorf("%q: oldest %v and since %v after the start, want 0 and %v", k.Reason, k.Oldest.Sub(began), k.Since.Sub(began), since)
			}
		}
		look(10 * time.Second) // K.2 runs
		look(20 * time.Second) // has failed
		time.Sleep(time.Minute)
		look(20 * time.Second) // once more
	})
}

// What a task's error says is the user's code: it may call the manager or panic, and neither may hold up Explain, Snapshot or the message.
func TestExplain_ErrorsAreUserCode(t *testing.T) {
	bubble(t, func(r *rig) {
		r.send("K", 0)
		r.send("R", 0)
		var m *subject
		m = r.manager(func(_ context.Context, d *keyseq.Delivery) error {
			switch {
			case d.Attempt > 1:
				return keyseq.DeadLetter(rude{})
			case d.Key == "K":
				return curious{m}
			}
			return rude{}
		}, func(c *keyseq.Config) {
			c.DeadLetterQueue, c.Retry.Backoff = deadQueue, keyseq.FixedBackoff(time.Minute)
		})
		m.start()
		time.Sleep(time.Second)
		for key, want := range map[string]string{"K": "asked, and heard of K", "R": "no words"} {
			if report, _ := m.Explain(key); !strings.Contains(report.Reason, want) {
				r.Errorf("%s: %s, want %q", key, report.Reason, want)
			}
		}
		if s := m.Snapshot(); len(s.Blocked) != 2 {
			r.Errorf("%+v", s)
		}
		r.drained()
		if got := len(r.bodies(deadQueue)); got != 2 {
			r.Errorf("%d dead letters, want 2", got)
		}
	})
}

// Blocked leaves out a key that only waits for a worker, and takes in the one that has it.
func TestSnapshot_AReadyKeyIsNotBlocked(t *testing.T) {
	bubble(t, func(r *rig) {
		m := r.manager(func(context.Context, *keyseq.Delivery) error { time.Sleep(time.Minute); return nil }, func(c *keyseq.Config) { c.Workers = 1 }).start()
		r.send("runs", 0)
		time.Sleep(time.Second)
		r.send("waits", 0)
		time.Sleep(time.Second)
		if s := m.Snapshot(); len(s.Blocked) != 1 || s.Blocked[0].Key != "runs" || s.Ready != 1 {
			r.Errorf("blocked: %+v, %d ready", s.Blocked, s.Ready)
		}
		r.drained()
	})
}

// A key that is held because its message can go nowhere is said in the log: at the first attempt that would have been the last, then at every tenth.
func TestEvents_AHeldKeyIsLogged(t *testing.T) {
	for name, c := range map[string]struct {
		verdict error
		policy  keyseq.RetryPolicy
	}{
		"retries exhausted":              {errTimeout, keyseq.RetryPolicy{MaxRetries: 2, OnExhausted: keyseq.ActionHold}},
		"no dead-letter queue":           {errTimeout, keyseq.RetryPolicy{MaxRetries: 2}},
		"dead letter without such queue": {keyseq.DeadLetter(errTimeout), keyseq.RetryPolicy{MaxRetries: 0}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				var log records
				r.send("K", 0)
				r.manager(func(_ context.Context, d *keyseq.Delivery) error {
					if d.Attempt > 25 {
						return nil
					}
					return c.verdict
				}, func(cfg *keyseq.Config) {
					c.policy.Backoff = keyseq.FixedBackoff(time.Second)
					cfg.Retry, cfg.Logger = c.policy, slog.New(&log)
				}).start()
				r.drained()
				if n := log.count("holds its key"); n != 3 {
					r.Errorf("said %d times in 25 attempts, want 3", n)
				}
			})
		})
	}
}

// Explain and Snapshot while everything moves: what they say is never torn. The race detector has a look too.
func TestExplain_WhileEverythingMoves(t *testing.T) {
	bubble(t, func(r *rig) {
		r.interleaved(10, 20)
		m := r.manager(func(_ context.Context, d *keyseq.Delivery) error {
			time.Sleep(time.Millisecond)
			if d.Attempt == 1 && d.Key == "k3" {
				return errTimeout
			}
			return nil
		})
		m.start()
		var looking sync.WaitGroup
		stop := make(chan struct{})
		for range 4 {
			looking.Go(func() {
				for {
					select {
					case <-stop:
						return
					case <-time.After(300 * time.Microsecond):
					}
					if report, ok := m.Explain("k3"); ok && (report.Key != "k3" || report.Held < 1 && report.MessageID != "") {
						r.Errorf("%+v", report)
					}
					if s := m.Snapshot(); s.Committed > s.Received || s.Running > 20 {
						r.Errorf("%+v", s)
					}
				}
			})
		}
		r.drained()
		close(stop)
		looking.Wait()
	})
}
