package keyseq_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/memory"
)

// journal is what happened, in order.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(format string, args ...any) {
	j.mu.Lock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
	j.mu.Unlock()
}

func (j *journal) all() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.lines)
}

// atMost tells how many of something there ever were at once.
type atMost struct{ now, most atomic.Int32 }

func (a *atMost) enter() {
	n := a.now.Add(1)
	for m := a.most.Load(); n > m && !a.most.CompareAndSwap(m, n); m = a.most.Load() {
	}
}
func (a *atMost) leave() { a.now.Add(-1) }

// R1.01: 10,000 messages of random keys (fewer beside the plain broker): those of a key one after another, in queue order, while different keys overlap.
func TestR1_01_SameKeyInOrderOthersAtOnce(t *testing.T) {
	profiles(t, func(r *rig) {
		rnd := rand.New(rand.NewPCG(1, 1))
		next := map[string]int{}
		n := 10_000
		if r.profile.Name != "plain" {
			n = 2_000
		}
		for range n {
			key := fmt.Sprint(rnd.IntN(20) * rnd.IntN(20))
			r.send(key, next[key])
			next[key]++
		}
		var tasks atMost
		r.manager(func(context.Context, *keyseq.Delivery) error {
			tasks.enter()
			defer tasks.leave()
			time.Sleep(time.Millisecond)
			return nil
		}, func(c *keyseq.Config) { c.MaxInFlight = 2000 }).start()
		r.drained()
		if n := tasks.most.Load(); n < 10 {
			r.Errorf("at most %d tasks of different keys ran at once; want them to overlap", n)
		}
	})
}

// R1.08: the task, then the commit, then the message leaves its key, then the next task.
func TestR1_08_TaskThenCommitThenNext(t *testing.T) {
	profiles(t, func(r *rig) {
		r.send("K", 1, 2, 3)
		var j journal
		r.hook(func(c memory.Call) error {
			if c.Kind == memory.CallCommit && c.After {
				j.add("commit %s", c.Message.Body)
			}
			return nil
		})
		var m *subject
		m = r.manager(func(_ context.Context, d *keyseq.Delivery) error {
			j.add("task %s", d.Body)
			time.Sleep(time.Second) // all are received meanwhile
			return nil
		}, func(c *keyseq.Config) {
			c.Events = append(c.Events, keyseq.Events{Committed: func(e keyseq.MessageEvent) {
				report, ok := m.Explain("K")
				j.add("held %d %t", report.Held, ok)
			}})
		})
		m.start()
		r.drained()
		want := []string{"task K.1", "commit K.1", "held 3 true", "task K.2", "commit K.2", "held 2 true", "task K.3", "commit K.3", "held 1 true"}
		if got := j.all(); !slices.Equal(got, want) {
			r.Errorf("happened:\n%q\nwant\n%q", got, want)
		}
		r.until("the key is forgotten", func() bool { _, ok := m.Explain("K"); return !ok })
	})
}

// R1.10: the next task waits for a slow commit; other keys do not.
func TestR1_10_ASlowCommitHoldsItsKeyOnly(t *testing.T) {
	bubble(t, func(r *rig) {
		r.send("K", 1, 2)
		r.send("J", 1, 2)
		start := time.Now()
		var j journal
		r.broker.SetHook(func(_ context.Context, c memory.Call) error {
			if c.Kind == memory.CallCommit && !c.After && c.Message.Body[0] == 'K' {
				time.Sleep(10 * time.Second)
			}
			return nil
		})
		r.manager(func(_ context.Context, d *keyseq.Delivery) error {
			j.add("%s at %v", d.Body, time.Since(start))
			return nil
		}).start()
		r.drained()
		got := j.all()
		slices.Sort(got)
		if want := "[J.1 at 0s J.2 at 0s K.1 at 0s K.2 at 10s]"; fmt.Sprint(got) != want {
			r.Errorf("tasks %v, want %s", got, want)
		}
	})
}

// R1.13, R1.14: OnMessageError is told false for a task that failed and true for a commit that failed, while the message still is the head of its
// key and before the next one starts.
func TestR1_13_OnMessageErrorSaysWhetherTheTaskWasDone(t *testing.T) {
	bubble(t, func(r *rig) {
		r.send("K", 1, 2)
		var j journal
		commits := 0
		r.hook(func(c memory.Call) error {
			if c.Kind == memory.CallCommit && !c.After {
				if commits++; commits == 1 {
					return jms.ErrRolledBack
				}
			}
			return nil
		})
		m := r.manager(func(_ context.Context, d *keyseq.Delivery) error {
			j.add("task %s", d.Body)
			if len(j.all()) == 1 {
				return errors.New("no")
			}
			return nil
		})
		r.onError = func(d *keyseq.Delivery, err error, performed bool) {
			time.Sleep(time.Minute) // time enough for anything that does not wait for it
			head, _ := m.Explain("K")
			j.add("error %s performed=%t head=%t rolledback=%t", d.Body, performed, head.MessageID == d.ID, errors.Is(err, jms.ErrRolledBack))
		}
		m.start()
		r.drained()
		want := []string{
			"task K.1", "error K.1 performed=false head=true rolledback=false",
			"task K.1", "error K.1 performed=true head=true rolledback=true",
			"task K.1", "task K.2",
		}
		if got := j.all(); !slices.Equal(got, want) {
			r.Errorf("happened:\n%q\nwant\n%q", got, want)
		}
	})
}

// R1.15: a listener that records in DoTask and takes the record back when told "performed, rolled back" ends with each message once.
func TestR1_15_UndoingWhatWasRolledBackLeavesNoDuplicate(t *testing.T) {
	profiles(t, func(r *rig) {
		for n := range 20 {
			r.send("K", n)
		}
		var mu sync.Mutex
		var record []string
		failures := 0
		r.hook(func(c memory.Call) error {
			if c.Kind == memory.CallCommit && !c.After && failures < 5 && c.Message.Body[len(c.Message.Body)-1]%3 == 0 {
				failures++
				return jms.ErrRolledBack
			}
			return nil
		})
		r.onError = func(d *keyseq.Delivery, err error, performed bool) {
			mu.Lock()
			defer mu.Unlock()
			if performed && errors.Is(err, jms.ErrRolledBack) {
				record = slices.DeleteFunc(record, func(s string) bool { return s == string(d.Body) })
			}
		}
		r.manager(func(_ context.Context, d *keyseq.Delivery) error {
			time.Sleep(20 * time.Millisecond) // the acknowledgement before is processed meanwhile
			mu.Lock()
			defer mu.Unlock()
			record = append(record, string(d.Body))
			return nil
		}).start()
		r.drained()
		var want []string
		for n := range 20 {
			want = append(want, fmt.Sprint("K.", n))
		}
		if !slices.Equal(record, want) {
			r.Errorf("recorded %v", record)
		}
		if failures != 5 {
			r.Errorf("%d commits failed, want 5", failures)
		}
	})
}

// B4, T1: a message that fails is tried again before its successors, and other keys do not wait for it.
func TestT01_SuccessorsWaitForTheRetryOthersDoNot(t *testing.T) {
	profiles(t, func(r *rig) {
		for n := 1; n <= 4; n++ {
			r.send("K", n)
			r.send("J", n)
		}
		var j journal
		r.manager(func(_ context.Context, d *keyseq.Delivery) error {
			j.add("%s", d.Body)
			if string(d.Body) == "K.1" && d.Attempt < 3 {
				return errors.New("not yet")
			}
			return nil
		}).start()
		r.drained()
		var k []string
		before := 0
		for _, body := range j.all() {
			if body[0] == 'K' {
				k = append(k, body)
			} else if len(k) < 2 {
				before++
			}
		}
		if got := fmt.Sprint(k); got != "[K.1 K.1 K.1 K.2 K.3 K.4]" {
			r.Errorf("attempts of K: %s", got)
		}
		if before != 4 {
			r.Errorf("%d of 4 messages of J ran before K's second attempt; a retry must hold its own key only", before)
		}
	})
}

// B4: a message that leaves unsettled takes everything of its key along that was already in memory: the key resumes with it.
func TestB04_WhatWasReadBehindAFailureDoesNotOvertake(t *testing.T) {
	for name, failure := range map[string]error{"rolled back": jms.ErrRolledBack, "unknown": jms.ErrCommitUnknown, "session lost": jms.ErrSessionLost} {
		t.Run(name, func(t *testing.T) {
			profiles(t, func(r *rig) {
				r.send("K", 1, 2, 3, 4, 5)
				r.send("J", 1, 2, 3, 4, 5)
				var j journal
				failed := false
				r.hook(func(c memory.Call) error {
					if c.Kind == memory.CallCommit && !c.After && string(c.Message.Body) == "K.2" && !failed {
						failed = true
						r.lossFollows("A", name)
						return failure
					}
					return nil
				})
				r.manager(func(_ context.Context, d *keyseq.Delivery) error {
					if d.Key == "K" {
						j.add("%s", d.Body)
					}
					time.Sleep(20 * time.Millisecond) // the acknowledgement before is processed meanwhile
					return nil
				}).start()
				r.drained()
				if got := fmt.Sprint(j.all()); got != "[K.1 K.2 K.2 K.3 K.4 K.5]" {
					r.Errorf("tasks of K: %s", got)
				}
			})
		})
	}
}

// T4: whatever fails at random and however long it pauses, first attempts are in queue order and none starts before its predecessor is settled.
func TestT04_RandomFailuresAndPausesKeepTheOrder(t *testing.T) {
	for seed := range uint64(2) {
		profiles(t, func(r *rig) {
			rnd := rand.New(rand.NewPCG(seed, 4))
			var mu sync.Mutex
			chance := func(n int) bool { mu.Lock(); defer mu.Unlock(); return rnd.IntN(n) == 0 }
			upTo := func(d time.Duration) time.Duration {
				mu.Lock()
				defer mu.Unlock()
				return time.Duration(rnd.Int64N(int64(d)))
			}
			r.interleaved(25, 20)
			r.manager(func(ctx context.Context, d *keyseq.Delivery) error {
				time.Sleep(upTo(50 * time.Millisecond))
				switch {
				case chance(3):
					return errors.New("no")
				case chance(10):
					return keyseq.RetryAfter(upTo(time.Minute), nil)
				case chance(50):
					panic("no")
				}
				return d.Send(ctx, keyseq.Outgoing{Queue: outQueue, Body: d.Body})
			}, func(c *keyseq.Config) {
				c.Retry.MaxRetries = keyseq.Unlimited
				c.Retry.Backoff = keyseq.ExponentialBackoff(10*time.Millisecond, 10*time.Second)
			}).start()
			r.drained()
			r.verdict.Outputs = func(string, int64) int { return 1 }
		})
	}
}

// T5: what waits behind a failure in the same fetch does not run, what belongs to others does.
func TestT05_AFailureHoldsBackOnlyItsOwnGroup(t *testing.T) {
	profiles(t, func(r *rig) {
		r.send("A", 1, 2)
		r.send("B", 1)
		var j journal
		m := r.manager(func(_ context.Context, d *keyseq.Delivery) error {
			j.add("%s", d.Body)
			if d.Key == "A" {
				return errors.New("always")
			}
			return nil
		}, func(c *keyseq.Config) { c.Retry.OnExhausted = keyseq.ActionHold; c.Retry.MaxRetries = 2 }).start()
		time.Sleep(time.Minute)
		got := j.all()
		if slices.Contains(got, "A.2") || !slices.Contains(got, "B.1") || len(got) < 200 {
			r.Errorf("%d tasks; A.2 ran: %t; B.1 ran: %t", len(got), slices.Contains(got, "A.2"), slices.Contains(got, "B.1"))
		}
		if err := m.shutdown(time.Minute); err != nil {
			r.Error(err)
		}
		if left := fmt.Sprint(r.bodies(inQueue)); left != "[A.1 A.2]" {
			r.Errorf("left %s, want [A.1 A.2]", left)
		}
	})
}

// B19: messages that are equal in everything are still as many as were sent.
func TestB19_EqualMessagesAreNotTakenForOne(t *testing.T) {
	profiles(t, func(r *rig) {
		r.unjudged = true // they cannot be told apart
		for range 50 {
			must(r.broker.Send(keyseq.Outgoing{Queue: inQueue, Body: []byte("K.1")}))
		}
		var tasks atMost
		n := 0
		r.manager(func(context.Context, *keyseq.Delivery) error {
			tasks.enter()
			defer tasks.leave()
			n++ // one key: never two at once
			time.Sleep(time.Second)
			return nil
		}).start()
		r.drained()
		if n != 50 || tasks.most.Load() != 1 {
			r.Errorf("%d tasks for 50 equal messages, %d at once", n, tasks.most.Load())
		}
	})
}

// B5: no wake-up is lost when messages arrive just as their key runs empty.
func TestB05_ArrivalsAtTheMomentAKeyRunsEmpty(t *testing.T) {
	bubble(t, func(r *rig) {
		r.manager(func(context.Context, *keyseq.Delivery) error { return nil }).start()
		var senders sync.WaitGroup
		for k := range 8 {
			senders.Go(func() {
				for n := range 1500 {
					r.send(fmt.Sprint("k", k), n)
				}
			})
		}
		senders.Wait()
		began := time.Now()
		r.drained()
		if d := time.Since(began); d > time.Second {
			r.Errorf("it took %v until all were handled: something waited for a second wake-up", d)
		}
	})
}

// B4: where nothing has to be waited for, the key whose commit was rolled back goes on at once; how often it does so for one message: TestG8_WhatNeverSettlesIsNotHammered.
func TestB04_ARolledBackKeyGoesOnAtOnce(t *testing.T) {
	bubble(t, func(r *rig) {
		r.send("K", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
		failed := map[string]bool{}
		r.hook(func(c memory.Call) error {
			if c.Kind == memory.CallCommit && !c.After && !failed[string(c.Message.Body)] {
				failed[string(c.Message.Body)] = true
				return jms.ErrRolledBack
			}
			return nil
		})
		began := time.Now()
		r.manager(quick).start()
		r.drained()
		if d := time.Since(began); d > 10*time.Millisecond {
			r.Errorf("10 commits were rolled back, and it took %v until all was done, want no wait", d)
		}
	})
}
