package ibmmq_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/ibmmq"
)

// bench is a queue manager under test and queues of one test.
type bench struct {
	t        testing.TB
	queue    string // IN: BOTHRESH 3, BOQNAME other
	other    string
	lock     string
	unknown  string
	sending  int // connections that sender made
	controls     // nothing is set on a real queue manager
}

// controls are what only the stand-in can be told.
type controls struct {
	define      func(queues string)
	fail        func(call string, code, count int)
	failAfter   func(call string, code, count int)
	breakName   func(application string, noticed bool)
	restart     func(down time.Duration)
	stop        func(code int)
	backOut     func(count int) int
	breakOldest func(count int, noticed bool) int
	handles     func() int
	limit       func(most, code int)
	detect      func(after time.Duration)
	notice      func()
	hold        func(call string, done bool)
	release     func()
	waiters     func(queue string) int
	available   func(queue string) int
	unsettled   func() int
	connected   func() int
	calls       func(call string) int
	held        func() int
	passed      func(application string) map[string]string
	unreachable *ibmmq.Factory
}

// on skips a test that needs the stand-in's controls.
func (b *bench) needsControls() {
	b.t.Helper()
	if b.fail == nil {
		b.t.Skip("needs faults on demand: run it on the stand-in with make test in provider/ibmmq")
	}
}

func (b *bench) connect(f *ibmmq.Factory, sub jms.Subscription) jms.Connection {
	b.t.Helper()
	c, err := b.tryConnect(f, sub)
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

func (b *bench) tryConnect(f *ibmmq.Factory, sub jms.Subscription) (jms.Connection, error) {
	b.t.Helper()
	if sub.Queue == "" {
		sub.Queue = b.queue
	}
	if sub.Logger == nil {
		sub.Logger = slog.New(slog.DiscardHandler)
	}
	if sub.Client == "" {
		sub.Client = "test"
	}
	c, err := f.Connect(b.t.Context(), sub)
	if err == nil {
		b.t.Cleanup(func() { _ = c.Close(context.Background()) })
	}
	return c, err
}

func (b *bench) session(c jms.Connection) jms.Session {
	b.t.Helper()
	s, err := c.OpenSession(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// send puts texts by a session of their own connection.
func (b *bench) send(queue string, texts ...string) {
	b.t.Helper()
	out := make([]jms.Outgoing, len(texts))
	for i, text := range texts {
		out[i] = jms.Outgoing{Text: true, Body: []byte(text)}
	}
	b.sendAll(queue, out...)
}

func (b *bench) sendAll(queue string, out ...jms.Outgoing) {
	b.t.Helper()
	if err := b.sender()(b.t.Context(), queue, out...); err != nil {
		b.t.Fatal(err)
	}
}

// sender makes a connection that only sends.
func (b *bench) sender() func(ctx context.Context, queue string, out ...jms.Outgoing) error {
	b.t.Helper()
	send, err := b.trySender()
	if err != nil {
		b.t.Fatal(err)
	}
	return send
}

func (b *bench) trySender() (func(ctx context.Context, queue string, out ...jms.Outgoing) error, error) {
	c, err := b.tryConnect(b.factory(func(f *ibmmq.Factory) { f.ApplicationName = "sender" }), jms.Subscription{Queue: b.other})
	if err != nil {
		return nil, err
	}
	b.sending++
	s, err := c.OpenSession(b.t.Context())
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, queue string, out ...jms.Outgoing) error {
		for i := range out {
			out[i].Queue = queue
		}
		return s.Commit(ctx, out...)
	}, nil
}

// receive takes the next message, which must come within seconds.
func (b *bench) receive(s jms.Session) *jms.Message {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 10*time.Second)
	defer cancel()
	m, err := s.Receive(ctx)
	if err != nil {
		b.t.Fatalf("Receive: %v", err)
	}
	return m
}

// bodies commits and returns what is on a queue.
func (b *bench) bodies(queue string) string {
	b.t.Helper()
	c := b.connect(b.factory(func(f *ibmmq.Factory) { f.ApplicationName = "reader" }), jms.Subscription{Queue: queue})
	defer c.Close(b.t.Context())
	s := b.session(c)
	var all []string
	for {
		ctx, cancel := context.WithTimeout(b.t.Context(), 100*time.Millisecond)
		m, err := s.Receive(ctx)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			return strings.Join(all, " ")
		}
		if err == nil {
			err = s.Commit(b.t.Context())
		}
		if err != nil {
			b.t.Fatal(err)
		}
		all = append(all, string(m.Body))
	}
}

// is checks an error: its sentinel, and what the text must name.
func (b *bench) is(err, sentinel error, names ...string) {
	b.t.Helper()
	if !errors.Is(err, sentinel) {
		b.t.Fatalf("got %v, want %v", err, sentinel)
	}
	for _, other := range []error{jms.ErrConfig, jms.ErrConnectionLost, jms.ErrSessionLost, jms.ErrCommitUnknown, jms.ErrRolledBack, jms.ErrBusy, jms.ErrQuiescing} {
		if other != sentinel && errors.Is(err, other) {
			b.t.Errorf("%v is also %v", err, other)
		}
	}
	for _, name := range names {
		if !strings.Contains(err.Error(), name) {
			b.t.Errorf("error %q does not name %q", err, name)
		}
	}
}

// soon waits for what another thread or process is about to do.
func (b *bench) soon(what string, is func() bool) {
	b.t.Helper()
	b.within(15*time.Second, what, is)
}

func (b *bench) within(limit time.Duration, what string, is func() bool) {
	b.t.Helper()
	for end := time.Now().Add(limit); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("not within %v: %s", limit, what)
		}
	}
}

// took receives what must come within seconds.
func took[T any](b *bench, what string, from <-chan T) T {
	b.t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(15 * time.Second):
		b.t.Fatalf("not within 15 s: %s", what)
		panic("not reached")
	}
}

// never looks for a while for what must not happen.
func (b *bench) never(while time.Duration, what string, is func() bool) {
	b.t.Helper()
	for end := time.Now().Add(while); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if is() {
			b.t.Fatal(what)
		}
	}
}

func numbers(from, to int) []string {
	var all []string
	for i := from; i <= to; i++ {
		all = append(all, fmt.Sprint(i))
	}
	return all
}
