// Package brokertest gives tests a broker, and a connection to it for what the provider under test does not do.
package brokertest

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"go.uber.org/goleak"

	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/rabbitmq"
)

const howToGo = "run in provider/rabbitmq: KEYSEQ_RABBITMQ_URL=$(../../scripts/rabbitmq start) go test -race ./..."

// script is scripts/rabbitmq, wherever the test runs.
func script() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "..", "..", "scripts", "rabbitmq")
}

// Main runs the tests of a package and stops the node that they may have started; goroutines that are left over fail it.
func Main(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if victim.dir != "" {
			if out, err := victim.run("stop"); err != nil {
				fmt.Fprintf(os.Stderr, "stopping the node: %v\n%s", err, out)
				code = 1
			}
			_ = os.Remove(victim.dir)
		}
		os.Exit(code)
	}))
}

// skip skips a test that lacks something, or fails it where a skip is not accepted.
func skip(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("KEYSEQ_REQUIRE_BROKERS") == "1" {
		t.Fatal(why + "; KEYSEQ_REQUIRE_BROKERS=1 wants it; " + howToGo)
	}
	t.Skip(why + "; " + howToGo)
}

// URL is the broker to test with; without one the test is skipped.
func URL(t testing.TB) string {
	t.Helper()
	url := os.Getenv("KEYSEQ_RABBITMQ_URL")
	if url == "" {
		skip(t, "KEYSEQ_RABBITMQ_URL is not set")
	}
	return url
}

// node is a private node that a test may kill and reconfigure.
type node struct {
	once sync.Once
	dir  string
	url  string
	err  error
}

// victim is the node of this process, started when it is first needed.
var victim node

func (n *node) run(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, script(), args...)
	if n.dir != "" {
		c.Env = append(os.Environ(), "KEYSEQ_RABBITMQ_DIR="+n.dir)
	}
	var complaints strings.Builder
	c.Stderr = &complaints
	out, err := c.Output()
	if err != nil {
		err = fmt.Errorf("scripts/rabbitmq %s: %w\n%s%s", strings.Join(args, " "), err, out, complaints.String())
	}
	return string(out), err
}

func (n *node) start() {
	if n.dir, n.err = os.MkdirTemp("", "keyseq-rabbitmq-test."); n.err != nil {
		return
	}
	var out string
	out, n.err = n.run("start")
	n.url = strings.TrimSpace(out)
}

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

// Journal keeps what the provider logs.
type Journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *Journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *Journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// Logger writes to the journal.
func (j *Journal) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(j, nil)) }

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

// Consumers gives the consumers of the queue.
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
