package memory_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/memory"
)

// push is a broker that sends four messages ahead and processes acknowledgements after a second.
func push() memory.Profile {
	p := memory.LikeRabbitMQ()
	p.Prefetch, p.AckDelay, p.ReturnDelay = 4, time.Second, 0
	return p
}

func TestPushHidesWhatItSentAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, push(), memory.Queue{Name: queue, Shared: true})
		send(t, b, "1", "2", "3", "4", "5", "6")
		a := connect(t, b, "a")
		browse(t, b, "1 2 3 4 5 6") // not before the first session
		one := receive(t, a, "1")
		browse(t, b, "5 6")
		other, err := b.Connect(t.Context(), jms.Subscription{Queue: queue, MaxInFlight: 1, Logger: slog.Default()})
		if err != nil {
			t.Fatal(err)
		}
		if n := other.Capabilities().MaxInFlight; n != 1 {
			t.Fatalf("MaxInFlight %d, want what was asked for", n)
		}
		receive(t, other, "5") // 2, 3 and 4 are hidden though nobody works on them
		commit(t, one)
		browse(t, b, "6") // the broker has not processed the acknowledgement
		time.Sleep(time.Second)
		synctest.Wait()
		browse(t, b, "")
		if s := stats(t, b); s.Settled != 1 || s.Unsettled != 5 {
			t.Fatalf("%+v", s)
		}
		if err := a.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		browse(t, b, "2 3 4 6")
		a = connect(t, b, "a")
		if m := receiveOn(t, open(t, a), "2"); !m.Redelivered || m.ID != "" || m.DeliveryCount != 0 {
			t.Fatalf("an innocent one that was only sent ahead: %+v", m)
		}
	})
}

// TestLostAcknowledgements: a commit that returned nil is undone, because the connection died before the broker read it (H7).
func TestLostAcknowledgements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, push(), memory.Queue{Name: "OUT"})
		send(t, b, "1", "2", "3")
		c := connect(t, b, "")
		s := receive(t, c, "1")
		commit(t, s, jms.Outgoing{Queue: "OUT"})
		time.Sleep(time.Second)
		synctest.Wait()
		receiveOn(t, s, "2")
		commit(t, s, jms.Outgoing{Queue: "OUT"})
		breakAll(t, b, memory.Loss{})
		browse(t, b, "2 3")
		if n := b.Depth("OUT"); n != 2 { // sends are there, though their message comes again
			t.Fatalf("depth of OUT: %d, want 2", n)
		}
	})
}

func TestOrderlyCloseLosesNoAcknowledgement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, push())
		send(t, b, "1", "2")
		c := connect(t, b, "")
		commit(t, receive(t, c, "1"))
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		browse(t, b, "2")
	})
}

// TestAckIntoADeadLinkSucceeds: nobody notices, and the message comes again.
func TestAckIntoADeadLinkSucceeds(t *testing.T) {
	for _, delay := range []time.Duration{0, time.Second} {
		t.Run(delay.String(), func(t *testing.T) { ackIntoADeadLink(t, delay) })
	}
}

func ackIntoADeadLink(t *testing.T, delay time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		p := push()
		p.AckDelay = delay
		b := newBroker(t, p, memory.Queue{Name: "OUT"})
		send(t, b, "1", "2", "3")
		c := connect(t, b, "")
		one, two := receive(t, c, "1"), receive(t, c, "2")
		breakAll(t, b, memory.Loss{Broker: time.Minute, Client: 10 * time.Second})
		commit(t, one)
		// sends need an answer
		wantErr(t, two.Commit(t.Context(), jms.Outgoing{Queue: "OUT"}), jms.ErrCommitUnknown)
		time.Sleep(time.Minute)
		synctest.Wait()
		browse(t, b, "1 2 3")
		if n := b.Depth("OUT"); n != 0 {
			t.Fatalf("depth of OUT: %d", n)
		}
	})
}

// TestNothingIsGivenBackAlone: a broker without RollbackInPlace closes the connection instead.
func TestNothingIsGivenBackAlone(t *testing.T) {
	for name, giveBack := range map[string]func(b *memory.Broker, s jms.Session, id string) error{
		"rollback": func(_ *memory.Broker, s jms.Session, _ string) error { return s.Rollback(context.Background()) },
		"close":    func(_ *memory.Broker, s jms.Session, _ string) error { return s.Close(context.Background()) },
		"take back": func(b *memory.Broker, s jms.Session, id string) error {
			return errors.Join(b.TakeBack(id), s.Commit(context.Background()))
		},
		"lose session": func(b *memory.Broker, s jms.Session, id string) error {
			return errors.Join(b.LoseSession(id, memory.Loss{}), s.Commit(context.Background()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBroker(t, push())
				ids := send(t, b, "1", "2", "3")
				c := connect(t, b, "")
				one := receive(t, c, "1")
				receive(t, c, "2")
				wantErr(t, giveBack(b, one, ids[0]), jms.ErrConnectionLost)
				<-c.Done()
				browse(t, b, "1 2 3")
			})
		})
	}
}
