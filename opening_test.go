package keyseq_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/memory"
)

const (
	openTakes  = 20 * time.Millisecond
	openAtOnce = 4 // as in opening.go
)

// opens counts the calls of OpenSession of a rig, each of which takes openTakes, half of it after its effect.
type opens struct {
	begun, failed atomic.Int32
	cut           atomic.Int32 // closings of the connection while sessions were being opened
}

// slowOpens has outcome say what becomes of the nth call, before its effect, and after delay it when it is done; nil: all succeed.
func (r *rig) slowOpens(outcome func(n int32) error, after ...func(n int32)) *opens {
	o := &opens{}
	var done atomic.Int32
	r.broker.SetHook(func(_ context.Context, c memory.Call) error {
		switch {
		case c.Kind == memory.CallConnect && !c.After:
			if now, _ := r.spy.openings(); now > 0 {
				r.Errorf("%d sessions are being opened on the last connection when the next is made", now)
			}
		case c.Kind == memory.CallCloseConnection && !c.After:
			if now, _ := r.spy.openings(); now > 0 {
				o.cut.Add(1)
			}
		case c.Kind == memory.CallOpenSession && c.After:
			n := done.Add(1)
			time.Sleep(openTakes / 2)
			for _, delay := range after {
				delay(n)
			}
		case c.Kind == memory.CallOpenSession:
			n := o.begun.Add(1)
			time.Sleep(openTakes / 2)
			if outcome == nil {
				return nil
			}
			if err := outcome(n); err != nil {
				o.failed.Add(1)
				return err
			}
		}
		return nil
	})
	return o
}

// openings is how many calls of OpenSession are under way, and the most that ever were.
func (s *spy) openings() (now, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opening, s.mostOpening
}

// mostOpen is the most sessions that were open at once.
func (s *spy) mostOpen() int { s.mu.Lock(); defer s.mu.Unlock(); return s.most }

// leftBehind is how many sessions nobody has closed, neither they nor their connection after they came.
func (s *spy) leftBehind() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.sessions {
		if !x.closed && (x.late || !x.conn.closed) {
			n++
		}
	}
	return n
}

// holding is a task that holds its message until the release.
func holding(release <-chan struct{}) taskFunc {
	return func(ctx context.Context, _ *keyseq.Delivery) error {
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func wide(workers, inFlight int) func(*keyseq.Config) {
	return func(c *keyseq.Config) { c.Workers, c.MaxInFlight = workers, inFlight }
}

// R1.24: where a session costs a connection, a thousand of them are there in a quarter of the time that they take one after another, and never more
// than the window.
func TestR1_24_CostlySessionsAreOpenedAhead(t *testing.T) {
	bubble(t, func(r *rig) {
		const n = 1000
		r.slowOpens(nil)
		r.interleaved(1200, 1)
		release := make(chan struct{})
		m := r.manager(holding(release), wide(n, n)).start()
		began := time.Now()
		r.until("all are in flight", func() bool { return m.Snapshot().Running == n })
		took := time.Since(began)
		if most := n*openTakes/openAtOnce + 500*time.Millisecond; took > most {
			r.Errorf("%d sessions of %v each took %v, want at most %v", n, openTakes, took, most)
		}
		t.Logf("%d sessions of %v each took %v", n, openTakes, took)
		if _, got := r.spy.openings(); got != openAtOnce {
			r.Errorf("%d sessions were opened at once, want %d", got, openAtOnce)
		}
		close(release)
		r.drained()
		if got := r.spy.mostOpen(); got > n {
			r.Errorf("%d sessions were open at once, the window is %d", got, n)
		}
	}, memory.LikeIBMMQ())
}

// R1.24: it opens a few more than are used, not more than the window, and stops there.
func TestR1_24_OpeningAheadStopsWhenEnoughStandReady(t *testing.T) {
	for _, x := range []struct{ workers, inFlight, most int }{{10, 10, 10}, {10, 1000, 13}, {100, 1000, 114}, {2, 1000, 3}} {
		t.Run(fmt.Sprint(x.workers, " workers, window ", x.inFlight), func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.slowOpens(nil)
				r.interleaved(1000, 3)
				r.manager(func(context.Context, *keyseq.Delivery) error {
					time.Sleep(250 * time.Millisecond)
					return nil
				}, wide(x.workers, x.inFlight)).start()
				r.drained()
				if got := r.spy.opened(); got > x.most {
					r.Errorf("%d sessions were opened, want at most %d", got, x.most)
				}
			}, memory.LikeIBMMQ())
		})
	}
}

// Where sessions are free nothing is opened that is not needed, and one after another.
func TestR1_24_FreeSessionsAreNotOpenedAhead(t *testing.T) {
	bubble(t, func(r *rig) {
		o := r.slowOpens(nil)
		r.interleaved(200, 1)
		release := make(chan struct{})
		m := r.manager(holding(release), wide(100, 100)).start()
		r.until("all are in flight", func() bool { return m.Snapshot().Running == 100 })
		_, most := r.spy.openings()
		if begun := o.begun.Load(); most != 1 || begun != 100 {
			r.Errorf("%d sessions were opened, up to %d at once; want 100, one at a time", begun, most)
		}
		close(release)
		r.drained()
	})
}

// R1.24: a limit of the broker that is met while opening ahead is met by the calls under way, and then once a minute.
func TestR1_24_OneLimitEndsOpeningAhead(t *testing.T) {
	const limit = 50
	bubble(t, func(r *rig) {
		o := r.slowOpens(func(int32) error {
			if r.spy.open() >= limit {
				return fmt.Errorf("MaxChannels: %w", jms.ErrBusy)
			}
			return nil
		})
		r.interleaved(300, 100)
		m := r.manager(everySecond, wide(200, 1000)).start()
		time.Sleep(50 * time.Second)
		synctest.Wait()
		if got := o.failed.Load(); got == 0 || got > openAtOnce {
			r.Errorf("%d sessions were refused in the first minute, want 1 to %d", got, openAtOnce)
		}
		if s := m.Snapshot(); s.Sessions < limit || s.MaxInFlight != s.Sessions {
			r.Errorf("%d sessions, window %d; want %d or a few more, the same", s.Sessions, s.MaxInFlight, limit)
		}
		before := o.failed.Load()
		time.Sleep(5 * time.Minute)
		if got := o.failed.Load() - before; got == 0 || got > 6 {
			r.Errorf("%d sessions were refused in the next five minutes, want one a minute", got)
		}
		if err := m.shutdown(time.Minute); err != nil {
			r.Error(err)
		}
	}, memory.LikeIBMMQ())
}

// R1.24: when one call is refused, those beside it may still succeed: no other follows, and they count.
func TestR1_24_ARefusalWaitsForTheCallsBesideIt(t *testing.T) {
	bubble(t, func(r *rig) {
		const refused = 50
		o := r.slowOpens(func(n int32) error {
			if n == refused {
				return fmt.Errorf("MaxChannels: %w", jms.ErrBusy)
			}
			time.Sleep(time.Duration(n) * time.Microsecond) // so no two end at once
			return nil
		})
		r.interleaved(300, 100)
		m := r.manager(everySecond, wide(200, 1000)).start()
		time.Sleep(50 * time.Second)
		synctest.Wait()
		if got := o.begun.Load(); got < refused || got >= refused+openAtOnce {
			r.Errorf("%d sessions were begun, want none after number %d but those beside it", got, refused)
		}
		if s := m.Snapshot(); s.MaxInFlight != s.Sessions || s.Sessions != r.spy.open() {
			r.Errorf("%d sessions are open, Snapshot says %d and a window of %d; want the same", r.spy.open(), s.Sessions, s.MaxInFlight)
		}
		if err := m.shutdown(time.Minute); err != nil {
			r.Error(err)
		}
	}, memory.LikeIBMMQ())
}

func everySecond(ctx context.Context, _ *keyseq.Delivery) error {
	select {
	case <-time.After(time.Second):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// T14: an OpenSession that does not return holds up nobody while there are other sessions, nor a Shutdown.
func TestR1_24_AHungOpenHoldsNothingUp(t *testing.T) {
	bubble(t, func(r *rig) {
		o := r.slowOpens(func(n int32) error {
			if n > 10 {
				time.Sleep(time.Hour)
			}
			return nil
		})
		r.interleaved(50, 10)
		m := r.manager(func(context.Context, *keyseq.Delivery) error {
			time.Sleep(100 * time.Millisecond)
			return nil
		}, wide(20, 100)).start()
		began := time.Now()
		r.drained()
		if took := time.Since(began); took > 10*time.Second {
			r.Errorf("500 messages of 100 ms through ten sessions took %v, want 5 s or so", took)
		}
		began = time.Now()
		if err := m.shutdown(time.Minute); err != nil {
			r.Error(err)
		}
		if took := time.Since(began); took > 2*time.Second {
			r.Errorf("Shutdown took %v beside calls that hang, want a second or so", took)
		}
		if got := o.begun.Load(); got > 10+openAtOnce {
			r.Errorf("%d sessions were begun, want at most %d beside the ten", got, openAtOnce)
		}
		time.Sleep(2 * time.Hour)
	}, memory.LikeIBMMQ())
}

// T14: a session that comes after CallTimeout is closed.
func TestR1_24_ALateSessionIsClosed(t *testing.T) {
	bubble(t, func(r *rig) {
		r.slowOpens(nil, func(n int32) {
			if n > 10 && n <= 14 {
				time.Sleep(45 * time.Second) // CallTimeout is 30 s
			}
		})
		r.interleaved(50, 200)
		m := r.manager(everySecond, wide(20, 100)).start()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if got, want := r.spy.open(), m.Snapshot().Sessions; got != want || got < 20 {
			r.Errorf("%d sessions are open, the manager knows %d; want 20 or more, the same", got, want)
		}
		r.drained()
	}, memory.LikeIBMMQ())
}

// What happens in the middle of opening costs no order and leaves no session behind.
func TestR1_24_EndsInTheMiddleOfOpening(t *testing.T) {
	for name, end := range map[string]func(r *rig, m *subject){
		"connection lost": func(r *rig, _ *subject) {
			r.losing("break", func() { must(r.broker.Break(inQueue, memory.Loss{})) })
			time.Sleep(time.Minute)
		},
		"given back": func(r *rig, _ *subject) {
			held := must(r.broker.Held(inQueue))
			r.losing("take back", func() { check(r.broker.TakeBack(held[0].ID)) })
			time.Sleep(time.Minute)
		},
		"stop": func(r *rig, m *subject) {
			if err := m.stop(time.Minute); err != nil {
				r.Error(err)
			}
			m.start()
		},
		"shutdown": func(r *rig, m *subject) {
			began := time.Now()
			if err := m.shutdown(time.Minute); err != nil {
				r.Error(err)
			}
			if took := time.Since(began); took > 2*time.Second {
				r.Errorf("Shutdown took %v, its tasks one", took)
			}
			synctest.Wait()
			if got := r.spy.leftBehind(); got != 0 {
				r.Errorf("%d sessions are open after Shutdown", got)
			}
			m.start()
		},
		"shutdown at once": func(r *rig, m *subject) {
			_ = m.shutdown(time.Nanosecond)
			<-m.Done()
			m.start()
		},
	} {
		// Before and after the effect of the calls under way.
		for _, at := range []time.Duration{705 * time.Millisecond, 715 * time.Millisecond} {
			t.Run(fmt.Sprint(name, " after ", at), func(t *testing.T) {
				bubble(t, func(r *rig) {
					o := r.slowOpens(nil)
					r.interleaved(400, 2)
					m := r.manager(everySecond, wide(300, 1000)).start()
					time.Sleep(at)
					if now, _ := r.spy.openings(); now != openAtOnce {
						r.Fatalf("%d sessions are being opened, the test needs %d", now, openAtOnce)
					}
					end(r, m)
					if o.cut.Load() > 0 && name != "connection lost" {
						r.Error("the connection was closed in order while sessions were being opened")
					}
					r.drained()
					if got := r.spy.open(); got > 400 {
						r.Errorf("%d sessions are open", got)
					}
					if err := m.shutdown(time.Minute); err != nil {
						r.Error(err)
					}
					synctest.Wait()
					if got := r.spy.leftBehind(); got != 0 {
						r.Errorf("%d sessions are open at the end", got)
					}
				}, memory.LikeIBMMQ())
			})
		}
	}
}
