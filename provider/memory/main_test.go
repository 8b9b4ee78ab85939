package memory_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const queue = "PAYMENTS"

// newBroker makes a broker with queue and the given options; a Queue named queue among them replaces the default one.
func newBroker(t testing.TB, options ...memory.Option) *memory.Broker {
	t.Helper()
	declared := false
	for _, o := range options {
		if q, ok := o.(memory.Queue); ok && q.Name == queue {
			declared = true
		}
	}
	if !declared {
		options = append(options, memory.Queue{Name: queue})
	}
	b, err := memory.NewBroker(options...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func send(t testing.TB, b *memory.Broker, bodies ...string) []string {
	t.Helper()
	out := make([]jms.Outgoing, len(bodies))
	for i, body := range bodies {
		out[i] = jms.Outgoing{Queue: queue, Body: []byte(body), Text: true}
	}
	ids, err := b.SendBatch(out)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func connect(t testing.TB, b jms.ConnectionFactory, client string) jms.Connection {
	t.Helper()
	c, err := b.Connect(t.Context(), jms.Subscription{Queue: queue, Client: client, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
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

// receive opens a session on c and receives the message that must be there.
func receive(t testing.TB, c jms.Connection, want string) jms.Session {
	t.Helper()
	s := open(t, c)
	receiveOn(t, s, want)
	return s
}

func receiveOn(t testing.TB, s jms.Session, want string) *jms.Message {
	t.Helper()
	m, err := s.Receive(t.Context())
	if err != nil {
		t.Fatalf("Receive: %v, want %q", err, want)
	}
	if string(m.Body) != want {
		t.Fatalf("Receive: %q, want %q", m.Body, want)
	}
	return m
}

// receiveNone asserts that nothing can be received now. It needs a bubble: a millisecond of its time passes.
func receiveNone(t testing.TB, s jms.Session) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if m, err := s.Receive(ctx); m != nil || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Receive: %v, %v; want nothing", m, err)
	}
}

func commit(t testing.TB, s jms.Session, out ...jms.Outgoing) {
	t.Helper()
	if err := s.Commit(t.Context(), out...); err != nil {
		t.Fatalf("Commit: %v", err)
	}
}

func rollback(t testing.TB, s jms.Session) {
	t.Helper()
	if err := s.Rollback(t.Context()); err != nil {
		t.Fatalf("Rollback: %v", err)
	}
}

func wantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error: %v, want %v", err, want)
	}
}

func bodies(ms []jms.Message) string {
	var all string
	for i, m := range ms {
		if i > 0 {
			all += " "
		}
		all += string(m.Body)
	}
	return all
}

func browse(t testing.TB, b *memory.Broker, want string) {
	t.Helper()
	ms, err := b.Browse(queue)
	if err != nil {
		t.Fatal(err)
	}
	if got := bodies(ms); got != want {
		t.Fatalf("Browse: %q, want %q", got, want)
	}
}

func stats(t testing.TB, b *memory.Broker) memory.Stats {
	t.Helper()
	s, err := b.Stats(queue)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
