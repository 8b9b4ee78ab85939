package keyseq_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/memory"
)

// bent is a factory whose connections and sessions pass through functions, for behaviour that no broker has.
type bent struct {
	jms.ConnectionFactory
	connection func(jms.Connection) (jms.Connection, error)
}

func (b bent) Connect(ctx context.Context, sub jms.Subscription) (jms.Connection, error) {
	conn, err := b.ConnectionFactory.Connect(ctx, sub)
	if err != nil {
		return nil, err
	}
	return b.connection(conn)
}

// A wish that is late, because its goroutine was held up, must not stop what the next run starts.
func TestReview_ALateWishLeavesTheNextRunAlone(t *testing.T) {
	bubble(t, func(r *rig) {
		m := r.manager(quick).start()
		late := keyseq.Wishes(m.SequenceManager)
		if err := m.stop(time.Hour); err != nil {
			r.Fatal(err)
		}
		m.start()
		late()
		r.send("K", 1, 2, 3)
		time.Sleep(time.Second)
		if n := r.broker.Depth(inQueue); n != 0 {
			r.Errorf("%d messages are left: nothing starts", n)
		}
	})
}

// Whoever sees that a link is lost can rely on it that nothing starts: else the halt could come after the next link has lifted it, for ever.
func TestReview_ALossIsSeenOnlyWhenNothingStarts(t *testing.T) {
	for range 2000 {
		if !keyseq.LossHaltsFirst() {
			t.Fatal("the link was lost before the dispatcher was halted")
		}
	}
}

// A task that has not begun when the drain deadline has passed does not begin: nobody would cancel it.
func TestReview_NothingBeginsAfterTheDrainDeadline(t *testing.T) {
	bubble(t, func(r *rig) {
		var ran atomic.Int32
		m := r.manager(func(context.Context, *keyseq.Delivery) error { ran.Add(1); return nil }).start()
		synctest.Wait()
		keyseq.AbortUnnoticed(m.SequenceManager)
		r.send("K", 1, 2)
		synctest.Wait()
		if n := ran.Load(); n != 0 {
			r.Errorf("%d tasks were begun", n)
		}
		<-m.Done()
	})
}

// Where the broker does not tell who is active, the state says so before the first message can confirm it: the other way round it would say so for ever.
func TestReview_NothingIsReceivedBeforeTheStateIsTold(t *testing.T) {
	bubble(t, func(r *rig) {
		r.send("K", 1, 2)
		var m *subject
		var told atomic.Bool
		var early atomic.Uint64
		m = r.manager(quick, func(c *keyseq.Config) {
			c.SingleActiveConsumer = true
			c.Events = append(c.Events, keyseq.Events{State: func(_, to keyseq.State, _ error) {
				if to == keyseq.StateUnconfirmed {
					time.Sleep(time.Second)
					early.Add(m.Snapshot().Received)
					told.Store(true)
				}
			}})
		})
		m.start()
		r.drained()
		if !told.Load() || early.Load() > 0 || m.State() != keyseq.StateActive {
			r.Errorf("told: %t, after %d messages were received; the state now is %v", told.Load(), early.Load(), m.State())
		}
	}, memory.Queue{Name: inQueue, SingleActiveConsumer: true}, memory.LikeRabbitMQ())
}

// A Backoff that panics, as steps[n-1] does beyond the last step, costs a pause, not the process.
func TestReview_ABackoffThatPanics(t *testing.T) {
	bubble(t, func(r *rig) {
		steps := []time.Duration{time.Millisecond}
		indexed := func(n int) time.Duration { return steps[n-1] }
		r.send("K", 1)
		r.manager(func(_ context.Context, d *keyseq.Delivery) error {
			if d.Attempt <= 3 {
				return errors.New("not yet")
			}
			return nil
		}, func(c *keyseq.Config) { c.Retry.Backoff = indexed; c.Reconnect = indexed }).start()
		r.drained()
		r.losing("break", func() { _, _ = r.broker.Break(inQueue, memory.Loss{}) })
		_, _ = r.broker.Break(inQueue, memory.Loss{})
		time.Sleep(time.Minute)
		r.send("K", 2)
		r.drained()
	})
	_, err := keyseq.NewSequenceManager("Q", bent{}, keyseq.ListenerFuncs{Task: quick}, keyseq.KeyFromGroupID(), func(c *keyseq.Config) {
		c.MaxHold = time.Hour
		c.Retry.Backoff = func(int) time.Duration { panic("mend me") }
	})
	if err == nil || !strings.Contains(err.Error(), "Retry.Backoff") {
		t.Errorf("NewSequenceManager: %v, want it to name Retry.Backoff", err)
	}
}

// A dead-letter queue that is the queue itself would be read in an endless circle.
func TestReview_TheDeadLetterQueueIsNotTheQueueItself(t *testing.T) {
	_, err := keyseq.NewSequenceManager("Q", bent{}, keyseq.ListenerFuncs{Task: quick}, keyseq.KeyFromGroupID(), func(c *keyseq.Config) { c.DeadLetterQueue = "Q" })
	if wrong, ok := errors.AsType[*keyseq.ConfigError](err); !ok || wrong.Field != "DeadLetterQueue" {
		t.Errorf("NewSequenceManager: %v, want a ConfigError of DeadLetterQueue", err)
	}
}

// An event func that ends its goroutine after the commit does not bring the message back.
func TestReview_ACallbackThatEndsItsGoroutineRepeatsNothing(t *testing.T) {
	for name, bad := range map[string]keyseq.Events{
		"Committed":    {Committed: func(keyseq.MessageEvent) { runtime.Goexit() }},
		"DeadLettered": {DeadLettered: func(keyseq.MessageEvent) { runtime.Goexit() }},
		"Discarded":    {Discarded: func(keyseq.MessageEvent) { runtime.Goexit() }},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.send("K", 1, 2, 3)
				var runs atomic.Int32
				r.manager(func(context.Context, *keyseq.Delivery) error {
					runs.Add(1)
					switch name {
					case "DeadLettered":
						return keyseq.DeadLetter(nil)
					case "Discarded":
						return keyseq.Discard(nil)
					}
					return nil
				}, func(c *keyseq.Config) { c.DeadLetterQueue = deadQueue; c.Events = append(c.Events, bad) }).start()
				time.Sleep(time.Minute)
				if n := runs.Load(); n != 3 {
					r.Errorf("%d attempts, want 3", n)
				}
			})
		})
	}
}

// A link that has lived long was a good one, also if the queue was empty all the time: the next try comes without a pause.
func TestReview_AnIdleLinkThatLivedLongIsReplacedAtOnce(t *testing.T) {
	bubble(t, func(r *rig) {
		var longestPause atomic.Int32
		r.manager(quick, func(c *keyseq.Config) {
			c.Reconnect = func(n int) time.Duration {
				longestPause.Store(max(longestPause.Load(), int32(n)))
				return time.Millisecond
			}
		}).start()
		for range 10 {
			time.Sleep(time.Hour)
			r.losing("break", func() { _, _ = r.broker.Break(inQueue, memory.Loss{}) })
			time.Sleep(time.Minute)
		}
		if n := longestPause.Load(); n > 1 {
			r.Errorf("the pause of try %d was taken", n)
		}
		r.send("K", 1)
		r.drained()
	})
}

// ctx bounds Start also when the run has failed and a callback keeps it from its end: here the first link breaks at once, and the second is refused.
func TestReview_StartReturnsWhenItsContextEnds(t *testing.T) {
	bubble(t, func(r *rig) {
		r.unjudged = true
		release := make(chan struct{})
		connects := 0
		r.factory = bent{r.broker, func(conn jms.Connection) (jms.Connection, error) {
			if connects++; connects > 1 {
				return nil, errors.Join(jms.ErrConfig, conn.Close(r.Context()))
			}
			broken := make(chan struct{})
			close(broken)
			return brokenAtOnce{conn, broken}, nil
		}}
		m := r.manager(quick, func(c *keyseq.Config) {
			c.Events = append(c.Events, keyseq.Events{State: func(_, to keyseq.State, _ error) {
				if to == keyseq.StateDraining {
					<-release
				}
			}})
		})
		ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
		defer cancel()
		if err := m.Start(ctx); !errors.Is(err, context.DeadlineExceeded) {
			r.Errorf("Start: %v", err)
		}
		close(release)
		<-m.Done()
		if err := m.Err(); !errors.Is(err, jms.ErrConfig) {
			r.Errorf("Err: %v", err)
		}
	}, memory.Profile{Name: "late", ReturnDelay: time.Second})
}

type brokenAtOnce struct {
	jms.Connection
	broken chan struct{}
}

func (c brokenAtOnce) Done() <-chan struct{} { return c.broken }

// CleanStart takes as long as it takes to notice that the connection is broken.
func (c brokenAtOnce) CleanStart(context.Context) (bool, error) {
	time.Sleep(time.Second)
	return true, nil
}

// What Run returns is the failure that ended the run, not that the end took long.
func TestReview_RunReturnsTheFailureAlsoIfTheEndTakesLong(t *testing.T) {
	bubble(t, func(r *rig) {
		release, cause := make(chan struct{}), errors.New("the ledger is closed")
		r.send("A", 1)
		r.send("B", 1)
		m := r.manager(func(_ context.Context, d *keyseq.Delivery) error {
			if d.Key == "A" {
				<-release
				return nil
			}
			return keyseq.StopAll(cause)
		})
		ctx, cancel := context.WithCancel(r.Context())
		ended := make(chan error, 1)
		go func() { ended <- m.Run(ctx) }()
		synctest.Wait()
		cancel()
		if err := <-ended; !errors.Is(err, cause) {
			r.Errorf("Run: %v", err)
		}
		close(release)
		<-m.Done()
	})
}
