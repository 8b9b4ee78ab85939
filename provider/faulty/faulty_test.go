package faulty_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/faulty"
	"github.com/keyseq/keyseq/provider/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const queue = "PAYMENTS"

func newBroker(t testing.TB, options ...memory.Option) *memory.Broker {
	t.Helper()
	b, err := memory.NewBroker(append(options, memory.Queue{Name: queue, Shared: true}, memory.Queue{Name: "OUT"})...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func send(t testing.TB, b *memory.Broker, bodies ...string) {
	t.Helper()
	for _, body := range bodies {
		if _, err := b.Send(jms.Outgoing{Queue: queue, Body: []byte(body)}); err != nil {
			t.Fatal(err)
		}
	}
}

func sub() jms.Subscription {
	return jms.Subscription{Queue: queue, Client: "me", Logger: slog.New(slog.DiscardHandler)}
}

// connect connects and closes at the end of the test.
func connect(t testing.TB, f jms.ConnectionFactory) jms.Connection {
	t.Helper()
	c, err := f.Connect(t.Context(), sub())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func open(t testing.TB, c jms.Connection) jms.Session {
	t.Helper()
	s, err := c.OpenSession(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func receiveOn(t testing.TB, s jms.Session, want string) {
	t.Helper()
	m, err := s.Receive(t.Context())
	if err != nil || string(m.Body) != want {
		t.Fatalf("Receive: %v, %v; want %q", m, err, want)
	}
}

func receive(t testing.TB, c jms.Connection, want string) jms.Session {
	t.Helper()
	s := open(t, c)
	receiveOn(t, s, want)
	return s
}

func wantErr(t testing.TB, err error, want ...error) {
	t.Helper()
	for _, w := range want {
		if !errors.Is(err, w) {
			t.Fatalf("error: %v, want %v", err, w)
		}
	}
}

func ready(t testing.TB, b *memory.Broker) string {
	t.Helper()
	ms, err := b.Browse(queue)
	if err != nil {
		t.Fatal(err)
	}
	var bodies []string
	for _, m := range ms {
		bodies = append(bodies, string(m.Body))
	}
	return strings.Join(bodies, " ")
}

func TestFailingCommit(t *testing.T) {
	refused := errors.New("refused")
	for _, c := range []struct {
		name  string
		rule  faulty.Rule
		want  []error
		ready string
		out   int
		loss  faulty.Loss
	}{
		{"lost connection", faulty.On(faulty.Commit).Return(jms.ErrConnectionLost), []error{jms.ErrConnectionLost}, "1 2", 0, faulty.ConnectionLost},
		{"lost session", faulty.On(faulty.Commit).Return(jms.ErrSessionLost), []error{jms.ErrSessionLost}, "1", 0, faulty.SessionLost},
		{"rolled back", faulty.On(faulty.Commit).Return(jms.ErrRolledBack), []error{jms.ErrRolledBack}, "1", 0, faulty.SessionLost},
		{"unknown, not done", faulty.On(faulty.Commit).Return(jms.ErrCommitUnknown), []error{jms.ErrCommitUnknown}, "1", 0, faulty.SessionLost},
		{"unknown, done", faulty.On(faulty.Commit).After().Return(jms.ErrCommitUnknown), []error{jms.ErrCommitUnknown}, "", 1, faulty.SessionLost},
		{
			"lost connection, done", faulty.On(faulty.Commit).After().Return(jms.ErrConnectionLost),
			[]error{jms.ErrConnectionLost, jms.ErrCommitUnknown}, "2", 1, faulty.ConnectionLost,
		},
		{"other, done", faulty.On(faulty.Commit).After().Return(refused), []error{refused, jms.ErrCommitUnknown}, "", 1, faulty.SessionLost},
		{"busy", faulty.On(faulty.Commit).Return(jms.ErrBusy), []error{jms.ErrBusy}, "", 0, faulty.NothingLost},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBroker(t)
				send(t, b, "1", "2")
				f := faulty.New(b, c.rule.Nth(1))
				var before string
				f.Notify(func(faulty.Event) { before = ready(t, b) })
				conn := connect(t, f)
				one, two := receive(t, conn, "1"), receive(t, conn, "2")
				err := one.Commit(t.Context(), jms.Outgoing{Queue: "OUT"})
				wantErr(t, err, c.want...)
				if got := ready(t, b); got != c.ready || b.Depth("OUT") != c.out {
					t.Fatalf("ready %q, %d sent; want %q, %d", got, b.Depth("OUT"), c.ready, c.out)
				}
				if before != "" {
					t.Fatalf("given back before the loss was told: %q", before)
				}
				again := one.Commit(t.Context())
				if goesOn := !jms.EndsSession(err); goesOn != (again == nil) {
					t.Fatalf("the next commit: %v", again)
				}
				if err := one.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				others := two.Commit(t.Context())
				if c.loss == faulty.ConnectionLost {
					wantErr(t, others, jms.ErrConnectionLost)
					<-conn.Done()
					wantErr(t, conn.Err(), jms.ErrConnectionLost)
				} else if others != nil || conn.Err() != nil {
					t.Fatalf("the others: %v, %v", others, conn.Err())
				}
				es := f.Events()
				if len(es) != 1 {
					t.Fatalf("events %v", es)
				}
				e := es[0]
				if e.Call != faulty.Commit || e.Number != 1 || e.Loss != c.loss || e.Client != "me" || e.Queue != queue || string(e.Message.Body) != "1" ||
					!errors.Is(e.Err, c.want[0]) || !e.Time.Equal(time.Now()) || e.Rule != c.rule.Nth(1).String() {
					t.Fatalf("%+v", e)
				}
			})
		})
	}
}

// TestNothingIsGivenBackAlone: with a provider that cannot, the connection is lost instead.
func TestNothingIsGivenBackAlone(t *testing.T) {
	for _, rule := range []faulty.Rule{
		faulty.On(faulty.Commit).Return(jms.ErrCommitUnknown), faulty.On(faulty.Commit).Return(jms.ErrRolledBack),
		faulty.On(faulty.Commit).After().Return(jms.ErrSessionLost), faulty.On(faulty.Receive).Nth(3).After().Return(jms.ErrBusy),
		faulty.On(faulty.Receive).Nth(3).Return(jms.ErrSessionLost),
	} {
		t.Run(rule.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBroker(t, memory.LikeQuorum())
				send(t, b, "1", "2", "3")
				f := faulty.New(b, rule)
				c := connect(t, f)
				one := receive(t, c, "1")
				receive(t, c, "2")
				_, err := open(t, c).Receive(t.Context())
				if err == nil {
					err = one.Commit(t.Context())
				}
				wantErr(t, err, jms.ErrConnectionLost)
				<-c.Done()
				if got := ready(t, b); got != "1 2 3" && got != "2 3" {
					t.Fatalf("ready %q", got)
				}
				if es := f.Events(); len(es) != 1 || es[0].Loss != faulty.ConnectionLost {
					t.Fatalf("%v", es)
				}
			})
		})
	}
}

func TestFailingReceive(t *testing.T) {
	for _, c := range []struct {
		rule   faulty.Rule
		want   error
		goesOn bool
	}{
		{faulty.On(faulty.Receive).Return(jms.ErrBusy), jms.ErrBusy, true},
		{faulty.On(faulty.Receive).Return(jms.ErrQuiescing), jms.ErrQuiescing, true},
		{faulty.On(faulty.Receive).After().Return(jms.ErrBusy), jms.ErrBusy, true}, // taken, and given back
		{faulty.On(faulty.Receive).Return(jms.ErrSessionLost), jms.ErrSessionLost, false},
		{faulty.On(faulty.Receive).After().Return(jms.ErrSessionLost), jms.ErrSessionLost, false},
		{faulty.On(faulty.Receive).After().Return(jms.ErrConnectionLost), jms.ErrConnectionLost, false},
	} {
		t.Run(c.rule.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBroker(t)
				send(t, b, "1", "2")
				f := faulty.New(b, c.rule.Nth(1))
				s := open(t, connect(t, f))
				m, err := s.Receive(t.Context())
				wantErr(t, err, c.want)
				if m != nil || ready(t, b) != "1 2" {
					t.Fatalf("%v, ready %q", m, ready(t, b))
				}
				if es := f.Events(); len(es) != 1 || (es[0].Message != nil) != es[0].After {
					t.Fatalf("%v", es) // what was taken is named
				}
				if c.goesOn {
					receiveOn(t, s, "1")
					return
				}
				_, err = s.Receive(t.Context())
				wantErr(t, err, c.want)
				if err := s.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

func TestFailingRollback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t)
		send(t, b, "1", "2")
		f := faulty.New(b, faulty.On(faulty.Rollback).Nth(1).Return(jms.ErrBusy), faulty.On(faulty.Rollback).Nth(2).Return(jms.ErrSessionLost))
		c := connect(t, f)
		s := receive(t, c, "1")
		wantErr(t, s.Rollback(t.Context()), jms.ErrBusy)
		if got := ready(t, b); got != "2" {
			t.Fatalf("ready %q", got)
		}
		wantErr(t, s.Rollback(t.Context()), jms.ErrSessionLost)
		if got := ready(t, b); got != "1 2" {
			t.Fatalf("ready %q", got)
		}
	})
}

func TestFailingConnectAndOpenSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t)
		f := faulty.New(b,
			faulty.On(faulty.Connect).Nth(1).Return(jms.ErrBusy), faulty.On(faulty.Connect).Nth(2).After().Return(jms.ErrConnectionLost),
			faulty.On(faulty.OpenSession).Nth(1).Return(jms.ErrBusy), faulty.On(faulty.OpenSession).Nth(2).After().Return(jms.ErrBusy),
			faulty.On(faulty.OpenSession).Nth(4).Return(jms.ErrConnectionLost),
		)
		for _, want := range []error{jms.ErrBusy, jms.ErrConnectionLost} {
			_, err := f.Connect(t.Context(), sub())
			wantErr(t, err, want)
			if s, err := b.Stats(queue); err != nil || s.Connections != 0 {
				t.Fatalf("%+v, %v", s, err)
			}
		}
		c := connect(t, f)
		for range 2 {
			_, err := c.OpenSession(t.Context())
			wantErr(t, err, jms.ErrBusy)
		}
		send(t, b, "1")
		receive(t, c, "1")
		_, err := c.OpenSession(t.Context())
		wantErr(t, err, jms.ErrConnectionLost)
		<-c.Done()
		if got := ready(t, b); got != "1" {
			t.Fatalf("ready %q", got)
		}
	})
}

func TestFailingCloseClosesAllTheSame(t *testing.T) {
	for _, after := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := newBroker(t)
			send(t, b, "1", "2")
			session, connection := faulty.On(faulty.CloseSession), faulty.On(faulty.CloseConnection)
			if after {
				session, connection = session.After(), connection.After()
			}
			f := faulty.New(b, session.Nth(1).Return(jms.ErrSessionLost), connection.Nth(1).Return(jms.ErrConnectionLost))
			c := connect(t, f)
			one := receive(t, c, "1")
			receive(t, c, "2")
			wantErr(t, one.Close(t.Context()), jms.ErrSessionLost)
			if got := ready(t, b); got != "1" {
				t.Fatalf("ready %q", got)
			}
			wantErr(t, c.Close(t.Context()), jms.ErrConnectionLost)
			if got := ready(t, b); got != "1 2" {
				t.Fatalf("ready %q", got)
			}
			if err := c.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestLossEndsAWaitingReceive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t)
		send(t, b, "1")
		f := faulty.New(b, faulty.On(faulty.Commit).Return(jms.ErrConnectionLost))
		c := connect(t, f)
		s := receive(t, c, "1")
		time.AfterFunc(time.Second, func() { _ = s.Commit(t.Context()) })
		_, err := open(t, c).Receive(t.Context())
		wantErr(t, err, jms.ErrConnectionLost)
		if got := ready(t, b); got != "1" {
			t.Fatalf("ready %q", got)
		}
	})
}

func TestBrokenInnerConnectionClosesDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t)
		c := connect(t, faulty.New(b))
		done := c.Done()
		if _, err := b.Break(queue, memory.Loss{}); err != nil {
			t.Fatal(err)
		}
		<-done
		wantErr(t, c.Err(), jms.ErrConnectionLost)
	})
}

func TestFailingAwaitActive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := memory.NewBroker(memory.Queue{Name: queue, SingleActiveConsumer: true})
		if err != nil {
			t.Fatal(err)
		}
		f := faulty.New(b, faulty.On(faulty.AwaitActive).Nth(1).After().Return(jms.ErrConnectionLost))
		wantErr(t, connect(t, f).(jms.Elector).AwaitActive(t.Context()), jms.ErrConnectionLost)
		if err := connect(t, f).(jms.Elector).AwaitActive(t.Context()); err != nil { // the role was given up
			t.Fatal(err)
		}
	})
}
