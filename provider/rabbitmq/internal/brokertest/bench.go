// Package brokertest gives tests a broker, and a connection to it for what the provider under test does not do.
package brokertest

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/rabbitmq"
)

// Bench is a test's own connection to a broker.
type Bench struct {
	testing.TB
	URL  string
	Conn *amqp.Connection
	Ch   *amqp.Channel // in confirm mode
	node *node
}

// New connects to the broker that all tests share.
func New(t testing.TB) *Bench {
	t.Helper()
	b := &Bench{TB: t, URL: URL(t), node: &node{}}
	b.Dial()
	t.Cleanup(func() { _ = b.Conn.Close() })
	return b
}

// NewVictim connects to a node of this process, which the test may kill and reconfigure; it must leave it as it was.
func NewVictim(t testing.TB) *Bench {
	t.Helper()
	URL(t)
	if victim.once.Do(victim.start); victim.err != nil {
		skip(t, victim.err.Error())
	}
	b := &Bench{TB: t, URL: victim.url, node: &victim}
	b.Dial()
	t.Cleanup(func() { _ = b.Conn.Close() })
	return b
}

// Node runs one command of scripts/rabbitmq on the bench's node.
func (b *Bench) Node(args ...string) string {
	b.Helper()
	out, err := b.node.run(args...)
	if err != nil {
		b.Fatal(err)
	}
	return out
}

// Controlled says whether Node reaches the bench's broker.
func (b *Bench) Controlled() bool {
	out, err := b.node.run("url")
	return err == nil && strings.TrimSpace(out) == b.URL
}

// Dial connects again, once the broker is there.
func (b *Bench) Dial() {
	b.Helper()
	var err error
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) { // a broker that was restarted is not ready at once
		if b.Conn, err = amqp.Dial(b.URL); err == nil {
			break
		} else if time.Now().After(end) {
			b.Fatal(err)
		}
	}
	if b.Ch, err = b.Conn.Channel(); err != nil {
		b.Fatal(err)
	}
	if err = b.Ch.Confirm(false); err != nil {
		b.Fatal(err)
	}
}

// Kinds are the types of queues that work with keyseq.
var Kinds = []string{amqp.QueueTypeClassic, amqp.QueueTypeQuorum}

// OnKinds runs a test on a classic and on a quorum queue.
func OnKinds(t *testing.T, test func(t *testing.T, kind string)) {
	URL(t)
	for _, kind := range Kinds {
		t.Run(kind, func(t *testing.T) { test(t, kind) })
	}
}

// OnKindsAtOnce is OnKinds for tests that bear others beside them.
func OnKindsAtOnce(t *testing.T, test func(t *testing.T, kind string)) {
	t.Parallel()
	URL(t)
	for _, kind := range Kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			test(t, kind)
		})
	}
}

// Single are the arguments of a queue as keyseq wants it.
func Single(kind string) amqp.Table {
	return amqp.Table{amqp.QueueTypeArg: kind, amqp.SingleActiveConsumerArg: true}
}

// Queue declares a queue with a name of its own, deleted with the test.
func (b *Bench) Queue(arguments amqp.Table) string {
	b.Helper()
	name := "keyseq-test-" + rand.Text()[:12]
	if _, err := b.Ch.QueueDeclare(name, true, false, false, false, arguments); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if b.Conn.IsClosed() {
			b.Dial()
		}
		ch, err := b.Conn.Channel()
		if err != nil {
			b.Fatal(err)
		}
		if _, err := ch.QueueDelete(name, false, false, false); err != nil {
			b.Errorf("deleting the queue: %v", err)
		}
		_ = ch.Close()
	})
	return name
}

// Put publishes and waits until the broker has stored everything.
func (b *Bench) Put(queue string, messages ...amqp.Publishing) {
	b.Helper()
	var last *amqp.DeferredConfirmation
	for i := range messages {
		messages[i].DeliveryMode = amqp.Persistent
		var err error
		if last, err = b.Ch.PublishWithDeferredConfirm("", queue, true, false, messages[i]); err != nil {
			b.Fatal(err)
		}
		if i%500 == 499 {
			last.Wait()
		}
	}
	if !last.Wait() {
		b.Fatal("the broker did not confirm")
	}
}

// Numbered publishes n messages with the bodies 1, 2, 3...
func (b *Bench) Numbered(queue string, n int) {
	b.Helper()
	messages := make([]amqp.Publishing, n)
	for i := range messages {
		messages[i].Body = fmt.Append(nil, i+1)
	}
	b.Put(queue, messages...)
}

// Count gives the messages that are ready in the queue.
func (b *Bench) Count(queue string) int {
	b.Helper()
	ch, err := b.Conn.Channel()
	if err != nil {
		b.Fatal(err)
	}
	defer ch.Close()
	q, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
	if err != nil {
		b.Fatal(err)
	}
	return q.Messages
}

// Eventually waits up to 20 s for something that the broker does in its own time.
func (b *Bench) Eventually(what string, ok func() bool) {
	b.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			b.Fatalf("after 20 s still not: %s", what)
		}
	}
}

// Discard is a logger that drops everything.
var Discard = slog.New(slog.DiscardHandler)

// Connect opens a connection of the provider, closed with the test.
func (b *Bench) Connect(f rabbitmq.Factory, sub jms.Subscription) jms.Connection {
	b.Helper()
	if f.URL == "" {
		f.URL = b.URL
	}
	if sub.Logger == nil {
		sub.Logger = Discard
	}
	c, err := f.Connect(b.Context(), sub)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// Session opens a session of the connection.
func (b *Bench) Session(c jms.Connection) jms.Session {
	b.Helper()
	s, err := c.OpenSession(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// Receive waits up to 10 s for the next message.
func (b *Bench) Receive(s jms.Session) *jms.Message {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	m, err := s.Receive(ctx)
	if err != nil {
		b.Fatal(err)
	}
	return m
}

// Take receives n messages, each in a session of its own.
func (b *Bench) Take(c jms.Connection, n int) ([]jms.Session, []string) {
	b.Helper()
	sessions, bodies := make([]jms.Session, n), make([]string, n)
	for i := range n {
		sessions[i] = b.Session(c)
		bodies[i] = string(b.Receive(sessions[i]).Body)
	}
	return sessions, bodies
}

// Bounded is a context that ends after d, or with the test.
func (b *Bench) Bounded(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	b.Cleanup(cancel)
	return ctx
}

// IsDone waits up to d for the connection to be lost.
func (b *Bench) IsDone(c jms.Connection, d time.Duration) time.Duration {
	b.Helper()
	began := time.Now()
	select {
	case <-c.Done():
	case <-time.After(d):
		b.Fatalf("the loss was not noticed within %v", d)
	}
	return time.Since(began)
}

// Consumers gives the consumers of the queue that the broker tells of. On a quorum queue with a single active consumer those that wait were not among
// them for 20 s (RabbitMQ 3.10), although list_consumers showed them.
func (b *Bench) Consumers(queue string) int {
	ch, err := b.Conn.Channel()
	if err != nil {
		b.Fatal(err)
	}
	defer ch.Close()
	q, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
	if err != nil {
		b.Fatal(err)
	}
	return q.Consumers
}
