package keyseq_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/orderaudit"
	"github.com/keyseq/keyseq/provider/memory"
)

// badOnes fails the messages with number 1 for good.
func badOnes(_ context.Context, d *keyseq.Delivery) error {
	if strings.HasSuffix(string(d.Body), ".1") {
		return keyseq.DeadLetter(errors.New("bad"))
	}
	return nil
}

func deadLetters(c *keyseq.Config) { c.DeadLetterQueue = deadQueue }

// deadOnes says what must become of the messages of badOnes.
func deadOnes(_ string, number int64) orderaudit.Outcome {
	if number == 1 {
		return orderaudit.DeadLettered
	}
	return orderaudit.Settled
}

// H8: a dead-letter queue that does not exist is told by Start, before a message is read.
func TestH08_AMissingDeadLetterQueueIsToldByStart(t *testing.T) {
	profiles(t, func(r *rig) {
		r.send("K", 1)
		r.verdict.Incomplete = true
		m := r.manager(badOnes, func(c *keyseq.Config) { c.DeadLetterQueue = "ORDERS.DAED" })
		err := m.Start(r.Context())
		if !errors.Is(err, jms.ErrConfig) || !strings.Contains(err.Error(), "ORDERS.DAED") {
			r.Errorf("Start: %v, want ErrConfig with the name", err)
		}
		if m.Snapshot().Received != 0 {
			r.Error("a message was read")
		}
	})
}

// H8: a dead-letter queue that is full, takes no messages for a while, or vanishes later: nothing is lost, the key waits and says why, the others go on; when
// it takes messages again, the key goes on.
func TestH08_ADeadLetterQueueThatRefusesHoldsItsKeyOnly(t *testing.T) {
	for name, refusal := range map[string]error{"busy": jms.ErrBusy, "gone": jms.ErrConfig, "unknown reason": errors.New("code 2087")} {
		t.Run(name, func(t *testing.T) {
			profiles(t, func(r *rig) {
				r.verdict.Expect = deadOnes
				r.send("K", 1, 2, 3)
				r.send("L", 2, 3)
				refuse := true
				r.hook(func(c memory.Call) error {
					if c.Kind == memory.CallCommit && !c.After && refuse && string(c.Message.Body) == "K.1" {
						return fmt.Errorf("dead-letter queue: %w", refusal)
					}
					return nil
				})
				m := r.manager(badOnes, deadLetters).start()
				r.slowly("L is done", func() bool { return m.Snapshot().Committed == 2 })
				time.Sleep(10 * time.Minute)
				report, ok := m.Explain("K")
				if !ok || !strings.Contains(report.Reason, "refused") && !strings.Contains(report.Reason, "dead letter") {
					r.Errorf("Explain: %q", report.Reason)
				}
				if s := m.Snapshot(); s.Committed != 2 || s.DeadLettered != 0 || s.Running > 1 {
					r.Errorf("%+v", s)
				}
				r.locked(func() { refuse = false })
				r.drainedSlowly()
				r.want("dead letters", r.bodies(deadQueue), "K.1")
			})
		})
	}
}

// H8: a dead letter does not inherit the expiry of its original.
func TestH08_ADeadLetterDoesNotExpire(t *testing.T) {
	profiles(t, func(r *rig) {
		r.unjudged = true
		must(r.broker.Send(keyseq.Outgoing{Queue: inQueue, Body: []byte("K.1"), TTL: 10 * time.Minute}))
		r.manager(badOnes, deadLetters).start()
		r.drainedSlowly()
		time.Sleep(time.Hour)
		dead := must(r.broker.Browse(deadQueue))
		if len(dead) != 1 || !dead[0].Expiration.IsZero() {
			r.Fatalf("%d dead letters: %+v", len(dead), dead)
		}
		if _, ok := dead[0].Properties["keyseq_expiration"]; !ok {
			r.Error("the original's expiry is not noted")
		}
	})
}

// H8, G3: the unit of work with the dead letter fails in every way: it is never lost, and never there twice where sends are atomic.
func TestH08_ADeadLetterWhoseCommitFails(t *testing.T) {
	for _, failure := range []error{jms.ErrRolledBack, jms.ErrSessionLost, jms.ErrCommitUnknown, jms.ErrConnectionLost} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprint(failure, after), func(t *testing.T) {
				profiles(t, func(r *rig) {
					r.verdict.Expect = deadOnes
					if after {
						r.verdict.Expect = nil // done, and nobody was told
					}
					r.send("K", 1, 2)
					failed := false
					r.hook(func(c memory.Call) error {
						if c.Kind == memory.CallCommit && c.After == after && !failed {
							failed = true
							r.lossNow(failure.Error())
							return failure
						}
						return nil
					})
					r.manager(badOnes, deadLetters).start()
					r.drainedSlowly()
					dead := r.bodies(deadQueue)
					if len(dead) == 0 || len(dead) > 1 && r.profile.Prefetch == 0 || dead[0] != "K.1" {
						r.Errorf("dead letters %v", dead)
					}
				})
			})
		}
	}
}

// T13: the dead letter of P is committed by itself: what becomes of the next message does not undo it.
func TestT13_TheNextMessageDoesNotUndoADeadLetter(t *testing.T) {
	bubble(t, func(r *rig) {
		r.send("K", 1)
		r.send("G", 2)
		good := 0
		r.manager(func(ctx context.Context, d *keyseq.Delivery) error {
			if d.Key != "G" {
				return badOnes(ctx, d)
			}
			if good++; good == 1 {
				r.want("dead letters when the next task begins", r.bodies(deadQueue), "K.1")
			}
			if good < 4 {
				return errors.New("not yet")
			}
			return nil
		}, deadLetters, func(c *keyseq.Config) { c.Workers, c.MaxInFlight = 1, 1 }).start()
		r.drained()
		r.want("dead letters", r.bodies(deadQueue), "K.1")
		if n := r.spy.opened(); n != 1 {
			r.Errorf("the test needs one session for both, there were %d", n)
		}
	})
}

// T14: what waits behind a poison message, or beside it, keeps all of its own attempts, also when everything is given back again and again.
func TestT14_WaitingBehindPoisonCostsNoAttempt(t *testing.T) {
	profiles(t, func(r *rig) {
		r.send("K", 1)
		for key := range 5 {
			r.send(fmt.Sprint("w", key), 5, 6)
		}
		r.send("K", 2, 3, 4, 5)
		tries := map[string][]int{}
		m := r.manager(func(_ context.Context, d *keyseq.Delivery) error {
			r.mu.Lock()
			tries[string(d.Body)] = append(tries[string(d.Body)], d.Attempt)
			n := len(tries[string(d.Body)])
			r.mu.Unlock()
			time.Sleep(time.Second)
			if string(d.Body) == "K.1" || d.Key == "K" && n < 3 {
				return errors.New("no")
			}
			return nil
		}, deadLetters, func(c *keyseq.Config) {
			c.Retry.MaxRetries = 2
			c.Retry.Backoff = keyseq.FixedBackoff(10 * time.Second)
		}).start()
		for range 3 { // K.1 is delivered again and again, and all others with it
			r.slowly("it works", func() bool { return m.Snapshot().Running > 0 })
			r.losing("flap", func() { must(r.broker.Break(inQueue, memory.Loss{})); time.Sleep(time.Second) })
		}
		r.drainedSlowly()
		r.want("dead letters", r.bodies(deadQueue), "K.1")
		r.locked(func() {
			for body, attempts := range tries {
				if body[0] == 'K' && body != "K.1" && fmt.Sprint(attempts) != "[1 2 3]" {
					r.Errorf("%s: attempts %v, want all three", body, attempts)
				}
			}
		})
	})
}

// T30: after a key's message was dead-lettered, later ones of that key are handled: those that waited, and those that come long after.
func TestT30_AKeyGoesOnAfterADeadLetter(t *testing.T) {
	profiles(t, func(r *rig) {
		r.verdict.Expect = deadOnes
		r.send("K", 1, 2)
		var j journal
		r.manager(starts(&j, badOnes), deadLetters).start()
		r.drainedSlowly()
		time.Sleep(time.Hour)
		r.send("K", 3)
		r.drainedSlowly()
		r.want("K", j.all(), "K.1 K.2 K.3")
		r.want("dead letters", r.bodies(deadQueue), "K.1")
	})
}

// nilError is the classic slip: a typed nil pointer in an error, whose Error method needs what it points to.
type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }

// An error that panics when it is looked at is a reason like any other.
func TestBadInput_AnErrorThatPanics(t *testing.T) {
	bubble(t, func(r *rig) {
		r.send("K", 1, 2)
		tries := 0
		m := r.manager(func(_ context.Context, d *keyseq.Delivery) error {
			if string(d.Body) == "K.1" {
				var e *nilError
				if tries++; tries == 2 {
					return keyseq.DeadLetter(e)
				}
				return e
			}
			return nil
		}, deadLetters).start()
		time.Sleep(50 * time.Millisecond)
		if report, ok := m.Explain("K"); !ok || !strings.Contains(report.Reason, "attempt 1 of 17 failed") {
			r.Errorf("Explain: %q", report.Reason)
		}
		r.drained()
		r.want("dead letters", r.bodies(deadQueue), "K.1")
	})
}

// A backout threshold of the queue says nothing of how often a task is tried: what a loss or a Stop gave back would count. It is logged.
func TestH19_TheQueuesBackoutThresholdIsNotApplied(t *testing.T) {
	bubble(t, func(r *rig) {
		var log records
		r.send("K", 1)
		tries := 0
		m := r.manager(func(context.Context, *keyseq.Delivery) error { tries++; return errors.New("fails") }, func(c *keyseq.Config) {
			c.Retry.MaxRetries = 5
			c.Logger = slog.New(&log)
		}).start()
		r.drained()
		if s := m.Snapshot(); s.DeadLettered != 1 || tries != 6 {
			r.Errorf("%d dead letters after %d attempts, want 1 after 6", s.DeadLettered, tries)
		}
		if n := log.count("backout threshold is not applied"); n != 1 {
			r.Errorf("%d lines say that the threshold is not applied, want 1", n)
		}
		r.want("the backout queue", r.bodies(deadQueue), "K.1")
	}, memory.Queue{Name: inQueue, BackoutQueue: deadQueue, BackoutThreshold: 2})
}
