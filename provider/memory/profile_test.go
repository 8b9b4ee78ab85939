package memory_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/memory"
)

func TestCapabilitiesOfTheProfiles(t *testing.T) {
	for _, c := range []struct {
		name    string
		profile memory.Profile
		queue   memory.Queue
		want    jms.Capabilities
	}{
		{"plain", memory.Profile{}, memory.Queue{Name: queue}, jms.Capabilities{
			Broker: "memory", CheapSessions: true, AtomicSends: true, RollbackInPlace: true, ReturnsAtOnce: true, StableIDs: true, DeliveryCount: true,
		}},
		{"IBM MQ", memory.LikeIBMMQ(), sac, jms.Capabilities{
			Broker: "memory like IBM MQ", MaxInFlight: 1000, AtomicSends: true, RollbackInPlace: true, ReturnDelay: 15 * time.Second, StableIDs: true,
		}},
		{"late, single active", memory.Profile{ReturnDelay: 15 * time.Second}, sac, jms.Capabilities{
			Broker: "memory", CheapSessions: true, AtomicSends: true, RollbackInPlace: true, ReturnDelay: 15 * time.Second, StableIDs: true, DeliveryCount: true,
		}},
		{"RabbitMQ", memory.LikeRabbitMQ(), memory.Queue{Name: queue}, jms.Capabilities{
			Broker: "memory like RabbitMQ", MaxInFlight: 256, CheapSessions: true, ReturnDelay: 30 * time.Second, MaxHold: 15 * time.Minute, Push: true,
		}},
		{"RabbitMQ, single active", memory.LikeRabbitMQ(), sac, jms.Capabilities{
			Broker: "memory like RabbitMQ", MaxInFlight: 256, CheapSessions: true, ReturnsAtOnce: true, MaxHold: 15 * time.Minute, Push: true,
		}},
		{"quorum, single active", memory.LikeQuorum(), sac, jms.Capabilities{
			Broker: "memory like a quorum queue", MaxInFlight: 256, CheapSessions: true, ReturnsAtOnce: true, MaxHold: 15 * time.Minute, Push: true, DeliveryCount: true,
		}},
	} {
		if got := connect(t, newBroker(t, c.profile, c.queue), "").Capabilities(); got != c.want {
			t.Errorf("%s:\n got %+v\nwant %+v", c.name, got, c.want)
		}
	}
}

func TestRollbackToTail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, memory.Profile{Rollback: memory.RollbackToTail})
		send(t, b, "1", "2", "3")
		c := connect(t, b, "")
		if c.Capabilities().RollbackInPlace {
			t.Fatal("RollbackInPlace is declared")
		}
		one := receive(t, c, "1")
		receive(t, c, "2")
		rollback(t, one)
		browse(t, b, "3 1")
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		browse(t, b, "2 3 1")
	})
}

// TestReturnOrder: two connections, the later one closed first (brokers that put returned messages at the head as they come).
func TestReturnOrder(t *testing.T) {
	for _, inReturnOrder := range []bool{false, true} {
		t.Run(fmt.Sprint(inReturnOrder), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := push()
				p.Prefetch, p.ReturnOrder = 2, inReturnOrder
				b := newBroker(t, p, memory.Queue{Name: queue, Shared: true})
				send(t, b, "1", "2", "3", "4", "5")
				a, c := connect(t, b, "a"), connect(t, b, "c")
				receive(t, a, "1")
				receive(t, c, "3")
				_ = c.Close(t.Context())
				_ = a.Close(t.Context())
				if inReturnOrder {
					browse(t, b, "3 4 1 2 5")
				} else {
					browse(t, b, "1 2 3 4 5")
				}
			})
		})
	}
}

// TestSingleActiveConsumerReturnsFirst: a half-open link delays the takeover, but nobody overtakes (H4).
func TestSingleActiveConsumerReturnsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, sac, memory.LikeRabbitMQ())
		send(t, b, "1", "2", "3")
		a := connect(t, b, "a")
		receive(t, a, "1")
		standby := open(t, connect(t, b, "b"))
		breakClient(t, b, "a")
		receiveNone(t, standby)
		start := time.Now()
		receiveOn(t, standby, "1")
		if since := time.Since(start); since != 30*time.Second-2*time.Millisecond { // one was waited before
			t.Fatalf("took over after %v", since)
		}
	})
}

func breakClient(t testing.TB, b *memory.Broker, client string) {
	t.Helper()
	rs, err := b.Readers(queue)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rs {
		if r.Client() == client && !r.Break(memory.Loss{}) {
			t.Fatal("was broken before")
		}
	}
}

// TestLockIsFreeBeforeTheMessages: the successor is active at once and reads past what the dead one holds (H5).
func TestLockIsFreeBeforeTheMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, sac, memory.LikeIBMMQ())
		send(t, b, "1", "2", "3")
		a := connect(t, b, "a")
		awaitActive(t, a)
		receive(t, a, "1")
		breakAll(t, b, memory.Loss{})
		c := connect(t, b, "b")
		awaitActive(t, c)
		cleanStart(t, c, false)
		receive(t, c, "2")
		time.Sleep(15 * time.Second)
		synctest.Wait()
		cleanStart(t, c, true)
		browse(t, b, "1 3")
	})
}

// TestPushGoesOn after receiving was inhibited for a while.
func TestPushGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, push())
		c := connect(t, b, "")
		open(t, c)
		if err := b.InhibitGet(queue, true); err != nil {
			t.Fatal(err)
		}
		send(t, b, "1", "2")
		browse(t, b, "1 2")
		if err := b.InhibitGet(queue, false); err != nil {
			t.Fatal(err)
		}
		browse(t, b, "")
		receive(t, c, "1")
	})
}

func TestHangingCallIsDeafToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, memory.LikeIBMMQ())
		send(t, b, "1")
		s := receive(t, connect(t, b, ""), "1")
		b.SetHook(func(ctx context.Context, c memory.Call) error {
			select {
			case <-ctx.Done():
			case <-time.After(time.Minute):
			}
			return nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		_ = s.Commit(ctx)
		if since := time.Since(start); since < time.Minute {
			t.Fatalf("Commit returned after %v, with its context", since)
		}
	})
}

// TestHeldTooLong is a broker that takes back what is held for long (H10).
func TestHeldTooLong(t *testing.T) {
	t.Run("pull", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBroker(t, memory.Profile{HoldTimeout: time.Hour})
			send(t, b, "1", "2", "3")
			c := connect(t, b, "")
			one := receive(t, c, "1")
			time.Sleep(30 * time.Minute)
			two, three := receive(t, c, "2"), receive(t, c, "3")
			time.Sleep(20 * time.Minute)
			commit(t, two)
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			browse(t, b, "1")
			wantErr(t, one.Commit(t.Context()), jms.ErrRolledBack)
			time.Sleep(30 * time.Minute)
			synctest.Wait()
			browse(t, b, "1 3")
			wantErr(t, three.Commit(t.Context()), jms.ErrRolledBack)
			receiveOn(t, two, "1")
			time.Sleep(2 * time.Hour)
			wantErr(t, two.Commit(t.Context()), jms.ErrRolledBack)
		})
	})
	t.Run("push", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBroker(t, memory.LikeRabbitMQ())
			send(t, b, "1", "2", "3")
			c := connect(t, b, "")
			receive(t, c, "1")
			receive(t, c, "2")
			start := time.Now()
			<-c.Done()
			if since := time.Since(start); since != 30*time.Minute {
				t.Fatalf("closed after %v", since)
			}
			browse(t, b, "1 2 3")
		})
	})
}

func TestDeafCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, memory.LikeIBMMQ())
		c := connect(t, b, "")
		s := open(t, c)
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		_, err := s.Receive(ctx)
		wantErr(t, err, context.DeadlineExceeded)
		if since := time.Since(start); since != 2*time.Second {
			t.Fatalf("Receive ended after %v, want the end of its slice", since)
		}
		time.AfterFunc(1800*time.Millisecond, func() { send(t, b, "1") })
		ctx, cancel = context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		m, err := s.Receive(ctx) // a message that comes after the end of the context
		if err != nil || string(m.Body) != "1" {
			t.Fatal(m, err)
		}
		breakAll(t, b, memory.Loss{Client: time.Minute})
		start = time.Now()
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantErr(t, s.Commit(ctx), jms.ErrCommitUnknown)
		if since := time.Since(start); since != time.Minute {
			t.Fatalf("Commit ended after %v, want when the client noticed", since)
		}
	})
}

func TestSessionLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := memory.LikeIBMMQ()
		p.MaxSessions = 2
		b := newBroker(t, p)
		send(t, b, "1")
		c := connect(t, b, "")
		one := receive(t, c, "1")
		open(t, c)
		_, err := c.OpenSession(t.Context())
		wantErr(t, err, jms.ErrBusy)
		breakAll(t, b, memory.Loss{})
		_ = one.Close(t.Context())
		c = connect(t, b, "")
		_, err = c.OpenSession(t.Context())
		wantErr(t, err, jms.ErrBusy) // the dead ones count until the broker notices
		time.Sleep(15 * time.Second)
		synctest.Wait()
		receive(t, c, "1")
	})
}

func TestRestartMarksAll(t *testing.T) {
	for _, p := range []memory.Profile{memory.LikeRabbitMQ(), memory.LikeQuorum()} {
		t.Run(p.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p.Prefetch = 1
				b := newBroker(t, p)
				send(t, b, "1", "2")
				receive(t, connect(t, b, ""), "1")
				b.Restart()
				c := connect(t, b, "")
				s := receive(t, c, "1")
				commit(t, s)
				if m := receiveOn(t, s, "2"); m.Redelivered != p.MarkAll {
					t.Fatalf("redelivered %t, want %t", m.Redelivered, p.MarkAll)
				}
			})
		})
	}
}

// TestEveryProfileDeliversAll is the same work on each: conservation and order with one reader, ended in order.
func TestEveryProfileDeliversAll(t *testing.T) {
	for _, p := range []memory.Profile{{}, memory.LikeIBMMQ(), memory.LikeRabbitMQ(), memory.LikeQuorum()} {
		t.Run(p.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBroker(t, p, memory.Queue{Name: "OUT"})
				const n = 1000
				go func() {
					for i := range n {
						send(t, b, fmt.Sprint(i))
						if i%100 == 0 {
							time.Sleep(time.Second)
						}
					}
				}()
				c := connect(t, b, "")
				idle, held := make(chan jms.Session, 8), make(chan jms.Session, 8)
				for range cap(idle) {
					idle <- open(t, c)
				}
				go func() {
					for s := range held {
						if err := s.Commit(t.Context(), jms.Outgoing{Queue: "OUT"}); err != nil {
							t.Error(err)
						}
						idle <- s
					}
				}()
				for i := range n {
					s := <-idle
					receiveOn(t, s, fmt.Sprint(i))
					held <- s
				}
				close(held)
				for range cap(idle) {
					<-idle
				}
				if err := c.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				if s := stats(t, b); s.Depth != 0 || s.Settled != n || s.Redelivered != 0 || b.Depth("OUT") != n {
					t.Fatalf("%+v, OUT %d", s, b.Depth("OUT"))
				}
			})
		})
	}
}
