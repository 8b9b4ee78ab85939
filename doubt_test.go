package keyseq_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/memory"
)

// H11: a program that keeps a record of what it has done, and undoes it exactly when it is told that the message was rolled back, has in the end
// one record for each message, whatever becomes of commits: done and the reply lost, not done, done later.
func TestH11_UndoingOnlyWhatWasRolledBackKeepsTheRecordsRight(t *testing.T) {
	for _, failure := range []error{jms.ErrCommitUnknown, jms.ErrRolledBack, jms.ErrSessionLost, jms.ErrConnectionLost} {
		for _, done := range []bool{false, true} {
			if done && errors.Is(failure, jms.ErrRolledBack) {
				continue
			}
			t.Run(fmt.Sprint(failure, " done ", done), func(t *testing.T) {
				profiles(t, func(r *rig) {
					r.interleaved(4, 5)
					records := map[string]bool{}
					commits, told := 0, 0
					r.hook(func(c memory.Call) error {
						if c.Kind != memory.CallCommit || c.After != done {
							return nil
						}
						if commits++; commits%4 != 3 || commits > 12 {
							return nil
						}
						r.lossNow(failure.Error())
						return failure
					})
					r.onError = func(d *keyseq.Delivery, err error, performed bool) {
						r.locked(func() {
							told++
							if !performed {
								r.Errorf("%s: performed is false: %v", d.Body, err)
							}
							if failure == jms.ErrSessionLost && r.profile.Prefetch == 0 && !errors.Is(err, jms.ErrCommitUnknown) {
								r.Errorf("%s: a session lost in Commit leaves the outcome open: %v", d.Body, err)
							}
							if errors.Is(err, jms.ErrRolledBack) && !errors.Is(err, jms.ErrCommitUnknown) {
								delete(records, string(d.Body))
							}
						})
					}
					r.manager(func(_ context.Context, d *keyseq.Delivery) error {
						r.locked(func() { records[string(d.Body)] = true }) // writing it again changes nothing
						time.Sleep(10 * time.Millisecond)
						return nil
					}).start()
					r.drainedSlowly()
					time.Sleep(time.Second)
					r.locked(func() {
						if len(records) != 20 {
							r.Errorf("%d records for 20 messages", len(records))
						}
						if told == 0 {
							r.Error("OnMessageError was not called")
						}
					})
				})
			})
		}
	}
}

// H12: a task stages several sends and the commit fails: nothing of it went out, or all, and in the end each is there once where sends are atomic
// and at least once where they are not, in the order of the key.
func TestH12_StagedSendsGoOutOnce(t *testing.T) {
	for _, failure := range []error{jms.ErrRolledBack, jms.ErrSessionLost, jms.ErrCommitUnknown, jms.ErrConnectionLost, jms.ErrBusy, errors.New("code 2053")} {
		t.Run(failure.Error(), func(t *testing.T) {
			profiles(t, func(r *rig) {
				r.interleaved(3, 6)
				r.verdict.Outputs = func(string, int64) int { return 1 }
				var mu sync.Mutex
				commits := 0
				r.broker.SetHook(func(_ context.Context, c memory.Call) error {
					mu.Lock()
					defer mu.Unlock()
					if c.Kind != memory.CallCommit || c.After {
						return nil
					}
					if commits++; commits%3 != 2 || commits > 9 {
						return nil
					}
					if jms.EndsSession(failure) {
						r.lossNow(failure.Error())
					}
					return failure
				})
				r.manager(func(ctx context.Context, d *keyseq.Delivery) error {
					time.Sleep(10 * time.Millisecond)
					if err := d.Send(ctx, keyseq.Outgoing{Queue: outQueue, Body: d.Body}); err != nil {
						return err
					}
					return d.Send(ctx, keyseq.Outgoing{Queue: deadQueue, Body: d.Body})
				}).start()
				r.drainedSlowly()
				time.Sleep(time.Second)
				one, two := r.bodies(outQueue), r.bodies(deadQueue)
				if !slices.Equal(one, two) {
					r.Errorf("what was sent first %v and second %v", one, two)
				}
			})
		})
	}
}

// H12: an attempt that fails has sent nothing, though it had staged; a target that is missing or refuses is a failed attempt, or is asked again, and the
// other keys go on.
func TestH12_AFailedAttemptSendsNothing(t *testing.T) {
	profiles(t, func(r *rig) {
		r.send("K", 1, 2)
		r.send("L", 1, 2)
		m := r.manager(func(ctx context.Context, d *keyseq.Delivery) error {
			target := outQueue
			if d.Key == "K" && d.Attempt == 1 {
				target = "NOWHERE"
			}
			for _, q := range []string{outQueue, target} {
				if err := d.Send(ctx, keyseq.Outgoing{Queue: q, Body: d.Body}); err != nil {
					return err
				}
			}
			if d.Attempt == 2 {
				return errors.New("after all")
			}
			return nil
		}).start()
		if err := r.broker.InhibitPut(outQueue, true); err != nil {
			r.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if n := len(r.bodies(outQueue)); n != 0 {
			r.Errorf("%d results while the target takes none", n)
		}
		if s := m.Snapshot(); s.Committed != 0 {
			r.Errorf("%+v", s)
		}
		if err := r.broker.InhibitPut(outQueue, false); err != nil {
			r.Fatal(err)
		}
		r.drainedSlowly()
		if n := len(r.bodies(outQueue)); n != 8 {
			r.Errorf("results %v, want two of each of four messages", r.bodies(outQueue))
		}
	})
}
