package keyseq_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/provider/memory"
)

// G8: a run that fails ends Run, although a commit does not return, whatever is closed, or a task is deaf to its context: Run says why, names the key, and
// Live says that a restart may help. The key is not joined before the call, or the task, has returned.
func TestG8_ARunThatFailsEndsRunBesideWhatDoesNotReturn(t *testing.T) {
	for _, what := range []string{"commit", "task"} {
		t.Run(what, func(t *testing.T) {
			profiles(t, func(r *rig) {
				r.send("K", 1, 2)
				r.send("L", 1)
				gone := make(chan struct{})
				r.broker.SetHook(func(_ context.Context, c memory.Call) error {
					if what == "commit" && c.Kind == memory.CallCommit && !c.After && string(c.Message.Body) == "K.1" {
						<-gone
					}
					return nil
				})
				enough := errors.New("enough")
				var once sync.Once
				var j journal
				m := r.manager(starts(&j, func(_ context.Context, d *keyseq.Delivery) (err error) {
					if what == "task" && string(d.Body) == "K.1" {
						<-gone
					}
					if d.Key == "L" {
						time.Sleep(time.Second)
						once.Do(func() { err = keyseq.StopAll(enough) })
					}
					return err
				}), func(c *keyseq.Config) { c.CallTimeout, c.DrainTimeout = 5*time.Second, 10*time.Second })
				loss := r.audit.Loss("", "something does not return", 0)
				ended := make(chan error, 1)
				go func() { ended <- m.Run(context.Background()) }()
				r.slowly("L has failed", func() bool { return m.Snapshot().Retries == 1 })
				r.audit.InstanceStopping("A")
				began := time.Now()
				select {
				case err := <-ended:
					if !errors.Is(err, enough) || !errors.Is(err, keyseq.ErrDrainTimeout) || !strings.Contains(err.Error(), `"K"`) {
						r.Errorf("Run: %v, want the reason, ErrDrainTimeout and the key", err)
					}
				case <-time.After(time.Hour):
					r.Error("Run has not returned")
				}
				if took := time.Since(began); took > 30*time.Second {
					r.Errorf("Run returned %v after the failure", took)
				}
				if err := m.Live(); !errors.Is(err, enough) {
					r.Errorf("Live: %v, want the reason", err)
				}
				if err := m.Start(r.Context()); !errors.Is(err, keyseq.ErrStopping) {
					r.Errorf("Start: %v, want ErrStopping", err)
				}
				r.want("K", ofKey(j.all(), "K"), "K.1")
				close(gone)
				<-m.Done()
				if err := m.Err(); !errors.Is(err, enough) {
					r.Errorf("Err: %v, want the reason", err)
				}
				m.start()
				r.drainedSlowly()
				loss.Done()
			})
		})
	}
}

// G8: user code that has a message while the run ends costs its connection; when it returns, the message joins nothing, and no goroutine stays.
func TestG8_AMessageInUserCodeWhenTheRunEnds(t *testing.T) {
	for _, where := range []string{"KeyExtractor", "Received"} {
		t.Run(where, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.unjudged = true
				r.send("K", 1, 2)
				gone := make(chan struct{})
				var first sync.Once
				wait := func() { first.Do(func() { <-gone }) }
				var told, back journal
				m, err := keyseq.NewSequenceManager(inQueue, r.factory, keyseq.ListenerFuncs{Task: quick}, keyseq.KeyExtractorFunc(func(*keyseq.Message) (string, error) {
					if where == "KeyExtractor" {
						wait()
					}
					return "K", nil
				}), func(c *keyseq.Config) {
					c.CallTimeout = 5 * time.Second
					c.Events = []keyseq.Events{{
						Received: func(e keyseq.MessageEvent) {
							if where == "Received" {
								wait()
							}
							told.add("%s", e.Delivery.Body)
						},
						RolledBack: func(e keyseq.MessageEvent) { back.add("%s", e.Delivery.Body) },
					}}
				})
				check(err)
				check(m.Start(r.Context()))
				time.Sleep(time.Second)
				ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
				defer cancel()
				if err := m.Shutdown(ctx); err != nil {
					r.Errorf("Shutdown: %v", err)
				}
				if got := r.broker.Depth(inQueue); got != 2 {
					r.Errorf("%d messages are on the queue, want both", got)
				}
				close(gone)
				synctest.Wait()
				if s := m.Snapshot(); s.Workers != 0 || s.InFlight != 0 {
					r.Errorf("after the end: %+v", s)
				}
				r.want("RolledBack", back.all(), "K.1")
				check(m.Start(r.Context()))
				r.drained()
				check(m.Shutdown(r.Context()))
			})
		})
	}
}
