package memory_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/memory"
)

func breakAll(t testing.TB, b *memory.Broker, l memory.Loss) {
	t.Helper()
	if n, err := b.Break(queue, l); n != 1 || err != nil {
		t.Fatalf("Break: %d, %v", n, err)
	}
}

func cleanStart(t testing.TB, c jms.Connection, want bool) {
	t.Helper()
	if clean, err := c.(jms.CleanStarter).CleanStart(t.Context()); clean != want || err != nil {
		t.Fatalf("CleanStart: %t, %v; want %t", clean, err, want)
	}
}

func TestBrokenConnectionGivesBackAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t)
		send(t, b, "1", "2", "3")
		c := connect(t, b, "")
		two := receive(t, c, "1")
		commit(t, two)
		two, three := receive(t, c, "2"), receive(t, c, "3")
		if err := c.Err(); err != nil {
			t.Fatal(err)
		}
		breakAll(t, b, memory.Loss{})
		browse(t, b, "2 3")
		<-c.Done()
		wantErr(t, c.Err(), jms.ErrConnectionLost)
		wantErr(t, two.Commit(t.Context()), jms.ErrConnectionLost)
		wantErr(t, three.Rollback(t.Context()), jms.ErrConnectionLost)
		_, err := c.OpenSession(t.Context())
		wantErr(t, err, jms.ErrConnectionLost)
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		c = connect(t, b, "")
		cleanStart(t, c, true)
		receive(t, c, "2")
	})
}

// TestLoseReceiveOfALostConnection: what is lost already, and not noticed, is no Receive that can be lost.
func TestLoseReceiveOfALostConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t)
		c := connect(t, b, "")
		s := open(t, c)
		failed := make(chan error, 1)
		go func() {
			_, err := s.Receive(context.Background())
			failed <- err
		}()
		synctest.Wait()
		breakAll(t, b, memory.Loss{Client: time.Second})
		if n, err := b.LoseReceive(queue, memory.Loss{}); n != 0 || err != nil {
			t.Fatalf("LoseReceive: %d, %v; want 0", n, err)
		}
		wantErr(t, <-failed, jms.ErrConnectionLost)
	})
}

// TestLateReturn: the broker notices late, and what comes after the lost messages is received before them (H1, H4).
func TestLateReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t)
		send(t, b, "1", "2", "3", "4")
		c := connect(t, b, "")
		one, two := receive(t, c, "1"), receive(t, c, "2")
		breakAll(t, b, memory.Loss{Broker: 10 * time.Second})
		for _, s := range []jms.Session{one, two} { // closing does not help: nothing reaches the broker
			if err := s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		wantErr(t, c.Close(t.Context()), jms.ErrConnectionLost)
		c = connect(t, b, "")
		cleanStart(t, c, false)
		receive(t, c, "3")
		if s := stats(t, b); s.Unsettled != 3 || s.Connections != 2 {
			t.Fatalf("%+v", s)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		cleanStart(t, c, true)
		browse(t, b, "1 2 4")
	})
}

// TestLostReceiveTakesAMessage: a Receive that waited when the link died is still given the next message, which nobody knows (H1).
func TestLostReceiveTakesAMessage(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, b *memory.Broker){
		"connection": func(t *testing.T, b *memory.Broker) { breakAll(t, b, memory.Loss{Broker: 10 * time.Second}) },
		"session": func(t *testing.T, b *memory.Broker) {
			if n, err := b.LoseReceive(queue, memory.Loss{Broker: 10 * time.Second}); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBroker(t, memory.Queue{Name: queue, Shared: true})
				s := open(t, connect(t, b, "a"))
				go func() {
					time.Sleep(time.Second)
					lose(t, b)
				}()
				if _, err := s.Receive(t.Context()); !jms.EndsSession(err) {
					t.Fatalf("Receive: %v", err)
				}
				send(t, b, "1", "2", "3")
				browse(t, b, "2 3")
				if held, err := b.Held(queue); bodies(held) != "1" || err != nil {
					t.Fatalf("held %v, %v", held, err)
				}
				time.Sleep(10 * time.Second)
				synctest.Wait()
				browse(t, b, "1 2 3")
			})
		})
	}
}

// TestUnnoticedByTheClient: the link is dead, calls do not return until the client notices, and the messages may be back before (H3, H18).
func TestUnnoticedByTheClient(t *testing.T) {
	for name, l := range map[string]memory.Loss{
		"back before": {Broker: memory.AtOnce, Client: 10 * time.Second},
		"back after":  {Broker: 20 * time.Second, Client: 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBroker(t)
				send(t, b, "1", "2")
				c := connect(t, b, "")
				one, two := receive(t, c, "1"), receive(t, c, "2")
				waiting := open(t, c)
				received := make(chan error, 1)
				start := time.Now()
				go func() {
					_, err := waiting.Receive(t.Context())
					received <- err
				}()
				synctest.Wait()
				breakAll(t, b, l)
				want := "1 2"
				if l.Broker > 0 {
					want = ""
				}
				browse(t, b, want)
				select {
				case <-c.Done():
					t.Fatal("noticed at once")
				default:
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				committed := make(chan error, 1)
				go func() { committed <- one.Commit(ctx) }()
				wantErr(t, two.Rollback(ctx), jms.ErrConnectionLost)
				wantErr(t, <-committed, jms.ErrCommitUnknown)
				wantErr(t, <-received, jms.ErrConnectionLost)
				<-c.Done()
				if since := time.Since(start); since != 10*time.Second {
					t.Fatalf("noticed after %v", since)
				}
			})
		})
	}
}

func TestCallIntoADeadLinkEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t)
		send(t, b, "1")
		c := connect(t, b, "")
		s := receive(t, c, "1")
		breakAll(t, b, memory.Loss{Broker: time.Hour, Client: time.Hour})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantErr(t, s.Commit(ctx), jms.ErrCommitUnknown)
		<-c.Done() // what was the client's first sign
	})
}

func TestReceiveOverADeadLinkNeverSaysThatNothingIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t)
		s := open(t, connect(t, b, ""))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go func() {
			time.Sleep(time.Second)
			breakAll(t, b, memory.Loss{Broker: time.Hour, Client: time.Hour})
			send(t, b, "1") // goes to the dead one
		}()
		_, err := s.Receive(ctx)
		wantErr(t, err, jms.ErrConnectionLost)
		if st := stats(t, b); st.Unsettled != 1 {
			t.Fatalf("%+v", st)
		}
	})
}

func TestCloseEndsCallsIntoADeadLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t)
		send(t, b, "1")
		c := connect(t, b, "")
		s, waiting := receive(t, c, "1"), open(t, c)
		errs := make(chan error, 2)
		go func() {
			_, err := waiting.Receive(t.Context())
			errs <- err
		}()
		synctest.Wait()
		breakAll(t, b, memory.Loss{Broker: memory.AtOnce, Client: time.Hour})
		go func() { errs <- s.Commit(t.Context()) }()
		synctest.Wait()
		_ = c.Close(t.Context())
		wantErr(t, <-errs, jms.ErrConnectionLost)
		wantErr(t, <-errs, jms.ErrConnectionLost)
	})
}

func TestLostSessionLeavesTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t)
		ids := send(t, b, "1", "2", "3")
		c := connect(t, b, "")
		one, two := receive(t, c, "1"), receive(t, c, "2")
		if err := b.LoseSession(ids[0], memory.Loss{Broker: 10 * time.Second}); err != nil {
			t.Fatal(err)
		}
		cleanStart(t, c, false)
		wantErr(t, one.Commit(t.Context()), jms.ErrSessionLost)
		if err := one.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		commit(t, two)
		three := receive(t, c, "3")
		start := time.Now()
		receiveOn(t, two, "1") // waits, and is woken when the broker notices
		if since := time.Since(start); since != 10*time.Second {
			t.Fatalf("came back after %v", since)
		}
		commit(t, three)
		if err := b.LoseSession(ids[1], memory.Loss{}); err == nil {
			t.Fatal("a session that holds a settled message was found")
		}
	})
}

// TestLostSessionOutlivesItsConnection: it has a link of its own, and closing the others does not make the broker notice.
func TestLostSessionOutlivesItsConnection(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, b *memory.Broker, c jms.Connection){
		"close": func(t *testing.T, _ *memory.Broker, c jms.Connection) {
			wantErr(t, c.Close(t.Context()), jms.ErrSessionLost)
		},
		"break": func(t *testing.T, b *memory.Broker, _ jms.Connection) {
			breakAll(t, b, memory.Loss{Broker: memory.AtOnce})
		},
		"restart": func(_ *testing.T, b *memory.Broker, _ jms.Connection) { b.Restart() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBroker(t)
				ids := send(t, b, "1", "2", "3")
				c := connect(t, b, "")
				receive(t, c, "1")
				receive(t, c, "2")
				if err := b.LoseSession(ids[0], memory.Loss{Broker: 10 * time.Second}); err != nil {
					t.Fatal(err)
				}
				end(t, b, c)
				c = connect(t, b, "")
				if name == "restart" { // the broker has forgotten them all
					cleanStart(t, c, true)
					browse(t, b, "1 2 3")
					return
				}
				cleanStart(t, c, false)
				browse(t, b, "2 3")
				receive(t, c, "2")
				time.Sleep(10 * time.Second)
				synctest.Wait()
				cleanStart(t, c, true)
				browse(t, b, "1 3")
				if s := stats(t, b); s.Connections != 1 || s.Unsettled != 1 {
					t.Fatalf("%+v", s)
				}
			})
		})
	}
}

// TestTakenBackInSilence: the message comes again while its holder still works on it (H3).
func TestTakenBackInSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, memory.Queue{Name: "OUT"})
		ids := send(t, b, "1", "2", "3")
		c := connect(t, b, "")
		one, two := receive(t, c, "1"), receive(t, c, "2")
		for _, id := range ids[:2] {
			if err := b.TakeBack(id); err != nil {
				t.Fatal(err)
			}
		}
		again := receive(t, c, "1")
		wantErr(t, one.Commit(t.Context(), jms.Outgoing{Queue: "OUT"}), jms.ErrRolledBack)
		if n := b.Depth("OUT"); n != 0 {
			t.Fatalf("depth of OUT: %d", n)
		}
		wantErr(t, one.Commit(t.Context()), jms.ErrRolledBack)
		if err := one.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		commit(t, again)
		rollback(t, two) // there is nothing left to give back, and the session is clean
		receiveOn(t, two, "2")
		if err := b.TakeBack(ids[0]); err == nil {
			t.Fatal("a settled message was found")
		}
	})
}

// TestAnswerCrossesALoss: the message was on its way to the client when the connection broke.
func TestAnswerCrossesALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t)
		s := open(t, connect(t, b, ""))
		got := make(chan error, 1)
		go func() {
			_, err := s.Receive(t.Context())
			got <- err
		}()
		synctest.Wait()
		ids := send(t, b, "1")
		if err := b.TakeBack(ids[0]); err != nil {
			t.Fatal(err)
		}
		if err := <-got; err != nil { // nil if the client was faster
			wantErr(t, err, jms.ErrRolledBack)
		}
		browse(t, b, "1")
	})
}
