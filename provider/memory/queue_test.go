package memory_test

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/memory"
)

func TestWrongSettingsAreReportedAtOnce(t *testing.T) {
	_, err := memory.NewBroker(
		memory.Queue{},
		memory.Queue{Name: "A", MaxDepth: -1, Shared: true, SingleActiveConsumer: true},
		memory.Queue{Name: "B", BackoutQueue: "X"},
		memory.Queue{Name: "C", BackoutThreshold: -1},
		memory.Profile{ReturnDelay: -1, AckDelay: time.Second, Rollback: 7},
	)
	wantErr(t, err, jms.ErrConfig)
	for _, part := range []string{"give it a name", `"A": MaxDepth is -1`, "not both", `"B": set both`, `"C": BackoutThreshold is -1`,
		"Profile.ReturnDelay", "Profile.AckDelay", "Profile.Rollback"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %q: %v", part, err)
		}
	}
	b := newBroker(t, memory.Queue{Name: "A", MaxDepth: 1})
	if err := b.Declare(memory.Queue{Name: "A", MaxDepth: 1}, memory.Queue{Name: "NEW"}); err != nil {
		t.Errorf("the same again: %v", err)
	}
	wantErr(t, b.Declare(memory.Queue{Name: "NEWER"}, memory.Queue{Name: "A"}), jms.ErrConfig)
	if n := b.Depth("NEWER"); n != -1 {
		t.Errorf("half of a refused declaration was done: depth %d", n)
	}
}

func TestUnknownQueue(t *testing.T) {
	b := newBroker(t)
	_, err := b.Connect(t.Context(), jms.Subscription{Queue: "NONE", Logger: slog.Default()})
	wantErr(t, err, jms.ErrConfig)
	if !strings.Contains(err.Error(), `"NONE"`) || !strings.Contains(err.Error(), "declare it") {
		t.Errorf("the error does not say what to do: %v", err)
	}
	_, err = b.Send(jms.Outgoing{Queue: "NONE"})
	wantErr(t, err, jms.ErrConfig)
	_, err = b.SendBatch([]jms.Outgoing{{Queue: queue}, {Queue: "NONE"}})
	wantErr(t, err, jms.ErrConfig)
	if n := b.Depth(queue); n != 0 {
		t.Errorf("half of a batch was sent: depth %d", n)
	}
	for _, f := range []func() error{
		func() error { _, err := b.Browse("NONE"); return err },
		func() error { _, err := b.Held("NONE"); return err },
		func() error { _, err := b.Stats("NONE"); return err },
		func() error { _, err := b.Readers("NONE"); return err },
		func() error { _, err := b.Break("NONE", memory.Loss{}); return err },
		func() error { _, err := b.LoseReceive("NONE", memory.Loss{}); return err },
		func() error { return b.InhibitGet("NONE", true) },
		func() error { return b.InhibitPut("NONE", true) },
	} {
		wantErr(t, f(), jms.ErrConfig)
	}
}

func TestPriorityThenOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t)
		low, high := 0, 9
		for _, m := range []struct {
			body string
			p    *int
		}{{"a", nil}, {"low", &low}, {"b", nil}, {"high", &high}, {"c", nil}} {
			if _, err := b.Send(jms.Outgoing{Queue: queue, Body: []byte(m.body), Priority: m.p}); err != nil {
				t.Fatal(err)
			}
		}
		browse(t, b, "high a b c low")
		c := connect(t, b, "")
		s := receive(t, c, "high")
		a := receive(t, c, "a")
		rollback(t, s)
		rollback(t, a)
		browse(t, b, "high a b c low")
	})
}

func TestMessagesAreCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t)
		body, raw := []byte("body"), []byte("raw")
		props := map[string]any{"s": "x", "i": 7, "i64": int64(8), "f": 0.5, "b": true, "raw": raw}
		id, err := b.Send(jms.Outgoing{Queue: queue, CorrelationID: "c", GroupID: "g", ReplyTo: "r", Text: true, Body: body, Properties: props, NonPersistent: true})
		if err != nil {
			t.Fatal(err)
		}
		body[0], raw[0] = 'X', 'X'
		props["s"] = "changed"
		m := receiveOn(t, open(t, connect(t, b, "")), "body")
		for name, want := range map[string]string{"s": "x", "i": "7", "i64": "8", "f": "0.5", "b": "true", "raw": "raw"} {
			if got, ok := m.Property(name); !ok || got != want {
				t.Errorf("property %s: %q, %t; want %q", name, got, ok, want)
			}
		}
		if m.ID != id || m.CorrelationID != "c" || m.GroupID != "g" || m.ReplyTo != "r" || !m.Text || m.Persistent ||
			m.Priority != memory.DefaultPriority || !m.Timestamp.Equal(time.Now()) || !m.Expiration.IsZero() {
			t.Errorf("%+v", m)
		}
	})
}

func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t)
		sendTTL := func(body string, ttl time.Duration) {
			t.Helper()
			if _, err := b.Send(jms.Outgoing{Queue: queue, Body: []byte(body), TTL: ttl}); err != nil {
				t.Fatal(err)
			}
		}
		sendTTL("1", time.Second)
		sendTTL("2", 2*time.Second)
		send(t, b, "3")
		sendTTL("4", 3*time.Second)
		c := connect(t, b, "")
		one := receive(t, c, "1")
		time.Sleep(time.Second)
		rollback(t, one) // expired while held: never again
		browse(t, b, "2 3 4")
		two := receive(t, c, "2")
		time.Sleep(time.Second)
		commit(t, two) // what is held can be settled
		three := receive(t, c, "3")
		time.Sleep(time.Second)
		receiveNone(t, two)
		commit(t, three)
		if s := stats(t, b); s.Expired != 2 || s.Settled != 2 || s.Depth != 0 {
			t.Fatalf("%+v", s)
		}
	})
}

func TestExpiredMessagesMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, memory.Queue{Name: queue, MaxDepth: 2})
		for range 2 {
			if _, err := b.Send(jms.Outgoing{Queue: queue, TTL: time.Second}); err != nil {
				t.Fatal(err)
			}
		}
		_, err := b.Send(jms.Outgoing{Queue: queue})
		wantErr(t, err, jms.ErrBusy)
		time.Sleep(time.Second)
		send(t, b, "new")
	})
}

func TestHeldMessagesCountForMaxDepth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, memory.Queue{Name: queue, MaxDepth: 2})
		send(t, b, "1", "2")
		s := receive(t, connect(t, b, ""), "1")
		_, err := b.Send(jms.Outgoing{Queue: queue})
		wantErr(t, err, jms.ErrBusy)
		commit(t, s)
		send(t, b, "3")
	})
}

func TestDelayedDelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t)
		start := time.Now()
		for body, d := range map[string]time.Duration{"3": 3 * time.Second, "1": time.Second, "2": 2 * time.Second} {
			if _, err := b.SendAfter(d, jms.Outgoing{Queue: queue, Body: []byte(body)}); err != nil {
				t.Fatal(err)
			}
		}
		_, err := b.SendAfter(-1, jms.Outgoing{Queue: queue})
		wantErr(t, err, jms.ErrConfig)
		if s := stats(t, b); s.Delayed != 3 || s.Ready != 0 {
			t.Fatalf("%+v", s)
		}
		c := connect(t, b, "")
		for i, body := range []string{"1", "2"} {
			receive(t, c, body)
			if since := time.Since(start); since != time.Duration(i+1)*time.Second {
				t.Fatalf("%s came after %v", body, since)
			}
		}
		send(t, b, "now")
		time.Sleep(time.Minute)
		receive(t, c, "now") // was visible before the delayed one
		receive(t, c, "3")
		if _, err := b.SendAfter(time.Hour, jms.Outgoing{Queue: queue, TTL: time.Minute}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if s := stats(t, b); s.Expired != 1 || s.Ready != 0 || s.Delayed != 0 {
			t.Fatalf("expired before it was due: %+v", s)
		}
	})
}

func TestInhibitGet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t)
		send(t, b, "1", "2")
		c := connect(t, b, "")
		held := receive(t, c, "1")
		if err := b.InhibitGet(queue, true); err != nil {
			t.Fatal(err)
		}
		s := open(t, c)
		_, err := s.Receive(t.Context())
		wantErr(t, err, jms.ErrBusy)
		commit(t, held)
		if err := b.InhibitGet(queue, false); err != nil {
			t.Fatal(err)
		}
		receiveOn(t, s, "2")
	})
}

func TestQuiesceAndRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t)
		send(t, b, "1", "2", "3")
		if _, err := b.Send(jms.Outgoing{Queue: queue, NonPersistent: true}); err != nil {
			t.Fatal(err)
		}
		c := connect(t, b, "")
		one, two := receive(t, c, "1"), receive(t, c, "2")
		b.Quiesce()
		_, err := open(t, c).Receive(t.Context())
		wantErr(t, err, jms.ErrQuiescing)
		_, err = b.Connect(t.Context(), jms.Subscription{Queue: queue})
		wantErr(t, err, jms.ErrConnectionLost)
		commit(t, one)
		b.Restart()
		<-c.Done()
		wantErr(t, c.Err(), jms.ErrConnectionLost)
		wantErr(t, two.Commit(t.Context()), jms.ErrConnectionLost)
		browse(t, b, "2 3")
		if s := stats(t, b); s.Lost != 1 || s.Connections != 0 {
			t.Fatalf("%+v", s)
		}
		receive(t, connect(t, b, ""), "2")
	})
}

func TestCloseRefusesEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t)
		if _, err := b.SendAfter(time.Hour, jms.Outgoing{Queue: queue}); err != nil {
			t.Fatal(err)
		}
		c := connect(t, b, "")
		b.Close()
		b.Close()
		<-c.Done()
		_, err := b.Send(jms.Outgoing{Queue: queue})
		wantErr(t, err, jms.ErrConnectionLost)
		_, err = b.Connect(t.Context(), jms.Subscription{Queue: queue})
		wantErr(t, err, jms.ErrConnectionLost)
	})
}

// TestReceivesAreCounted is what a test of "never two Receives at once" (R1.02) stands on.
func TestReceivesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t)
		c := connect(t, b, "")
		send(t, b, "0")
		receive(t, c, "0")
		if s := stats(t, b); s.MaxReceives != 1 {
			t.Fatalf("%+v", s)
		}
		for range 2 {
			s := open(t, c)
			go func() { _, _ = s.Receive(t.Context()) }()
		}
		synctest.Wait()
		send(t, b, "1", "2")
		synctest.Wait()
		if s := stats(t, b); s.MaxReceives != 2 || s.MaxUnsettled != 3 || s.Received != 3 {
			t.Fatalf("%+v", s)
		}
	})
}
