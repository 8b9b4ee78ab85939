package guarantees

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/orderaudit"
	"github.com/keyseq/keyseq/provider/rabbitmq"
	"github.com/keyseq/keyseq/provider/rabbitmq/internal/audited"
	"github.com/keyseq/keyseq/provider/rabbitmq/internal/brokertest"
)

// run is one manager and what it did.
type run struct {
	*brokertest.Bench
	queue    string
	record   *orderaudit.Recorder
	consumer *audited.Consumer
	manager  *keyseq.SequenceManager
	sent     int
}

// newRun makes a manager for the queue whose tasks are recorded.
func newRun(b *brokertest.Bench, queue string, task func(ctx context.Context, d *keyseq.Delivery) error, configure func(*keyseq.Config)) *run {
	b.Helper()
	return newInstance(b, "manager", queue, orderaudit.NewRecorder(), &rabbitmq.Factory{URL: b.URL, Heartbeat: 5 * time.Second}, task, configure)
}

// newInstance is newRun for one of several that share a record.
func newInstance(b *brokertest.Bench, name, queue string, record *orderaudit.Recorder, factory jms.ConnectionFactory,
	task func(ctx context.Context, d *keyseq.Delivery) error, configure func(*keyseq.Config)) *run {
	b.Helper()
	r := &run{Bench: b, queue: queue, record: record}
	r.consumer = &audited.Consumer{Instance: name, Record: r.record, Task: task, News: make(chan struct{}, 1)}
	var err error
	r.manager, err = keyseq.NewSequenceManager(queue, factory, r.consumer, keyseq.KeyFromBodyBefore("."), func(c *keyseq.Config) {
		c.SingleActiveConsumer = true
		c.Reconnect = keyseq.FixedBackoff(100 * time.Millisecond)
		c.Retry = keyseq.RetryPolicy{MaxRetries: keyseq.Unlimited, Backoff: keyseq.FixedBackoff(5 * time.Millisecond)}
		c.Events = append(c.Events, r.consumer.Events())
		if configure != nil {
			configure(c)
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = r.manager.Shutdown(ctx)
	})
	return r
}

// load publishes the numbers from..to of each key, keys interleaved.
func (r *run) load(keys int, from, to int64) {
	r.Helper()
	var messages []amqp.Publishing
	for n := from; n <= to; n++ {
		for k := range keys {
			messages = append(messages, amqp.Publishing{Body: audited.Body(fmt.Sprintf("k%d", k), n, 100)})
		}
	}
	r.Put(r.queue, messages...)
	for _, m := range messages {
		r.record.Sent(audited.Name(m.Body))
	}
	r.sent += len(messages)
}

func (r *run) start() {
	r.Helper()
	if err := r.manager.Start(r.Bounded(20 * time.Second)); err != nil {
		r.Fatal(err)
	}
}

// until waits until so many messages have been settled.
func (r *run) until(n int) {
	r.Helper()
	limit := time.After(2 * time.Minute)
	for r.consumer.Gone.Load() < int64(n) {
		select {
		case <-r.consumer.News:
		case <-limit:
			r.Fatalf("%d of %d messages are settled after 2 min: %+v", r.consumer.Gone.Load(), n, r.manager.Snapshot())
		}
	}
}

// judge shuts down and checks the history.
func (r *run) judge(options orderaudit.Options) {
	r.Helper()
	r.shutdown()
	verdict := r.record.History().Check(options)
	if err := verdict.Err(); err != nil {
		r.Error(err)
	}
	r.Log(verdict)
}

func (r *run) shutdown() {
	r.Helper()
	r.record.InstanceStopping(r.consumer.Instance)
	if err := r.manager.Shutdown(r.Bounded(30 * time.Second)); err != nil {
		r.Errorf("Shutdown: %v", err)
	}
}

// Each key in order over 20,000 messages and 500 keys, with pauses drawn at random and one task in a hundred failing (T7: the messages wait
// before the start).
func TestOrderPerKey(t *testing.T) {
	brokertest.OnKindsAtOnce(t, func(t *testing.T, kind string) {
		b := brokertest.New(t)
		r := newRun(b, b.Queue(brokertest.Single(kind)), func(ctx context.Context, d *keyseq.Delivery) error {
			switch n := rand.IntN(100); {
			case n == 0:
				return errors.New("failed on purpose")
			case n < 5:
				time.Sleep(time.Millisecond)
			}
			return nil
		}, nil)
		r.load(500, 1, 40)
		began := time.Now()
		r.start()
		r.until(r.sent)
		t.Logf("%d messages of 500 keys in %v", r.sent, time.Since(began).Round(time.Millisecond))
		r.judge(orderaudit.Options{})
	})
}

// The broker is killed and started again in the middle of the work; what was acknowledged in the last moment may come again.
func TestBrokerRestartsInTheMiddle(t *testing.T) {
	brokertest.OnKinds(t, func(t *testing.T, kind string) {
		b := brokertest.NewVictim(t)
		r := newRun(b, b.Queue(brokertest.Single(kind)), func(ctx context.Context, d *keyseq.Delivery) error {
			time.Sleep(time.Millisecond)
			return nil
		}, func(c *keyseq.Config) { c.Workers, c.MaxInFlight = 20, 1000 })
		b.Node("ctl", "-q", "status") // a quorum queue younger than a second does not survive a kill -9 on RabbitMQ 3.10; this takes time too
		time.Sleep(time.Second)
		r.load(100, 1, 100)
		r.start()
		r.until(2000)
		loss := r.record.Loss("manager", "kill -9 of the broker", 0)
		b.Node("kill")
		b.Node("start")
		b.Dial()
		r.until(r.sent / 2)
		loss.Done()
		loss = r.record.Loss("manager", "restart of the broker", 0)
		b.Node("restart")
		b.Dial()
		loss.Done()
		r.until(r.sent)
		// A broker that is killed forgets acknowledgements that it had not written: a busy classic queue keeps those of more than a second in
		// memory. What comes again runs in order.
		r.judge(orderaudit.Options{AckDelay: time.Minute})
	})
}

// Stop hands everything back in order, Start goes on; nothing is handled twice.
func TestManagerStopsAndStarts(t *testing.T) {
	brokertest.OnKindsAtOnce(t, func(t *testing.T, kind string) {
		b := brokertest.New(t)
		r := newRun(b, b.Queue(brokertest.Single(kind)), func(ctx context.Context, d *keyseq.Delivery) error {
			time.Sleep(2 * time.Millisecond)
			return nil
		}, func(c *keyseq.Config) { c.Workers, c.MaxInFlight = 20, 500 })
		r.load(50, 1, 60)
		for round := range 4 {
			r.start()
			r.until((round + 1) * r.sent / 5)
			r.record.InstanceStopping("manager")
			if err := r.manager.Stop(b.Bounded(20 * time.Second)); err != nil {
				t.Fatal(err)
			}
		}
		r.start()
		r.until(r.sent)
		r.judge(orderaudit.Options{})
	})
}

// A message that is given up goes to the dead-letter queue, with its properties, and its key goes on; what a task sends is
// there when its message is gone.
func TestDeadLetterAndSends(t *testing.T) {
	brokertest.OnKindsAtOnce(t, func(t *testing.T, kind string) {
		b := brokertest.New(t)
		dead, out := b.Queue(brokertest.Single(kind)), b.Queue(brokertest.Single(kind))
		r := newRun(b, b.Queue(brokertest.Single(kind)), func(ctx context.Context, d *keyseq.Delivery) error {
			if _, n := audited.Name(d.Body); n == 2 {
				return errors.New("never works")
			}
			return d.Send(ctx, jms.Outgoing{Queue: out, Body: d.Body})
		}, func(c *keyseq.Config) { c.DeadLetterQueue, c.Retry.MaxRetries = dead, 2 })
		r.load(40, 1, 4)
		r.start()
		r.until(r.sent)
		s := b.Session(b.Connect(rabbitmq.Factory{}, jms.Subscription{Queue: out}))
		for range 3 * 40 {
			key, n := audited.Name(b.Receive(s).Body)
			r.record.Output(key, n, 1)
			if err := s.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		s = b.Session(b.Connect(rabbitmq.Factory{}, jms.Subscription{Queue: dead}))
		for range 40 {
			m := b.Receive(s)
			key, _ := audited.Name(m.Body)
			if got, _ := m.Property("keyseq_key"); got != key {
				t.Errorf("a dead letter of key %s says keyseq_key %q", key, got)
			}
			if got, _ := m.Property("x-keyseq-routing-key"); got != r.queue {
				t.Errorf("a dead letter's original routing key is %q, want %q", got, r.queue)
			}
			if err := s.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		r.judge(orderaudit.Options{
			Expect: func(_ string, n int64) orderaudit.Outcome {
				if n == 2 {
					return orderaudit.DeadLettered
				}
				return orderaudit.Settled
			},
			Outputs: func(string, int64) int { return 1 },
		})
	})
}
