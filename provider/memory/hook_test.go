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

// once returns a hook that answers err to the first call of this kind, before or after its effect.
func once(kind memory.CallKind, after bool, err error) memory.Hook {
	done := false
	return func(_ context.Context, c memory.Call) error {
		if done || c.Kind != kind || c.After != after {
			return nil
		}
		done = true
		return err
	}
}

func TestHookOutcomesComeTrue(t *testing.T) {
	other := errors.New("other")
	for _, c := range []struct {
		name    string
		after   bool
		err     error
		want    error
		ready   string // afterwards
		depth   int
		sent    int
		goesOn  bool // the same session can be used
		connEnd bool
	}{
		{"not done, connection lost", false, jms.ErrConnectionLost, jms.ErrConnectionLost, "1", 1, 0, false, true},
		{"not done, session lost", false, jms.ErrSessionLost, jms.ErrSessionLost, "1", 1, 0, false, false},
		{"not done, unknown", false, jms.ErrCommitUnknown, jms.ErrCommitUnknown, "1", 1, 0, false, false},
		{"rolled back", false, jms.ErrRolledBack, jms.ErrRolledBack, "1", 1, 0, false, false},
		{"busy", false, jms.ErrBusy, jms.ErrBusy, "", 1, 0, true, false},
		{"done, unknown", true, jms.ErrCommitUnknown, jms.ErrCommitUnknown, "", 0, 1, false, false},
		{"done, connection lost", true, jms.ErrConnectionLost, jms.ErrCommitUnknown, "", 0, 1, false, true},
		{"done, session lost", true, jms.ErrSessionLost, jms.ErrCommitUnknown, "", 0, 1, false, false},
		{"done, other", true, other, jms.ErrCommitUnknown, "", 0, 1, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBroker(t, memory.Queue{Name: "OUT"})
				send(t, b, "1")
				conn := connect(t, b, "")
				s := receive(t, conn, "1")
				b.SetHook(once(memory.CallCommit, c.after, c.err))
				err := s.Commit(t.Context(), jms.Outgoing{Queue: "OUT"})
				wantErr(t, err, c.want)
				wantErr(t, err, c.err)
				browse(t, b, c.ready)
				if b.Depth(queue) != c.depth || b.Depth("OUT") != c.sent {
					t.Fatalf("depths %d, %d; want %d, %d", b.Depth(queue), b.Depth("OUT"), c.depth, c.sent)
				}
				if err := s.Commit(t.Context()); (err == nil) != c.goesOn {
					t.Fatalf("the next commit: %v", err)
				}
				if lost := conn.Err() != nil; lost != c.connEnd {
					t.Fatalf("connection: %v", conn.Err())
				}
				if err := s.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

func TestReceiveTakenAndReplyLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, memory.Profile{ReturnDelay: 10 * time.Second})
		send(t, b, "1", "2")
		c := connect(t, b, "")
		s := open(t, c)
		b.SetHook(once(memory.CallReceive, true, jms.ErrSessionLost))
		m, err := s.Receive(t.Context())
		wantErr(t, err, jms.ErrSessionLost)
		if m != nil {
			t.Fatal("a message beside an error")
		}
		receive(t, c, "2")
		time.Sleep(10 * time.Second)
		receive(t, c, "1")

		send(t, b, "3")
		b.SetHook(once(memory.CallReceive, true, jms.ErrBusy)) // nothing was done then
		_, err = open(t, c).Receive(t.Context())
		wantErr(t, err, jms.ErrBusy)
		receive(t, c, "3")
	})
}

func TestHookDelaysAndHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t)
		send(t, b, "1")
		c := connect(t, b, "")
		s := receive(t, c, "1")
		start := time.Now()
		b.SetHook(func(ctx context.Context, c memory.Call) error {
			if c.Kind == memory.CallCommit && !c.After {
				time.Sleep(time.Second)
			}
			return nil
		})
		commit(t, s)
		if since := time.Since(start); since != time.Second {
			t.Fatalf("committed after %v", since)
		}
		send(t, b, "2")
		receiveOn(t, s, "2")
		b.SetHook(func(ctx context.Context, c memory.Call) error {
			if c.Kind != memory.CallCommit {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantErr(t, s.Commit(ctx), context.DeadlineExceeded)
		b.SetHook(nil)
		commit(t, s) // nothing was done before
	})
}

func TestHookSeesEveryCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, sac)
		send(t, b, "1", "2")
		var seen []string
		b.SetHook(func(_ context.Context, c memory.Call) error {
			if c.Queue != queue || c.Client != "me" {
				t.Errorf("%+v", c)
			}
			line := c.Kind.String()
			if c.After {
				line += " done"
			}
			if c.Message != nil {
				line += " " + string(c.Message.Body)
			}
			seen = append(seen, line)
			return nil
		})
		c := connect(t, b, "me")
		awaitActive(t, c)
		s := receive(t, c, "1")
		commit(t, s)
		receiveOn(t, s, "2")
		rollback(t, s)
		_ = s.Close(t.Context())
		_ = c.Close(t.Context())
		want := []string{
			"Connect", "Connect done", "AwaitActive", "AwaitActive done", "OpenSession", "OpenSession done", "Receive", "Receive done 1",
			"Commit 1", "Commit done 1", "Receive", "Receive done 2", "Rollback 2", "Rollback done 2",
			"Session.Close", "Session.Close done", "Connection.Close", "Connection.Close done",
		}
		if len(seen) != len(want) {
			t.Fatalf("%q", seen)
		}
		for i := range want {
			if seen[i] != want[i] {
				t.Fatalf("call %d: %q, want %q", i, seen[i], want[i])
			}
		}
	})
}

func TestFailedConnectLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t)
		for _, after := range []bool{false, true} {
			b.SetHook(once(memory.CallConnect, after, jms.ErrConnectionLost))
			_, err := b.Connect(t.Context(), jms.Subscription{Queue: queue, Logger: slog.Default()})
			wantErr(t, err, jms.ErrConnectionLost)
			if s := stats(t, b); s.Connections != 0 {
				t.Fatalf("%+v", s)
			}
		}
		c := connect(t, b, "")
		b.SetHook(once(memory.CallOpenSession, true, jms.ErrBusy))
		_, err := c.OpenSession(t.Context())
		wantErr(t, err, jms.ErrBusy)
		if err := c.Err(); err != nil {
			t.Fatal(err)
		}
	})
}
