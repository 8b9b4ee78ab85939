package rabbitmq_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"go.uber.org/goleak"

	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/rabbitmq"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	script  = "../../scripts/rabbitmq"
	howToGo = "run in provider/rabbitmq: KEYSEQ_RABBITMQ_URL=$(../../scripts/rabbitmq start) go test -race ./..."
)

// brokerURL is the broker to test with; without one the test is skipped, or fails where a skip is not accepted.
func brokerURL(t testing.TB) string {
	t.Helper()
	url := os.Getenv("KEYSEQ_RABBITMQ_URL")
	if url == "" {
		if os.Getenv("KEYSEQ_REQUIRE_BROKERS") == "1" {
			t.Fatal("KEYSEQ_RABBITMQ_URL is not set, and KEYSEQ_REQUIRE_BROKERS=1 wants it; " + howToGo)
		}
		t.Skip("no broker; " + howToGo)
	}
	return url
}

// privateNode skips the test unless the broker is the private node, which may be killed and reconfigured.
func privateNode(t testing.TB) string {
	t.Helper()
	url := brokerURL(t)
	if !isPrivate(url) {
		if os.Getenv("KEYSEQ_REQUIRE_BROKERS") == "1" {
			t.Fatal("the broker is not the private node of scripts/rabbitmq; " + howToGo)
		}
		t.Skip("the broker is not the private node, which the test would stop; " + howToGo)
	}
	return url
}

func isPrivate(url string) bool {
	own, err := exec.Command(script, "url").Output()
	return err == nil && strings.TrimSpace(string(own)) == url
}

// node runs one command of scripts/rabbitmq.
func node(t testing.TB, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, script, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("scripts/rabbitmq %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// bench is a test's own connection to the broker, for what the provider does not do.
type bench struct {
	testing.TB
	url  string
	conn *amqp.Connection
	ch   *amqp.Channel
}

func newBench(t testing.TB) *bench {
	t.Helper()
	b := &bench{TB: t, url: brokerURL(t)}
	b.dial()
	t.Cleanup(func() { _ = b.conn.Close() })
	return b
}

func (b *bench) dial() {
	b.Helper()
	var err error
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) { // a broker that was restarted is not ready at once
		if b.conn, err = amqp.Dial(b.url); err == nil {
			break
		} else if time.Now().After(end) {
			b.Fatal(err)
		}
	}
	if b.ch, err = b.conn.Channel(); err != nil {
		b.Fatal(err)
	}
	if err = b.ch.Confirm(false); err != nil {
		b.Fatal(err)
	}
}

var kinds = []string{amqp.QueueTypeClassic, amqp.QueueTypeQuorum}

// onKinds runs a test on a classic and on a quorum queue.
func onKinds(t *testing.T, test func(t *testing.T, kind string)) {
	brokerURL(t)
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) { test(t, kind) })
	}
}

// single are the arguments of a queue as keyseq wants it.
func single(kind string) amqp.Table {
	return amqp.Table{amqp.QueueTypeArg: kind, amqp.SingleActiveConsumerArg: true}
}

// queue declares a queue with a name of its own, deleted with the test.
func (b *bench) queue(arguments amqp.Table) string {
	b.Helper()
	name := "keyseq-test-" + rand.Text()[:12]
	if _, err := b.ch.QueueDeclare(name, true, false, false, false, arguments); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if b.conn.IsClosed() {
			b.dial()
		}
		ch, err := b.conn.Channel()
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

// put publishes and waits until the broker has stored everything.
func (b *bench) put(queue string, messages ...amqp.Publishing) {
	b.Helper()
	var last *amqp.DeferredConfirmation
	for i := range messages {
		messages[i].DeliveryMode = amqp.Persistent
		var err error
		if last, err = b.ch.PublishWithDeferredConfirm("", queue, true, false, messages[i]); err != nil {
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

// numbered publishes n messages with the bodies 1, 2, 3...
func (b *bench) numbered(queue string, n int) {
	b.Helper()
	messages := make([]amqp.Publishing, n)
	for i := range messages {
		messages[i].Body = fmt.Append(nil, i+1)
	}
	b.put(queue, messages...)
}

// count gives the messages that are ready in the queue.
func (b *bench) count(queue string) int {
	b.Helper()
	ch, err := b.conn.Channel()
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

// eventually waits up to 20 s for something that the broker does in its own time.
func (b *bench) eventually(what string, ok func() bool) {
	b.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			b.Fatalf("after 20 s still not: %s", what)
		}
	}
}

// journal keeps what the provider logs.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func (j *journal) logger() *slog.Logger { return slog.New(slog.NewTextHandler(j, nil)) }

var discard = slog.New(slog.DiscardHandler)

// connect opens a connection of the provider, closed with the test.
func (b *bench) connect(f rabbitmq.Factory, sub jms.Subscription) jms.Connection {
	b.Helper()
	if f.URL == "" {
		f.URL = b.url
	}
	if sub.Logger == nil {
		sub.Logger = discard
	}
	c, err := f.Connect(b.Context(), sub)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// session opens a session of the connection.
func (b *bench) session(c jms.Connection) jms.Session {
	b.Helper()
	s, err := c.OpenSession(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// receive waits up to 10 s for the next message.
func (b *bench) receive(s jms.Session) *jms.Message {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	m, err := s.Receive(ctx)
	if err != nil {
		b.Fatal(err)
	}
	return m
}

// take receives n messages, each in a session of its own.
func (b *bench) take(c jms.Connection, n int) ([]jms.Session, []string) {
	b.Helper()
	sessions, bodies := make([]jms.Session, n), make([]string, n)
	for i := range n {
		sessions[i] = b.session(c)
		bodies[i] = string(b.receive(sessions[i]).Body)
	}
	return sessions, bodies
}

// bounded is a context that ends after d, or with the test.
func (b *bench) bounded(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	b.Cleanup(cancel)
	return ctx
}

// isDone waits up to d for the connection to be lost.
func (b *bench) isDone(c jms.Connection, d time.Duration) time.Duration {
	b.Helper()
	began := time.Now()
	select {
	case <-c.Done():
	case <-time.After(d):
		b.Fatalf("the loss was not noticed within %v", d)
	}
	return time.Since(began)
}
