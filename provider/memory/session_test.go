package memory_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/memory"
)

func TestHeldMessageIsInvisibleAndComesBackInPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t)
		send(t, b, "1", "2", "3", "4")
		c := connect(t, b, "")
		s1, s2, s3 := receive(t, c, "1"), receive(t, c, "2"), receive(t, c, "3")
		browse(t, b, "4")
		commit(t, s2)
		rollback(t, s3) // the later one first
		rollback(t, s1)
		browse(t, b, "1 3 4")
		if m := receiveOn(t, s2, "1"); !m.Redelivered || m.DeliveryCount != 2 {
			t.Fatalf("redelivered %t, count %d; want true, 2", m.Redelivered, m.DeliveryCount)
		}
		if m := receiveOn(t, s1, "3"); m.DeliveryCount != 2 {
			t.Fatalf("count %d, want 2", m.DeliveryCount)
		}
		if m := receiveOn(t, s3, "4"); m.Redelivered || m.DeliveryCount != 1 {
			t.Fatalf("redelivered %t, count %d; want false, 1", m.Redelivered, m.DeliveryCount)
		}
		if n := b.Depth(queue); n != 3 {
			t.Fatalf("depth %d, want 3", n)
		}
		if err := s1.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		browse(t, b, "3")
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		browse(t, b, "1 3 4")
	})
}

func TestRedeliveryDoesNotTouchTheEarlierCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t)
		send(t, b, "1")
		s := open(t, connect(t, b, ""))
		first := receiveOn(t, s, "1")
		rollback(t, s)
		second := receiveOn(t, s, "1")
		if first == second || first.DeliveryCount != 1 || first.Redelivered || second.ID != first.ID {
			t.Fatalf("first %+v, second %+v", first, second)
		}
	})
}

func TestSendsAreVisibleOnlyWithTheCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, memory.Queue{Name: "OUT"})
		send(t, b, "1")
		s := receive(t, connect(t, b, ""), "1")
		if n := b.Depth("OUT"); n != 0 {
			t.Fatalf("depth of OUT before the commit: %d", n)
		}
		commit(t, s, jms.Outgoing{Queue: "OUT", Body: []byte("a")}, jms.Outgoing{Queue: "OUT", Body: []byte("b")})
		ms, err := b.Browse("OUT")
		if err != nil || bodies(ms) != "a b" || b.Depth(queue) != 0 {
			t.Fatalf("after the commit: %v, %v, depth %d", bodies(ms), err, b.Depth(queue))
		}
		commit(t, s, jms.Outgoing{Queue: "OUT", Body: []byte("c")}) // without a received message
		if n := b.Depth("OUT"); n != 3 {
			t.Fatalf("depth of OUT: %d, want 3", n)
		}
	})
}

func TestRefusedCommitDoesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, memory.Queue{Name: "OUT"}, memory.Queue{Name: "FULL", MaxDepth: 1})
		send(t, b, "1")
		s := receive(t, connect(t, b, ""), "1")
		out := jms.Outgoing{Queue: "OUT"}
		nine, ten := 9, 10
		for _, c := range []struct {
			name string
			out  jms.Outgoing
			want error
		}{
			{"unknown queue", jms.Outgoing{Queue: "NONE"}, jms.ErrConfig},
			{"two into a queue of one", jms.Outgoing{Queue: "FULL"}, nil},
			{"text that is none", jms.Outgoing{Queue: "OUT", Text: true, Body: []byte{0xff}}, jms.ErrConfig},
			{"priority", jms.Outgoing{Queue: "OUT", Priority: &ten}, jms.ErrConfig},
			{"property", jms.Outgoing{Queue: "OUT", Properties: map[string]any{"p": struct{}{}}}, jms.ErrConfig},
			{"TTL", jms.Outgoing{Queue: "OUT", TTL: -1}, jms.ErrConfig},
		} {
			second := out
			if c.want == nil {
				second, c.want = c.out, jms.ErrBusy
			}
			err := s.Commit(t.Context(), out, second, c.out)
			wantErr(t, err, c.want)
			if b.Depth("OUT") != 0 || b.Depth("FULL") != 0 || b.Depth(queue) != 1 {
				t.Fatalf("%s: something was done", c.name)
			}
		}
		if err := b.InhibitPut("OUT", true); err != nil {
			t.Fatal(err)
		}
		wantErr(t, s.Commit(t.Context(), jms.Outgoing{Queue: "FULL"}, out), jms.ErrBusy)
		if err := b.InhibitPut("OUT", false); err != nil {
			t.Fatal(err)
		}
		out.Priority = &nine
		commit(t, s, jms.Outgoing{Queue: "FULL"}, out) // the same session can still commit
		if b.Depth("OUT") != 1 || b.Depth("FULL") != 1 || b.Depth(queue) != 0 {
			t.Fatal("the last commit was not done")
		}
	})
}

func TestWaitingReceiveIsWokenAtOnce(t *testing.T) {
	type env struct {
		b    *memory.Broker
		c    jms.Connection
		held jms.Session
		stop context.CancelFunc
	}
	for name, c := range map[string]struct {
		wake func(t *testing.T, e env)
		body string
		err  error
	}{
		"send":          {func(t *testing.T, e env) { send(t, e.b, "new") }, "new", nil},
		"rollback":      {func(t *testing.T, e env) { rollback(t, e.held) }, "old", nil},
		"session close": {func(t *testing.T, e env) { _ = e.held.Close(t.Context()) }, "old", nil},
		"commit": {func(t *testing.T, e env) {
			commit(t, e.held, jms.Outgoing{Queue: queue, Body: []byte("sent")})
		}, "sent", nil},
		"context":          {func(t *testing.T, e env) { e.stop() }, "", context.Canceled},
		"connection close": {func(t *testing.T, e env) { _ = e.c.Close(t.Context()) }, "", jms.ErrConnectionLost},
		"break":            {func(t *testing.T, e env) { _, _ = e.b.Break(queue, memory.Loss{}) }, "", jms.ErrConnectionLost},
		"broker close":     {func(t *testing.T, e env) { e.b.Close() }, "", jms.ErrConnectionLost},
		"restart":          {func(t *testing.T, e env) { e.b.Restart() }, "", jms.ErrConnectionLost},
		"inhibit":          {func(t *testing.T, e env) { _ = e.b.InhibitGet(queue, true) }, "", jms.ErrBusy},
		"quiesce":          {func(t *testing.T, e env) { e.b.Quiesce() }, "", jms.ErrQuiescing},
		"lost session":     {func(t *testing.T, e env) { _, _ = e.b.LoseReceive(queue, memory.Loss{}) }, "", jms.ErrSessionLost},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBroker(t)
				send(t, b, "old")
				conn := connect(t, b, "")
				e := env{b: b, c: conn, held: receive(t, conn, "old")}
				s := open(t, conn)
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				e.stop = stop
				start := time.Now()
				go func() {
					time.Sleep(time.Second)
					c.wake(t, e)
				}()
				m, err := s.Receive(ctx)
				if since := time.Since(start); since != time.Second {
					t.Fatalf("woken after %v, want 1s", since)
				}
				if c.err != nil {
					wantErr(t, err, c.err)
					return
				}
				if err != nil || string(m.Body) != c.body {
					t.Fatalf("%v, %v; want %q", m, err, c.body)
				}
			})
		})
	}
}

func TestMisuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t)
		send(t, b, "1", "2")
		c := connect(t, b, "")
		s := receive(t, c, "1")
		if _, err := s.Receive(t.Context()); err == nil || jms.EndsSession(err) {
			t.Fatalf("Receive on a session that holds: %v", err)
		}
		commit(t, s)
		rollback(t, s) // holds nothing
		for range 2 {
			if err := s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		_, err := s.Receive(t.Context())
		wantErr(t, err, jms.ErrSessionLost)
		for range 2 {
			if err := c.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		_, err = c.OpenSession(t.Context())
		wantErr(t, err, jms.ErrConnectionLost)
		browse(t, b, "2")
	})
}
