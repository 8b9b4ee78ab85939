package keyseq_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/memory"
)

// R1.02: one reader, whatever workers, failures and losses do: the broker never sees two Receives at once.
func TestR1_02_ReceivesNeverOverlap(t *testing.T) {
	profiles(t, func(r *rig) {
		r.interleaved(30, 20)
		r.manager(func(_ context.Context, d *keyseq.Delivery) error {
			time.Sleep(20 * time.Millisecond)
			if d.Attempt == 1 && d.Body[len(d.Body)-1] == '7' {
				return errors.New("once")
			}
			return nil
		}).start()
		for range 5 {
			time.Sleep(70 * time.Millisecond)
			r.losing("connection cut", func() { must(r.broker.Break(inQueue, memory.Loss{})) })
			time.Sleep(time.Minute)
		}
		r.drained()
		if s := must(r.broker.Stats(inQueue)); s.MaxReceives != 1 {
			r.Errorf("%d Receives ran at once on a connection, want 1", s.MaxReceives)
		}
	})
}

// R1.03, R1.24: three messages in flight, one is settled, the process dies: exactly the other two come back. So also where a session costs a
// connection.
func TestR1_03_SettlingOneMessageSettlesNoOther(t *testing.T) {
	profiles(t, func(r *rig) {
		r.unjudged = true // the process dies without a word
		r.send("A", 1)
		r.send("B", 1)
		r.send("C", 1)
		r.manager(func(ctx context.Context, d *keyseq.Delivery) error {
			if d.Key != "B" {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}).start()
		r.until("B is settled", func() bool { return r.broker.Depth(inQueue) == 2 })
		time.Sleep(time.Second)
		check(r.broker.InhibitGet(inQueue, true))
		must(r.broker.Break(inQueue, memory.Loss{Client: time.Nanosecond}))
		r.until("the broker has everything back", func() bool { return len(r.bodies(inQueue)) == 2 })
		if got := fmt.Sprint(r.bodies(inQueue)); got != "[A.1 C.1]" {
			r.Errorf("came back: %s, want [A.1 C.1]", got)
		}
	})
}

// R1.04, B9, B20: sessions, each with its one consumer, are used again: 1,000 messages through a window of 10 need no more than 10.
func TestR1_04_SessionsAreReused(t *testing.T) {
	bubble(t, func(r *rig) {
		r.interleaved(100, 10)
		m := r.manager(func(context.Context, *keyseq.Delivery) error {
			time.Sleep(10 * time.Millisecond)
			return nil
		}, func(c *keyseq.Config) { c.MaxInFlight = 10 }).start()
		r.drained()
		if n := r.spy.opened(); n > 11 {
			r.Errorf("%d sessions were opened for 1,000 messages with 10 in flight, want at most 11", n)
		}
		if s := m.Snapshot(); s.Sessions != r.spy.open() {
			r.Errorf("Snapshot says %d sessions, %d are open", s.Sessions, r.spy.open())
		}
	})
}

// B9: the pool prefers the session used last: a slow queue needs one or two, however large the window.
func TestB09_FewSessionsWhereFewAreNeeded(t *testing.T) {
	bubble(t, func(r *rig) {
		r.manager(func(context.Context, *keyseq.Delivery) error { return nil }).start()
		for i := range 300 {
			r.send(fmt.Sprint("k", i%7), i)
			time.Sleep(time.Second)
		}
		r.drained()
		if n := r.spy.opened(); n > 2 {
			r.Errorf("%d sessions were opened for one message at a time, want at most 2", n)
		}
	})
}

// R1.24: a broker that gives few sessions is read with those; more come when it gives more.
func TestR1_24_FewSessionsAreEnough(t *testing.T) {
	p := memory.LikeIBMMQ()
	p.MaxSessions = 3
	bubble(t, func(r *rig) {
		r.interleaved(20, 5)
		m := r.manager(func(context.Context, *keyseq.Delivery) error {
			time.Sleep(10 * time.Millisecond)
			return nil
		}).start()
		r.drained()
		if s := m.Snapshot(); s.Sessions != 3 || s.State != keyseq.StateActive {
			r.Errorf("%d sessions in state %v, want 3, active", s.Sessions, s.State)
		}
	}, p)
}

// R1.24: a broker that refuses a session for the second time with as many open as before is not asked again at once: one of them is missing, and no
// message will give it back.
func TestR1_24_NoHammeringForAMissingSession(t *testing.T) {
	if first, again := keyseq.RefusedTwice(3); !first || again {
		t.Errorf("a first refusal says to read on: %t, a second one at the same number: %t; want true, false", first, again)
	}
}

// B1: a panic does not let the message go, neither at once nor with a later commit.
func TestB01_APanicLosesNothing(t *testing.T) {
	profiles(t, func(r *rig) {
		r.send("A", 1)
		m := r.manager(func(_ context.Context, d *keyseq.Delivery) error {
			if d.Key == "A" {
				panic("out of cheese")
			}
			return nil
		}, func(c *keyseq.Config) { c.MaxInFlight = 2; c.Retry.MaxRetries = 1 }).start()
		r.until("A.1 has failed", func() bool { return len(r.messageErrors()) > 0 })
		for n := range 50 {
			r.send("B", n)
		}
		r.until("B is done", func() bool { return r.broker.Depth(inQueue) == 1 })
		time.Sleep(time.Minute)
		if err := m.shutdown(time.Minute); err != nil {
			r.Error(err)
		}
		if got := fmt.Sprint(r.bodies(inQueue)); got != "[A.1]" {
			r.Errorf("left on the queue: %s, want [A.1]", got)
		}
		e := r.messageErrors()[0]
		if p, ok := errors.AsType[*keyseq.PanicError](e.err); e.performed || !ok || p.Value != "out of cheese" || len(p.Stack) == 0 {
			r.Errorf("OnMessageError got %v, performed %t; want a *PanicError with its value and stack, false", e.err, e.performed)
		}
	})
}

// B2: what the task returns reaches OnMessageError, and it was not performed.
func TestB02_TheTasksOwnErrorIsReported(t *testing.T) {
	bubble(t, func(r *rig) {
		r.send("A", 1)
		mine := errors.New("no such account")
		r.manager(func(_ context.Context, d *keyseq.Delivery) error {
			if d.Attempt < 3 {
				return fmt.Errorf("attempt %d: %w", d.Attempt, mine)
			}
			return nil
		}).start()
		r.drained()
		errs := r.messageErrors()
		if len(errs) != 2 {
			r.Fatalf("OnMessageError was called %d times for 2 failures", len(errs))
		}
		for i, e := range errs {
			if !errors.Is(e.err, mine) || e.performed || e.attempt != i+1 {
				r.Errorf("call %d: %+v", i+1, e)
			}
		}
	})
}

// B3: after a commit that failed its session is closed and never used again (the spy of each rig sees to "never"); the message comes again, once.
func TestB03_AFailedCommitEndsItsSession(t *testing.T) {
	for _, failure := range []error{jms.ErrRolledBack, jms.ErrSessionLost, jms.ErrCommitUnknown, jms.ErrConnectionLost} {
		profiles(t, func(r *rig) {
			r.interleaved(3, 4)
			failed := 0
			r.hook(func(c memory.Call) error {
				if c.Kind != memory.CallCommit || c.After || string(c.Message.Body) != "k1.1" || failed == 3 {
					return nil
				}
				failed++
				r.lossFollows("A", failure.Error())
				return failure
			})
			r.manager(func(context.Context, *keyseq.Delivery) error {
				time.Sleep(time.Millisecond)
				return nil
			}).start()
			r.drained()
			if failed != 3 {
				r.Errorf("%d commits failed, want 3", failed)
			}
			for _, e := range r.messageErrors() {
				if e.body == "k1.1" && !e.performed {
					r.Errorf("OnMessageError of a failed commit: performed is false; %v", e.err)
				}
				if told := errors.Is(e.err, jms.ErrRolledBack) || errors.Is(e.err, jms.ErrCommitUnknown); !told {
					r.Errorf("OnMessageError does not say whether the message comes again: %v", e.err)
				}
			}
			synctest.Wait()
		})
	}
}

// B10: no failure of extracting or receiving keeps a session.
func TestB10_FailuresToReceiveLeakNoSession(t *testing.T) {
	bubble(t, func(r *rig) {
		receives := 0
		r.hook(func(c memory.Call) error {
			if c.Kind == memory.CallReceive && !c.After {
				if receives++; receives%2 == 0 {
					return errors.New("code 2195")
				}
			}
			return nil
		})
		r.manager(func(context.Context, *keyseq.Delivery) error { return nil }, func(c *keyseq.Config) {
			c.OnKeyError = keyseq.ActionDiscard
		}).start()
		for n := range 100 {
			r.send("k", n)
			if _, err := r.broker.Send(keyseq.Outgoing{Queue: inQueue, Body: []byte("no key")}); err != nil {
				r.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		r.drained()
		if n := r.spy.open(); n > 3 {
			r.Errorf("%d sessions are open after 200 messages one at a time, 100 without a key, and %d failed receives; want at most 3", n, receives/2)
		}
		if n := r.spy.opened(); n > 10 {
			r.Errorf("%d sessions were opened", n)
		}
	})
}

// B10: a Receive that brings neither message nor error is a fault of the provider, and no reason to die.
func TestB10_ReceiveWithoutAResult(t *testing.T) {
	bubble(t, func(r *rig) {
		r.factory = emptyReceives{r.factory}
		r.interleaved(3, 3)
		r.manager(func(context.Context, *keyseq.Delivery) error { return nil }).start()
		r.drained()
		if n := r.spy.open(); n > 10 {
			r.Errorf("%d sessions are open", n)
		}
	})
}

// emptyReceives makes each first Receive of a session return nothing at all.
type emptyReceives struct{ jms.ConnectionFactory }

func (f emptyReceives) Connect(ctx context.Context, sub jms.Subscription) (jms.Connection, error) {
	c, err := f.ConnectionFactory.Connect(ctx, sub)
	return emptyConnection{c}, err
}

type emptyConnection struct{ jms.Connection }

func (c emptyConnection) OpenSession(ctx context.Context) (jms.Session, error) {
	s, err := c.Connection.OpenSession(ctx)
	return &emptySession{Session: s}, err
}

type emptySession struct {
	jms.Session
	asked bool
}

func (s *emptySession) Receive(ctx context.Context) (*jms.Message, error) {
	if !s.asked {
		s.asked = true
		return nil, nil
	}
	return s.Session.Receive(ctx)
}

// T9: a task that returns nil after its session or connection was lost commits nothing, neither its own message nor the one that the broker has
// given out since; its attempt is over for Send too.
func TestT09_ALateResultCommitsNothing(t *testing.T) {
	for name, lose := range map[string]func(r *rig, id string){
		"connection": func(r *rig, _ string) { must(r.broker.Break(inQueue, memory.Loss{})) },
		"session":    func(r *rig, id string) { check(r.broker.LoseSession(id, memory.Loss{})) },
		"taken back": func(r *rig, id string) { check(r.broker.TakeBack(id)) },
	} {
		t.Run(name, func(t *testing.T) {
			profiles(t, func(r *rig) {
				r.send("K", 1, 2, 3)
				begun, release := make(chan *keyseq.Delivery), make(chan struct{})
				tasks := map[string]int{}
				r.manager(func(ctx context.Context, d *keyseq.Delivery) error {
					tasks[string(d.Body)]++ // one key: no two tasks at once
					if tasks["K.1"] == 1 && string(d.Body) == "K.1" {
						begun <- d
						<-release // deaf to ctx
					}
					return d.Send(context.WithoutCancel(ctx), keyseq.Outgoing{Queue: outQueue, Body: d.Body})
				}).start()
				first := <-begun
				synctest.Wait()
				held := must(r.broker.Held(inQueue))
				r.losing(name, func() { lose(r, held[0].ID) })
				time.Sleep(time.Hour)
				synctest.Wait()
				if n := len(r.bodies(outQueue)); n != 0 || tasks["K.2"] != 0 {
					r.Fatalf("while the first task still runs: %d results, %d tasks of the next message", n, tasks["K.2"])
				}
				r.losing("late commit", func() {
					close(release)
					r.drained()
				})
				if got := fmt.Sprint(r.bodies(outQueue)); got != "[K.1 K.2 K.3]" {
					r.Errorf("results %s, want each once: [K.1 K.2 K.3]", got)
				}
				if tasks["K.1"] != 2 {
					r.Errorf("K.1 ran %d times, want 2: its first result must not count", tasks["K.1"])
				}
				if err := first.Send(r.Context(), keyseq.Outgoing{Queue: outQueue}); !errors.Is(err, keyseq.ErrStale) {
					r.Errorf("Send of an attempt that is over: %v, want ErrStale", err)
				}
			})
		})
	}
}

// T10: a session that gave a message back commits only what it received after.
func TestT10_ASessionReusedAfterAFailureCommitsTheNewMessageOnly(t *testing.T) {
	bubble(t, func(r *rig) {
		r.verdict.Order = 1 // BySent: the second message overtakes by its priority
		r.unjudged = true
		r.send("A", 1)
		m := r.manager(func(_ context.Context, d *keyseq.Delivery) error {
			if d.Key == "A" {
				return errors.New("not now")
			}
			return nil
		}, func(c *keyseq.Config) { c.MaxInFlight = 1 }).start()
		r.until("A.1 has failed", func() bool { return len(r.messageErrors()) > 0 })
		if err := m.stop(time.Minute); err != nil {
			r.Fatal(err)
		}
		high := 9
		must(r.broker.Send(keyseq.Outgoing{Queue: inQueue, Body: []byte("B.1"), Priority: &high}))
		m.start()
		r.until("B.1 is settled", func() bool { return r.broker.Depth(inQueue) == 1 })
		if err := m.shutdown(time.Minute); err != nil {
			r.Fatal(err)
		}
		if got := fmt.Sprint(r.bodies(inQueue)); got != "[A.1]" {
			r.Errorf("left: %s, want [A.1]", got)
		}
		if n := r.spy.opened(); n != 1 {
			r.Errorf("the test needs one session for both messages, there were %d", n)
		}
	})
}

// must returns a result of a call that cannot fail here.
func must[T any](v T, err error) T {
	check(err)
	return v
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
