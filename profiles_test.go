package keyseq_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/memory"
)

// H24: what the profiles do to a reader that does not keep the rules: each of these must go wrong there, or a test that passes on them shows
// nothing.
func TestH24_TheProfilesBreakACarelessReader(t *testing.T) {
	receive := func(r *rig, c jms.Connection) (jms.Session, string) {
		s := must(c.OpenSession(r.Context()))
		ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
		defer cancel()
		m, err := s.Receive(ctx)
		if err != nil {
			return s, ""
		}
		return s, string(m.Body)
	}
	connect := func(r *rig) jms.Connection {
		return must(r.broker.Connect(r.Context(), jms.Subscription{Queue: inQueue}))
	}
	t.Run("reading on at once after a loss overtakes", func(t *testing.T) {
		for _, p := range []memory.Profile{memory.LikeIBMMQ(), memory.LikeRabbitMQ(), memory.LikeQuorum()} {
			bubble(t, func(r *rig) {
				r.unjudged = true
				c := connect(r)
				r.send("K", 1)
				receive(r, c)
				must(r.broker.Break(inQueue, memory.Loss{}))
				next := must(connect(r).OpenSession(r.Context())) // where the broker sends ahead, the dead reader is sent some too
				r.send("K", 2, 3)
				if m := must(next.Receive(r.Context())); string(m.Body) == "K.1" {
					r.Errorf("%s: K.1 came first, want a later one: what was lost must stay locked", p.Name)
				}
			}, p)
		}
	})
	t.Run("a commit that fails may be done", func(t *testing.T) {
		bubble(t, func(r *rig) {
			r.unjudged = true
			r.send("K", 1)
			s, _ := receive(r, connect(r))
			r.hook(func(c memory.Call) error {
				if c.Kind == memory.CallCommit && c.After {
					return jms.ErrSessionLost
				}
				return nil
			})
			if err := s.Commit(r.Context()); err == nil || r.broker.Depth(inQueue) != 0 {
				r.Errorf("Commit: %v, depth %d", err, r.broker.Depth(inQueue))
			}
		}, memory.LikeIBMMQ())
	})
	t.Run("a settled message comes again", func(t *testing.T) {
		for _, p := range []memory.Profile{memory.LikeRabbitMQ(), memory.LikeQuorum()} {
			bubble(t, func(r *rig) {
				r.unjudged = true
				r.send("K", 1)
				s, _ := receive(r, connect(r))
				if err := s.Commit(r.Context()); err != nil {
					r.Fatal(err)
				}
				r.broker.Restart()
				if _, got := receive(r, connect(r)); got != "K.1" {
					r.Errorf("%s: %q, want K.1 again: its acknowledgement was not processed", p.Name, got)
				}
			}, p)
		}
	})
	t.Run("what was sent ahead is hidden", func(t *testing.T) {
		bubble(t, func(r *rig) {
			r.unjudged = true
			r.send("K", 1, 2, 3)
			receive(r, connect(r))
			if ready := r.bodies(inQueue); len(ready) != 0 {
				r.Errorf("%v are still there for others", ready)
			}
		}, memory.LikeRabbitMQ())
	})
	t.Run("calls are deaf", func(t *testing.T) {
		bubble(t, func(r *rig) {
			r.unjudged = true
			s := must(connect(r).OpenSession(r.Context()))
			ctx, cancel := context.WithTimeout(r.Context(), 100*time.Millisecond)
			defer cancel()
			began := time.Now()
			_, _ = s.Receive(ctx)
			if took := time.Since(began); took < 500*time.Millisecond {
				r.Errorf("Receive ended after %v", took)
			}
		}, memory.LikeIBMMQ())
	})
}

// T12: a reader that keeps its sessions does not let go of what was sent ahead: one connection and no closed session in a run without failures.
func TestT12_SessionsStayOpenWhereTheBrokerSendsAhead(t *testing.T) {
	for _, p := range []memory.Profile{memory.LikeRabbitMQ(), memory.LikeQuorum()} {
		t.Run(p.Name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				closed := map[memory.CallKind]int{}
				r.hook(func(c memory.Call) error {
					if !c.After {
						closed[c.Kind]++
					}
					return nil
				})
				r.interleaved(20, 50)
				m := r.manager(func(_ context.Context, d *keyseq.Delivery) error {
					time.Sleep(10 * time.Millisecond)
					if _, n := split(string(d.Body)); n%7 == 0 && d.Attempt == 1 {
						return fmt.Errorf("once")
					}
					return nil
				}, func(c *keyseq.Config) { c.MaxInFlight = 50 }).start()
				r.drainedSlowly()
				r.locked(func() {
					if closed[memory.CallConnect] != 1 || closed[memory.CallCloseSession]+closed[memory.CallRollback]+closed[memory.CallCloseConnection] != 0 {
						r.Errorf("calls: %v", closed)
					}
				})
				if s := m.Snapshot(); s.Received != 1000 {
					r.Errorf("%d messages were received, want each once", s.Received)
				}
			}, p)
		})
	}
}
