package keyseq_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/memory"
)

// Bad input: an unknown queue ends Start and Run at once, with an error that no retry is made for.
func TestBadInput_UnknownQueue(t *testing.T) {
	bubble(t, func(r *rig) {
		for _, c := range []struct {
			name, queue, dead string
			action            keyseq.Action
		}{
			{"queue", "NOWHERE", "", keyseq.ActionAuto},
			{"dead-letter queue", inQueue, "NOWHERE", keyseq.ActionAuto},
			{"no dead-letter queue, but ActionDeadLetter", inQueue, "", keyseq.ActionDeadLetter},
		} {
			m := must(keyseq.NewSequenceManager(c.queue, r.factory, keyseq.ListenerFuncs{Task: quick}, keyseq.KeyFromGroupID(), func(cfg *keyseq.Config) {
				cfg.DeadLetterQueue, cfg.Retry.OnExhausted = c.dead, c.action
			}))
			for name, call := range map[string]func(context.Context) error{"Start": m.Start, "Run": m.Run} {
				began := time.Now()
				err := call(r.Context())
				if !errors.Is(err, jms.ErrConfig) || !strings.Contains(err.Error(), c.queue) || !strings.Contains(err.Error(), c.dead) || time.Since(began) > 0 {
					r.Errorf("%s, %s: %v after %v; want jms.ErrConfig at once, with the names", c.name, name, err, time.Since(began))
				}
				select {
				case <-m.Done():
				default:
					r.Errorf("%s, %s: Done is open", c.name, name)
				}
				if errors.Is(m.Err(), jms.ErrConfig) == false {
					r.Errorf("%s, %s: Err is %v", c.name, name, m.Err())
				}
			}
		}
		if readers := must(r.broker.Readers(inQueue)); len(readers) != 0 {
			r.Errorf("%d connections are left open", len(readers))
		}
	})
}

// Bad input: Start, Run, Stop and Shutdown inside a callback would wait for themselves. Each returns ErrInCallback at once, and the work goes on.
func TestBadInput_LifecycleCallsInsideCallbacks(t *testing.T) {
	where := map[string]func(try func()) func(*keyseq.Config){
		"DoTask":         nil,
		"OnMessageError": nil,
		"KeyExtractor":   nil,
		"Received": func(try func()) func(*keyseq.Config) {
			return onEvent(keyseq.Events{Received: func(keyseq.MessageEvent) { try() }})
		},
		"Started": func(try func()) func(*keyseq.Config) {
			return onEvent(keyseq.Events{Started: func(keyseq.MessageEvent) { try() }})
		},
		"Retrying": func(try func()) func(*keyseq.Config) {
			return onEvent(keyseq.Events{Retrying: func(keyseq.MessageEvent) { try() }})
		},
		"Committed": func(try func()) func(*keyseq.Config) {
			return onEvent(keyseq.Events{Committed: func(keyseq.MessageEvent) { try() }})
		},
		"RolledBack": func(try func()) func(*keyseq.Config) {
			return onEvent(keyseq.Events{RolledBack: func(keyseq.MessageEvent) { try() }})
		},
		"Discarded": func(try func()) func(*keyseq.Config) {
			return onEvent(keyseq.Events{Discarded: func(keyseq.MessageEvent) { try() }})
		},
		"State": func(try func()) func(*keyseq.Config) {
			return onEvent(keyseq.Events{State: func(_, _ keyseq.State, _ error) { try() }})
		},
		"Blocked": func(try func()) func(*keyseq.Config) {
			return onEvent(keyseq.Events{Blocked: func([]keyseq.KeyReport) { try() }})
		},
		"Stuck": func(try func()) func(*keyseq.Config) {
			return onEvent(keyseq.Events{Stuck: func(keyseq.KeyReport) { try() }})
		},
	}
	for name, configure := range where {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.interleaved(6, 3)
				var m *subject
				tries := 0
				try := func() {
					for what, call := range map[string]func(context.Context) error{"Start": m.Start, "Run": m.Run, "Stop": m.Stop, "Shutdown": m.Shutdown} {
						if err := call(context.Background()); !errors.Is(err, keyseq.ErrInCallback) || !strings.Contains(err.Error(), inQueue) {
							r.Errorf("%s inside %s: %v, want ErrInCallback", what, name, err)
						}
					}
					r.locked(func() { tries++ })
				}
				slow := true
				r.broker.SetHook(func(_ context.Context, c memory.Call) error {
					if c.Kind != memory.CallCommit || c.After {
						return nil
					}
					var wait bool
					r.locked(func() {
						wait, slow = slow && string(c.Message.Body) == "k5.0", slow && string(c.Message.Body) != "k5.0"
					})
					if wait {
						time.Sleep(time.Minute) // a call that overruns CallTimeout
					}
					if string(c.Message.Body) == "k4.1" {
						var first bool
						r.locked(func() { first = m.Snapshot().RolledBack == 0 })
						if first {
							return jms.ErrRolledBack
						}
					}
					return nil
				})
				configs := []func(*keyseq.Config){func(c *keyseq.Config) {
					c.MaxInFlight = 6
					c.OnKeyError = keyseq.ActionDiscard
					c.CallTimeout = 10 * time.Second
				}}
				if configure != nil {
					configs = append(configs, configure(try))
				}
				if name == "OnMessageError" {
					r.onError = func(*keyseq.Delivery, error, bool) { try() }
				}
				m = r.manager(func(_ context.Context, d *keyseq.Delivery) error {
					if name == "DoTask" {
						try()
					}
					switch {
					case string(d.Body) == "k3.1":
						return keyseq.Discard(nil)
					case d.Attempt == 1 && string(d.Body) != "k5.0":
						return keyseq.RetryAfter(3*time.Second, nil)
					}
					return nil
				}, configs...)
				if name == "KeyExtractor" {
					r.unjudged = true
					m.SequenceManager = must(keyseq.NewSequenceManager(inQueue, r.factory, keyseq.ListenerFuncs{Task: quick}, keyseq.KeyExtractorFunc(func(m *keyseq.Message) (string, error) {
						try()
						return keyseq.KeyFromBodyBefore(".").ExtractKey(m)
					})))
				}
				m.start()
				r.drained()
				if err := m.shutdown(time.Hour); err != nil {
					r.Error(err)
				}
				if tries == 0 {
					r.Errorf("%s was never called: the test proves nothing", name)
				}
			})
		})
	}
}

func onEvent(e keyseq.Events) func(*keyseq.Config) {
	return func(c *keyseq.Config) { c.Events = append(c.Events, e) }
}

// Bad input: what ends a task without an error is a failed attempt: a panic with any value, and the end of its goroutine.
func TestBadInput_TasksThatPanicOrEndTheirGoroutine(t *testing.T) {
	for name, misbehave := range map[string]func(){
		"error":  func() { panic(errors.New("cause")) },
		"string": func() { panic("cause") },
		"nil":    func() { panic(nil) },
		"index":  func() { var none []int; _ = none[len(none)] },
		"goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			profiles(t, func(r *rig) {
				r.interleaved(3, 5)
				m := r.manager(func(_ context.Context, d *keyseq.Delivery) error {
					if d.Attempt <= 2 && strings.HasSuffix(string(d.Body), "2") {
						misbehave()
					}
					return nil
				}, func(c *keyseq.Config) { c.Workers = 2 }).start()
				r.drained()
				errs := r.messageErrors()
				if len(errs) != 6 {
					r.Errorf("%d calls of OnMessageError, want 6", len(errs))
				}
				for _, e := range errs {
					if p, ok := errors.AsType[*keyseq.PanicError](e.err); e.performed || ok == (name == "goexit") || ok && len(p.Stack) == 0 {
						r.Errorf("OnMessageError: %+v", e)
					}
				}
				if s := m.Snapshot(); s.Committed != 15 || s.Workers > 2 {
					r.Errorf("committed %d, workers %d", s.Committed, s.Workers)
				}
			})
		})
	}
}

// Bad input: an extractor that ends its goroutine (t.FailNow does) ends the run with an error that says so, and the message goes back.
func TestBadInput_AnExtractorThatEndsItsGoroutine(t *testing.T) {
	bubble(t, func(r *rig) {
		r.unjudged = true
		r.send("K", 1, 2, 3)
		bad := true
		m := must(keyseq.NewSequenceManager(inQueue, r.factory, keyseq.ListenerFuncs{Task: quick}, keyseq.KeyExtractorFunc(func(m *keyseq.Message) (string, error) {
			if string(m.Body) == "K.2" && bad {
				runtime.Goexit()
			}
			return "K", nil
		})))
		if err := m.Start(r.Context()); err != nil && !strings.Contains(err.Error(), "Goexit") { // it may end before Start has returned
			r.Fatal(err)
		}
		select {
		case <-m.Done():
		case <-time.After(time.Hour):
			r.Fatalf("it neither ends nor reads: %+v", m.Snapshot())
		}
		if err := m.Err(); err == nil || !strings.Contains(err.Error(), "Goexit") {
			r.Errorf("Err: %v, want one that names the cause", err)
		}
		if left := fmt.Sprint(r.bodies(inQueue)); left != "[K.2 K.3]" && left != "[K.1 K.2 K.3]" {
			r.Errorf("left: %s", left)
		}
		bad = false
		if err := m.Start(r.Context()); err != nil {
			r.Fatal(err)
		}
		r.drained()
		if err := m.Shutdown(r.Context()); err != nil {
			r.Error(err)
		}
	})
}

// Bad input: panics in OnMessageError and in events are logged, and change nothing.
func TestBadInput_PanicsInOtherCallbacks(t *testing.T) {
	bubble(t, func(r *rig) {
		r.interleaved(5, 5)
		oops := func(keyseq.MessageEvent) { panic("oops") }
		r.onError = func(*keyseq.Delivery, error, bool) { panic("oops") }
		r.manager(func(_ context.Context, d *keyseq.Delivery) error {
			if d.Attempt == 1 {
				return errors.New("once")
			}
			return nil
		}, func(c *keyseq.Config) {
			c.Events = append(c.Events, keyseq.Events{
				Received: oops, Started: oops, Retrying: oops, Committed: oops, RolledBack: oops,
				State: func(_, _ keyseq.State, _ error) { panic("oops") },
			})
		}).start()
		r.drained()
	})
}

// Bad input, 3.11: a task that ignores TaskTimeout keeps its key until it returns; its error counts as the timed-out attempt, and nobody else waits.
func TestBadInput_ATaskThatIgnoresItsContext(t *testing.T) {
	profiles(t, func(r *rig) {
		r.send("K", 1, 2)
		r.interleaved(5, 5)
		m := r.manager(func(ctx context.Context, d *keyseq.Delivery) error {
			if d.Key == "K" && string(d.Body) == "K.1" && d.Attempt == 1 {
				time.Sleep(10 * time.Minute)
				if !errors.Is(context.Cause(ctx), keyseq.ErrTaskTimeout) {
					r.Errorf("cause: %v, want ErrTaskTimeout", context.Cause(ctx))
				}
				return ctx.Err()
			}
			return nil
		}, func(c *keyseq.Config) { c.TaskTimeout = time.Minute }).start()
		r.until("all others are done", func() bool { return r.broker.Depth(inQueue) == 2 })
		time.Sleep(5 * time.Minute)
		if s := m.Snapshot(); s.Running != 1 || r.broker.Depth(inQueue) != 2 {
			r.Errorf("running %d, left %d; want the deaf task alone", s.Running, r.broker.Depth(inQueue))
		}
		r.drained()
		if errs := r.messageErrors(); len(errs) != 1 || !errors.Is(errs[0].err, context.DeadlineExceeded) || errs[0].performed {
			r.Errorf("OnMessageError: %+v", errs)
		}
	})
}

// Bad input: Start with a context that has ended fails, and leaves nothing running; so does Run.
func TestBadInput_ContextsThatHaveEnded(t *testing.T) {
	bubble(t, func(r *rig) {
		r.send("K", 1)
		over, cancel := context.WithCancel(r.Context())
		cancel()
		m := r.manager(quick)
		for range 20 {
			if err := m.Start(over); err == nil {
				_ = m.shutdown(time.Minute) // it was quicker than its context: allowed
			} else if !errors.Is(err, context.Canceled) {
				r.Errorf("Start: %v, want context.Canceled", err)
			}
			synctest.Wait()
			select {
			case <-m.Done():
			default:
				r.Error("something is left running")
			}
			if err := m.Run(over); err != nil {
				r.Errorf("Run: %v, want nil: nothing ran", err)
			}
		}
		m.start()
		r.drained()
	})
}

// Bad input: a second manager on a queue that only one may read is told so; the first goes on.
func TestBadInput_TwoManagersOnOneQueue(t *testing.T) {
	bubble(t, func(r *rig) {
		r.interleaved(5, 5)
		r.manager(tenth).start()
		second := r.instance("B", tenth)
		if err := second.Start(r.Context()); !errors.Is(err, jms.ErrConfig) || !strings.Contains(err.Error(), inQueue) || !strings.Contains(err.Error(), "SingleActiveConsumer") {
			r.Errorf("Start: %v, want jms.ErrConfig that says what to do", err)
		}
		r.drained()
	})
}

// Bad input: Send without a queue, with a context that has ended, or to a queue that does not exist is an error, and nothing goes out.
func TestBadInput_SendsThatCannotGoOut(t *testing.T) {
	profiles(t, func(r *rig) {
		r.send("K", 1, 2)
		m := r.manager(func(ctx context.Context, d *keyseq.Delivery) error {
			if string(d.Body) != "K.1" {
				return nil
			}
			switch d.Attempt {
			case 1:
				return d.Send(ctx, keyseq.Outgoing{Queue: outQueue}, keyseq.Outgoing{Body: []byte("where to?")})
			case 2:
				over, cancel := context.WithCancel(ctx)
				cancel()
				return d.Send(over, keyseq.Outgoing{Queue: outQueue})
			case 3:
				return d.Send(ctx, keyseq.Outgoing{Queue: "NOWHERE"})
			}
			return nil
		}).start()
		r.drained()
		errs := r.messageErrors()
		if len(errs) != 3 || !strings.Contains(errs[0].err.Error(), "Queue is empty") || !errors.Is(errs[1].err, context.Canceled) ||
			!errors.Is(errs[2].err, jms.ErrConfig) || !errs[2].performed || !strings.Contains(errs[2].err.Error(), "NOWHERE") {
			r.Errorf("OnMessageError: %+v", errs)
		}
		if out := r.bodies(outQueue); len(out) != 0 {
			r.Errorf("went out all the same: %q", out)
		}
		if s := m.Snapshot(); s.Committed != 2 {
			r.Errorf("committed %d", s.Committed)
		}
	})
}
