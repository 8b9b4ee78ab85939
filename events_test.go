package keyseq_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/memory"
)

// listener writes down what it is told, each message event as "name:body/attempt".
type listener struct {
	mu     sync.Mutex
	lines  []string
	states []string
	seen   []keyseq.MessageEvent
}

func (l *listener) add(list *[]string, line string) {
	l.mu.Lock()
	*list = append(*list, line)
	l.mu.Unlock()
}

func (l *listener) events() keyseq.Events {
	of := func(name string) func(keyseq.MessageEvent) {
		return func(e keyseq.MessageEvent) {
			l.add(&l.lines, fmt.Sprintf("%s:%s/%d", name, e.Delivery.Body, e.Delivery.Attempt))
			l.mu.Lock()
			l.seen = append(l.seen, e)
			l.mu.Unlock()
		}
	}
	return keyseq.Events{
		Received: of("received"), Started: of("started"), Retrying: of("retrying"), Committed: of("committed"),
		RolledBack: of("rolled back"), DeadLettered: of("dead-lettered"), Discarded: of("discarded"),
		State:   func(from, to keyseq.State, _ error) { l.add(&l.states, from.String()+">"+to.String()) },
		Blocked: func(keys []keyseq.KeyReport) { l.add(&l.lines, "blocked:"+keys[0].Key) },
		Stuck:   func(k keyseq.KeyReport) { l.add(&l.lines, "stuck:"+k.Key+":"+k.Reason) },
	}
}

// The events of a message in their order, with all that they carry; several listeners hear the same, one after another.
func TestEvents_OfAMessage(t *testing.T) {
	bubble(t, func(r *rig) {
		r.unjudged = true
		var first, second listener
		r.send("A", 0)
		m := r.manager(func(_ context.Context, d *keyseq.Delivery) error {
			time.Sleep(2 * time.Second)
			switch {
			case d.Key == "A" && d.Attempt == 1:
				return errTimeout
			case d.Key == "B":
				return keyseq.DeadLetter(errTimeout)
			case d.Key == "C":
				return keyseq.Discard(errTimeout)
			}
			return nil
		}, func(c *keyseq.Config) {
			c.DeadLetterQueue = deadQueue
			c.Events = []keyseq.Events{first.events(), {}, second.events()}
		}).start()
		r.drained()
		r.send("B", 0)
		r.drained()
		r.send("C", 0)
		r.drained()
		r.until("all is told", func() bool { return m.Snapshot().Discarded == 1 })
		want := []string{"received:A.0/0", "started:A.0/1", "retrying:A.0/1", "started:A.0/2", "committed:A.0/2",
			"received:B.0/0", "started:B.0/1", "dead-lettered:B.0/1", "received:C.0/0", "started:C.0/1", "discarded:C.0/1"}
		if !slices.Equal(first.lines, want) || !slices.Equal(second.lines, want) {
			r.Errorf("told\n%q and\n%q, want\n%q", first.lines, second.lines, want)
		}
		if want := []string{"stopped>connecting", "connecting>active"}; !slices.Equal(first.states, want) {
			r.Errorf("states %q, want %q", first.states, want)
		}
		started, retrying, committed, dead := first.seen[3], first.seen[2], first.seen[4], first.seen[7]
		if started.Wait != 2100*time.Millisecond || first.seen[1].Wait != 0 {
			r.Errorf("started: waited %v and %v, want nothing and 2.1 s", first.seen[1].Wait, started.Wait)
		}
		if retrying.Task != 2*time.Second || !errors.Is(retrying.Err, errTimeout) || retrying.Next.Sub(retrying.Delivery.ReceivedAt) != 2100*time.Millisecond {
			r.Errorf("retrying: task %v, error %v, next %v after it was received", retrying.Task, retrying.Err, retrying.Next.Sub(retrying.Delivery.ReceivedAt))
		}
		if committed.Task != 2*time.Second || committed.Wait != 2100*time.Millisecond || committed.Err != nil {
			r.Errorf("committed: task %v, wait %v, error %v", committed.Task, committed.Wait, committed.Err)
		}
		if !errors.Is(dead.Err, errTimeout) || dead.Delivery.Queue != inQueue || dead.Delivery.Key != "B" {
			r.Errorf("dead-lettered: error %v, of %q, key %q", dead.Err, dead.Delivery.Queue, dead.Delivery.Key)
		}
	})
}

// G5: keys that fill the window, by number or by bytes, are named within two seconds, then every second, by the log once a minute, until they move.
func TestG5_AFullWindowIsTold(t *testing.T) {
	for name, limit := range map[string]func(*keyseq.Config){
		"messages": func(c *keyseq.Config) { c.MaxInFlight = 5 },
		"bytes":    func(c *keyseq.Config) { c.MaxInFlightBytes = 5 * 4 },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.unjudged = true
				var l listener
				var log records
				fails := true
				r.send("BB", 0, 1, 2, 3, 4)
				r.send("good", 0)
				m := r.manager(func(_ context.Context, d *keyseq.Delivery) error {
					if fails && d.Key == "BB" {
						return errTimeout
					}
					return nil
				}, limit, func(c *keyseq.Config) {
					c.Retry.Backoff = keyseq.FixedBackoff(150 * time.Second)
					c.Events = append(c.Events, l.events())
					c.Logger = slog.New(&log)
				}).start()
				blocked := func() (n int) {
					l.mu.Lock()
					defer l.mu.Unlock()
					for _, line := range l.lines {
						if line == "blocked:BB" {
							n++
						}
					}
					return n
				}
				time.Sleep(2 * time.Second)
				if blocked() == 0 {
					r.Fatal("not told within two seconds")
				}
				time.Sleep(118 * time.Second)
				if n := blocked(); n < 117 || n > 120 {
					r.Errorf("told %d times in two minutes, want once a second", n)
				}
				if n := log.count("fill the window"); n != 2 {
					r.Errorf("logged %d times in two minutes, want 2", n)
				}
				fails = false
				r.drained()
				before := blocked()
				time.Sleep(time.Minute)
				if n := blocked(); n != before {
					r.Errorf("told %d times more when all was done", n-before)
				}
				_ = m
			})
		})
	}
}

// G5: all workers in old tasks while a key waits is told; busy workers with short tasks, or old ones with nobody waiting, are not.
func TestG5_WorkersInOldTasksAreTold(t *testing.T) {
	for _, c := range []struct {
		name          string
		task, timeout time.Duration
		keys          int
		told          bool
	}{
		{"old and waited for", time.Minute, time.Hour, 3, true},
		{"half of a short TaskTimeout", 9 * time.Second, 10 * time.Second, 3, true},
		{"nobody waits", time.Minute, time.Hour, 2, false},
		{"short tasks", 20 * time.Second, time.Hour, 40, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				var l listener
				r.interleaved(c.keys, 1)
				r.manager(func(context.Context, *keyseq.Delivery) error { time.Sleep(c.task); return nil }, func(cfg *keyseq.Config) {
					cfg.Workers, cfg.TaskTimeout = 2, c.timeout
					cfg.Events = append(cfg.Events, l.events())
				}).start()
				r.drained()
				if told := slices.ContainsFunc(l.lines, func(s string) bool { return strings.HasPrefix(s, "blocked:k") }); told != c.told {
					r.Errorf("told: %t, want %t", told, c.told)
				}
			})
		})
	}
}

// H18: a commit that does not return is told with its key; a Receive that does not, without one.
func TestEvents_Stuck(t *testing.T) {
	bubble(t, func(r *rig) {
		r.unjudged = true
		var l listener
		r.send("K", 0, 1)
		hung := false
		r.broker.SetHook(func(_ context.Context, c memory.Call) error {
			if c.Kind == memory.CallCommit && !c.After && !hung {
				hung = true
				time.Sleep(time.Minute)
			}
			return nil
		})
		r.manager(func(context.Context, *keyseq.Delivery) error { return nil }, func(c *keyseq.Config) {
			c.CallTimeout = 10 * time.Second
			c.Events = append(c.Events, l.events())
		}).start()
		r.drained()
		want := "stuck:K:commit does not return: settlement is under way; 1 message waits, oldest 1"
		if n := slices.IndexFunc(l.lines, func(s string) bool { return strings.HasPrefix(s, want) }); n < 0 {
			r.Errorf("told %q, want %q", l.lines, want)
		}
	})
}

// records keeps everything that is logged, at every level.
type records struct {
	mu  sync.Mutex
	all []slog.Record
}

func (l *records) Enabled(context.Context, slog.Level) bool { return true }
func (l *records) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, r.Clone())
	return nil
}
func (l *records) WithAttrs([]slog.Attr) slog.Handler { panic("not used") }
func (l *records) WithGroup(string) slog.Handler      { panic("not used") }

func (l *records) count(part string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.all {
		if strings.Contains(r.Message, part) {
			n++
		}
	}
	return n
}

// vault is a factory with credentials, as a provider's is.
type vault struct {
	jms.ConnectionFactory
	User, Password, URL string
}

// R1.28: neither bodies nor properties nor credentials are logged at any level, through failures, dead letters, discards, refusals, losses and panics of
// observers; every line names its queue, those of a message its ID, those of a keyed one its key.
func TestR1_28_NoSecretsInTheLog(t *testing.T) {
	const secret = "hunter2"
	profiles(t, func(r *rig) {
		r.unjudged = true
		var log records
		r.factory = vault{r.factory, secret, secret, "amqp://" + secret + ":" + secret + "@host"}
		kinds := []string{"fail", "panic", "dead", "discard", "refuse", "lose", "exhaust", "fine", "", "later"}
		for n := range 3 {
			for _, kind := range kinds {
				must(r.broker.Send(keyseq.Outgoing{Queue: inQueue, Body: fmt.Appendf(nil, "%s.%s%d", kind, secret, n), Properties: map[string]any{"password": secret}}))
			}
		}
		must(r.broker.Send(keyseq.Outgoing{Queue: inQueue, Body: []byte(secret + " without a key")}))
		refusals, losses := 0, 0
		r.hook(func(c memory.Call) error {
			switch {
			case c.Kind == memory.CallCommit && !c.After && strings.HasPrefix(string(c.Message.Body), "refuse") && refusals < 3:
				refusals++
				return jms.ErrBusy
			case c.Kind == memory.CallCommit && !c.After && strings.HasPrefix(string(c.Message.Body), "lose") && losses < 2:
				losses++
				return jms.ErrSessionLost
			}
			return nil
		})
		m := r.manager(func(_ context.Context, d *keyseq.Delivery) error {
			switch d.Key {
			case "fail", "lose":
				if d.Attempt == 1 {
					return errTimeout
				}
			case "panic":
				if d.Attempt == 1 {
					panic("boom")
				}
			case "dead":
				return keyseq.DeadLetter(errTimeout)
			case "discard":
				return keyseq.Discard(nil)
			case "exhaust":
				return errTimeout
			case "later":
				if d.Attempt == 1 {
					return keyseq.RetryAfter(time.Second, nil)
				}
			}
			return nil
		}, func(c *keyseq.Config) {
			c.DeadLetterQueue, c.Retry.MaxRetries, c.Logger = deadQueue, 2, slog.New(&log)
			c.Events = []keyseq.Events{{Committed: func(keyseq.MessageEvent) { panic("observer") }, Received: func(keyseq.MessageEvent) {}}}
		}).start()
		time.Sleep(500 * time.Millisecond)
		must(r.broker.Break(inQueue, memory.Loss{}))
		r.drained()
		if err := m.shutdown(time.Hour); err != nil {
			r.Error(err)
		}
		if len(log.all) < 20 || log.count("dead-lettered") == 0 || log.count("connection lost") == 0 || log.count("attempt failed") == 0 || log.count("panic in") == 0 {
			r.Errorf("only %d lines: the test does not see what it is about", len(log.all))
		}
		for _, record := range log.all {
			values := map[string]string{}
			record.Attrs(func(a slog.Attr) bool {
				values[a.Key] = fmt.Sprintf("%v %+v %#v", a.Value.Any(), a.Value.Any(), a.Value.Any())
				return true
			})
			line := fmt.Sprint(record.Message, " ", values)
			if strings.Contains(line, secret) {
				r.Errorf("a secret in the log: %s", line)
			}
			if !strings.HasPrefix(values["queue"], inQueue) {
				r.Errorf("a line without its queue: %s", line)
			}
			if _, keyed := values["key"]; keyed && values["message"] == "" {
				r.Errorf("a line with a key and no message: %s", line)
			}
		}
	})
}

// State is told one change after another, in order, also where the reader finds out that this instance is the active one while the run is being ended.
func TestEvents_StatesAreToldInOrder(t *testing.T) {
	bubble(t, func(r *rig) {
		var mu sync.Mutex
		var told []string
		last, inside := keyseq.StateStopped, 0
		m := r.standingBy("A", 0, quick, func(c *keyseq.Config) {
			c.CallTimeout = 5 * time.Second
			c.Events = append(c.Events, keyseq.Events{State: func(from, to keyseq.State, _ error) {
				mu.Lock()
				if inside++; inside > 1 || from != last {
					r.Errorf("told %v to %v after %v, %d at once", from, to, told, inside)
				}
				last = to
				told = append(told, to.String())
				mu.Unlock()
				if to == keyseq.StateActive {
					time.Sleep(20 * time.Second)
				}
				mu.Lock()
				inside--
				mu.Unlock()
			}})
		}).start()
		loss := r.audit.Loss("", "the reader is held up", 0)
		r.send("K", 1)
		time.Sleep(time.Second)
		if err := m.shutdown(time.Minute); err != nil {
			r.Errorf("Shutdown: %v", err)
		}
		loss.Done()
		mu.Lock()
		r.want("told", told, "connecting unconfirmed active draining stopped")
		mu.Unlock()
	}, memory.LikeRabbitMQ(), single)
}
