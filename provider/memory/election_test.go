package memory_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/memory"
)

var sac = memory.Queue{Name: queue, SingleActiveConsumer: true}

func awaitActive(t testing.TB, c jms.Connection) {
	t.Helper()
	if err := c.(jms.Elector).AwaitActive(t.Context()); err != nil {
		t.Fatalf("AwaitActive: %v", err)
	}
}

func TestSecondReaderIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t)
		sub := jms.Subscription{Queue: queue, Client: "two", Logger: slog.Default()}
		one := connect(t, b, "one")
		_, err := b.Connect(t.Context(), sub)
		wantErr(t, err, jms.ErrConfig)
		for _, part := range []string{`"one"`, "SingleActiveConsumer", "Shared"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("the error does not say %s: %v", part, err)
			}
		}
		_ = one.Close(t.Context())
		two := connect(t, b, "two") // a closed one does not count
		if _, err := b.Break(queue, memory.Loss{Broker: time.Minute}); err != nil {
			t.Fatal(err)
		}
		<-two.Done()
		connect(t, b, "three") // nor a dead one that the broker has not noticed
		if s := stats(t, b); s.Connections != 2 {
			t.Fatalf("%+v", s)
		}
		sub.SingleActiveConsumer = true
		_, err = b.Connect(t.Context(), sub)
		wantErr(t, err, jms.ErrConfig)
	})
}

func TestTwoReadersOfASharedQueueTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, memory.Queue{Name: queue, Shared: true})
		var got [2]int
		for i := range 2 {
			c := connect(t, b, "")
			if _, ok := c.(jms.Elector); ok {
				t.Fatal("a connection to a queue without single active consumer is an Elector")
			}
			s := open(t, c)
			go func() {
				for {
					if _, err := s.Receive(t.Context()); err != nil {
						return
					}
					got[i]++
					_ = s.Commit(t.Context())
				}
			}()
		}
		for range 10 {
			synctest.Wait()
			send(t, b, "x")
		}
		synctest.Wait()
		if got != [2]int{5, 5} {
			t.Fatalf("shares %v", got)
		}
	})
}

func TestStandbyTakesOver(t *testing.T) {
	for name, end := range map[string]func(b *memory.Broker, active jms.Connection){
		"close": func(_ *memory.Broker, active jms.Connection) { _ = active.Close(context.Background()) },
		"break": func(b *memory.Broker, _ jms.Connection) {
			rs, _ := b.Readers(queue)
			rs[0].Break(memory.Loss{})
		},
		"role lost": func(b *memory.Broker, _ jms.Connection) {
			rs, _ := b.Readers(queue)
			rs[0].LoseRole(0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBroker(t, sac)
				send(t, b, "1", "2", "3")
				a, standby, third := connect(t, b, "a"), connect(t, b, "b"), connect(t, b, "c")
				awaitActive(t, a)
				receive(t, a, "1")
				start := time.Now()
				time.AfterFunc(time.Second, func() { end(b, a) })
				awaitActive(t, standby)
				if since := time.Since(start); since != time.Second {
					t.Fatalf("active after %v", since)
				}
				receive(t, standby, "1") // what the active one held comes first
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				wantErr(t, third.(jms.Elector).AwaitActive(ctx), context.DeadlineExceeded)
				rs, err := b.Readers(queue)
				if err != nil || len(rs) != 2 || !rs[0].Active() || rs[0].Client() != "b" || rs[1].Active() {
					t.Fatalf("readers %v, %v", rs, err)
				}
			})
		})
	}
}

func TestStandbyReceivesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, sac)
		send(t, b, "1", "2")
		a := connect(t, b, "a")
		awaitActive(t, a)
		receive(t, a, "1")
		s := open(t, connect(t, b, "b"))
		receiveNone(t, s)
		go func() {
			time.Sleep(time.Second)
			_ = a.Close(t.Context())
		}()
		receiveOn(t, s, "1") // what was held is back before the role goes over
	})
}

func TestClosedStandbyStopsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, sac)
		a, standby := connect(t, b, "a"), connect(t, b, "b")
		awaitActive(t, a)
		time.AfterFunc(time.Second, func() { _ = standby.Close(t.Context()) })
		wantErr(t, standby.(jms.Elector).AwaitActive(t.Context()), jms.ErrConnectionLost)
		if s := stats(t, b); s.Connections != 1 {
			t.Fatalf("%+v", s)
		}
	})
}

// TestRoleLostFirst is a lock on a socket of its own: the next instance is active while the former one still works (H5).
func TestRoleLostFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, sac, memory.LikeIBMMQ())
		send(t, b, "1", "2", "3", "4")
		a, standby := connect(t, b, "a"), connect(t, b, "b")
		awaitActive(t, a)
		one, two := receive(t, a, "1"), receive(t, a, "2")
		rs, err := b.Readers(queue)
		if err != nil {
			t.Fatal(err)
		}
		rs[0].LoseRole(10 * time.Second)
		awaitActive(t, standby)
		receive(t, standby, "3")
		commit(t, one) // not noticed: the former one goes on
		receive(t, a, "4")
		if clean, err := standby.(jms.CleanStarter).CleanStart(t.Context()); clean || err != nil {
			t.Fatalf("clean %t, %v while the former instance holds messages", clean, err)
		}
		<-a.Done()
		wantErr(t, a.Err(), jms.ErrConnectionLost)
		wantErr(t, two.Commit(t.Context()), jms.ErrConnectionLost)
		browse(t, b, "")
		if err := a.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		browse(t, b, "2 4")
		if clean, err := standby.(jms.CleanStarter).CleanStart(t.Context()); !clean || err != nil {
			t.Fatalf("clean %t, %v", clean, err)
		}
	})
}

func TestOptionalInterfacesAreThereOrNot(t *testing.T) {
	for name, c := range map[string]struct {
		options              []memory.Option
		elector, inquire, cs bool
	}{
		"plain":         {nil, false, true, true},
		"single active": {[]memory.Option{sac}, true, true, true},
		"IBM MQ":        {[]memory.Option{sac, memory.LikeIBMMQ()}, true, true, true},
		"RabbitMQ":      {[]memory.Option{sac, memory.LikeRabbitMQ()}, false, false, false},
		"quorum":        {[]memory.Option{memory.LikeQuorum()}, false, false, false},
	} {
		conn := connect(t, newBroker(t, c.options...), "")
		_, elector := conn.(jms.Elector)
		_, inquire := conn.(jms.Inquirer)
		_, cs := conn.(jms.CleanStarter)
		_, predecessor := conn.(jms.Predecessor)
		_, check := conn.(jms.QueueChecker)
		if elector != c.elector || predecessor != c.elector || inquire != c.inquire || cs != c.cs || !check {
			t.Errorf("%s: Elector %t, Predecessor %t, Inquirer %t, CleanStarter %t, QueueChecker %t", name, elector, predecessor, inquire, cs, check)
		}
	}
}

func TestBackoutAndCheckQueue(t *testing.T) {
	b := newBroker(t, memory.Queue{Name: queue, BackoutQueue: "BACKOUT", BackoutThreshold: 5}, memory.Queue{Name: "BACKOUT"})
	c := connect(t, b, "")
	q, n, err := c.(jms.Inquirer).Backout(t.Context())
	if q != "BACKOUT" || n != 5 || err != nil {
		t.Errorf("Backout: %q, %d, %v", q, n, err)
	}
	if err := c.(jms.QueueChecker).CheckQueue(t.Context(), "BACKOUT"); err != nil {
		t.Error(err)
	}
	wantErr(t, c.(jms.QueueChecker).CheckQueue(t.Context(), "NONE"), jms.ErrConfig)
}
