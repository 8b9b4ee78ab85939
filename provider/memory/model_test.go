package memory_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/memory"
)

// model is the queue as a sorted slice: what a reader of the documentation would write.
type model struct {
	inReturnOrder bool
	all           []*modelMessage
	order         int // the last place given
	returns       int
	now           time.Time
}

type modelMessage struct {
	body           string
	priority       int
	place          int // in the queue, once visible
	returned       int // with inReturnOrder: place among the returned ones, 0 if never delivered
	held           bool
	due, expires   time.Time
	deliveries     int
	id             string
	notYetHasPlace bool
	lostUntil      time.Time // held by a lost session of lostBy until then
	lostBy         jms.Connection
}

func (m *model) tick() {
	m.now = time.Now()
	for _, x := range m.all {
		if !x.lostUntil.IsZero() && !x.lostUntil.After(m.now) {
			x.lostUntil = time.Time{}
			m.giveBack(x)
		}
	}
	m.all = slices.DeleteFunc(m.all, func(x *modelMessage) bool {
		return !x.held && !x.expires.IsZero() && !m.now.Before(x.expires)
	})
	var due []*modelMessage
	for _, x := range m.all {
		if x.notYetHasPlace && !x.due.After(m.now) {
			due = append(due, x)
		}
	}
	slices.SortStableFunc(due, func(a, b *modelMessage) int { return a.due.Compare(b.due) })
	for _, x := range due {
		x.notYetHasPlace = false
		m.order++
		x.place = m.order
	}
}

func (m *model) ready() []*modelMessage {
	var r []*modelMessage
	for _, x := range m.all {
		if !x.held && !x.notYetHasPlace {
			r = append(r, x)
		}
	}
	slices.SortFunc(r, func(a, b *modelMessage) int {
		if a.priority != b.priority {
			return b.priority - a.priority
		}
		if m.inReturnOrder && (a.returned > 0) != (b.returned > 0) {
			return b.returned - a.returned // the returned one first
		}
		if m.inReturnOrder && a.returned != b.returned {
			return a.returned - b.returned
		}
		return a.place - b.place
	})
	return r
}

func (m *model) giveBack(xs ...*modelMessage) {
	slices.SortFunc(xs, func(a, b *modelMessage) int { return a.place - b.place })
	for _, x := range xs {
		x.held = false
		m.returns++
		x.returned = m.returns
	}
}

func (m *model) lostBy(c jms.Connection) bool {
	return slices.ContainsFunc(m.all, func(x *modelMessage) bool { return !x.lostUntil.IsZero() && x.lostBy == c })
}

func (m *model) remove(x *modelMessage) {
	m.all = slices.DeleteFunc(m.all, func(y *modelMessage) bool { return y == x })
}

func TestRandomOperationsAgreeWithAModel(t *testing.T) {
	for _, inReturnOrder := range []bool{false, true} {
		for seed := range uint64(60) {
			t.Run(fmt.Sprintf("returnOrder=%t/seed=%d", inReturnOrder, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { randomRun(t, seed, inReturnOrder) })
			})
		}
	}
}

func randomRun(t *testing.T, seed uint64, inReturnOrder bool) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	b := newBroker(t, memory.Profile{ReturnOrder: inReturnOrder}, memory.Queue{Name: queue, Shared: true})
	m := &model{inReturnOrder: inReturnOrder}
	type holder struct {
		s      jms.Session
		x      *modelMessage
		undone bool
	}
	conns := make([]jms.Connection, 2)
	sessions := make([][]*holder, 2)
	reconnect := func(i int) {
		conns[i] = connect(t, b, fmt.Sprint(i))
		sessions[i] = nil
		for range 4 {
			sessions[i] = append(sessions[i], &holder{s: open(t, conns[i])})
		}
	}
	reconnect(0)
	reconnect(1)
	for step := range 400 {
		ci := rnd.IntN(2)
		si := rnd.IntN(4)
		h := sessions[ci][si]
		reopen := func() { sessions[ci][si] = &holder{s: open(t, conns[ci])} }
		m.tick()
		op := rnd.IntN(100)
		switch {
		case op < 30: // send
			p := rnd.IntN(3) * 4
			out := jms.Outgoing{Queue: queue, Body: fmt.Append(nil, step), Priority: &p}
			x := &modelMessage{body: string(out.Body), priority: p}
			if rnd.IntN(4) == 0 {
				out.TTL = time.Duration(1+rnd.IntN(20)) * time.Second
				x.expires = m.now.Add(out.TTL)
			}
			var delay time.Duration
			if rnd.IntN(4) == 0 {
				delay = time.Duration(1+rnd.IntN(10)) * time.Second
				x.due, x.notYetHasPlace = m.now.Add(delay), true
			} else {
				m.order++
				x.place = m.order
			}
			id, err := b.SendAfter(delay, out)
			if err != nil {
				t.Fatal(err)
			}
			x.id = id
			m.all = append(m.all, x)
		case op < 60 && h.x == nil && !h.undone: // receive
			r := m.ready()
			if len(r) == 0 {
				receiveNone(t, h.s)
				break
			}
			got := receiveOn(t, h.s, r[0].body)
			h.x = r[0]
			h.x.held = true
			h.x.deliveries++
			if got.DeliveryCount != h.x.deliveries || got.Redelivered != (h.x.deliveries > 1) || got.ID != h.x.id || got.Priority != h.x.priority {
				t.Fatalf("step %d: %+v, model %+v", step, got, h.x)
			}
		case op < 70: // commit
			err := h.s.Commit(t.Context())
			if h.undone {
				wantErr(t, err, jms.ErrRolledBack)
				_ = h.s.Close(t.Context())
				reopen()
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if h.x != nil {
				m.remove(h.x)
				h.x = nil
			}
		case op < 80: // rollback
			rollback(t, h.s)
			if h.x != nil {
				m.giveBack(h.x)
			}
			h.x, h.undone = nil, false
		case op < 84 && h.x != nil: // the broker takes it back
			if err := b.TakeBack(h.x.id); err != nil {
				t.Fatal(err)
			}
			m.giveBack(h.x)
			h.x, h.undone = nil, true
		case op < 88 && h.x != nil: // the session is lost
			var l memory.Loss
			if !inReturnOrder && rnd.IntN(2) == 0 { // the broker notices late
				l.Broker = time.Duration(1+rnd.IntN(5)) * time.Second
				h.x.lostUntil, h.x.lostBy = m.now.Add(l.Broker), conns[ci]
			} else {
				m.giveBack(h.x)
			}
			if err := b.LoseSession(h.x.id, l); err != nil {
				t.Fatal(err)
			}
			_, err := h.s.Receive(t.Context())
			wantErr(t, err, jms.ErrSessionLost)
			reopen()
		case op < 92: // the session is closed
			if err := h.s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if h.x != nil {
				m.giveBack(h.x)
			}
			reopen()
		case op < 94: // the connection is closed or breaks
			if rnd.IntN(2) == 0 {
				err := conns[ci].Close(t.Context())
				if lingering := m.lostBy(conns[ci]); lingering != errors.Is(err, jms.ErrSessionLost) || !lingering && err != nil {
					t.Fatalf("Close: %v, lost sessions: %t", err, lingering)
				}
			} else {
				rs, err := b.Readers(queue)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range rs {
					if r.Client() == fmt.Sprint(ci) {
						r.Break(memory.Loss{})
					}
				}
			}
			var back []*modelMessage
			for _, h := range sessions[ci] {
				if h.x != nil {
					back = append(back, h.x)
				}
			}
			m.giveBack(back...)
			reconnect(ci)
		default:
			time.Sleep(time.Duration(rnd.IntN(3000)) * time.Millisecond)
			synctest.Wait()
		}
		synctest.Wait()
		m.tick()
		if err := agree(b, m); err != nil {
			t.Fatalf("step %d (operation %d): %v", step, op, err)
		}
	}
}

func agree(b *memory.Broker, m *model) error {
	ms, err := b.Browse(queue)
	if err != nil {
		return err
	}
	var want []string
	for _, x := range m.ready() {
		want = append(want, x.body)
	}
	var got []string
	for _, x := range ms {
		got = append(got, string(x.Body))
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("ready %v, model %v", got, want)
	}
	held, err := b.Held(queue)
	if err != nil {
		return err
	}
	n := 0
	for _, x := range m.all {
		if x.held {
			n++
		}
	}
	s, err := b.Stats(queue)
	if err != nil {
		return err
	}
	if len(held) != n || s.Unsettled != n || s.Depth != len(m.all) || s.Ready != len(want) || s.Depth != s.Ready+s.Delayed+s.Unsettled {
		return fmt.Errorf("%+v, %d held; model has %d, %d held", s, len(held), len(m.all), n)
	}
	if s.Sent != s.Settled+s.Expired+s.Lost+uint64(s.Depth) {
		return fmt.Errorf("messages are not conserved: %+v", s)
	}
	return nil
}
