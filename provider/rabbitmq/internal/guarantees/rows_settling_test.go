package guarantees

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/orderaudit"
	"github.com/keyseq/keyseq/provider/faulty"
	"github.com/keyseq/keyseq/provider/rabbitmq"
	"github.com/keyseq/keyseq/provider/rabbitmq/internal/audited"
	"github.com/keyseq/keyseq/provider/rabbitmq/internal/brokertest"
	"github.com/keyseq/keyseq/provider/rabbitmq/internal/faultproxy"
)

// through is the bench as seen over a proxy of its own.
func through(b *brokertest.Bench) (*brokertest.Bench, *faultproxy.Proxy) {
	b.Helper()
	proxy, err := faultproxy.New(hostOf(b.URL))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(proxy.Close)
	far := *b
	far.URL = strings.Replace(b.URL, hostOf(b.URL), proxy.Addr(), 1)
	return &far, proxy
}

// R1.03: three messages are in flight and only the second is settled; when the connection dies exactly the others come back. A fourth begins when
// the broker has read the acknowledgement, which frees its place.
func TestR1_03_SettlingOneMessageSettlesNoOther(t *testing.T) {
	brokertest.OnKindsAtOnce(t, func(t *testing.T, kind string) {
		b, proxy := through(brokertest.New(t))
		var mu sync.Mutex
		begun := map[string]int{}
		var broken atomic.Bool
		fourth := make(chan struct{})
		r := newRun(b, b.Queue(brokertest.Single(kind)), func(ctx context.Context, d *keyseq.Delivery) error {
			mu.Lock()
			begun[d.Key]++
			mu.Unlock()
			if d.Key == "k1" || broken.Load() { // the second
				return nil
			}
			if d.Key == "k3" {
				close(fourth)
			}
			<-ctx.Done()
			return context.Cause(ctx)
		}, func(c *keyseq.Config) { c.MaxInFlight, c.Workers = 3, 3 })
		r.load(4, 1, 1)
		r.start()
		<-fourth
		broken.Store(true)
		loss := r.record.Loss("manager", "link cut", 3)
		proxy.Cut()
		r.until(4)
		loss.Done()
		r.judge(orderaudit.Options{})
		if begun["k0"] != 2 || begun["k1"] != 1 || begun["k2"] != 2 || begun["k3"] != 2 {
			t.Errorf("tasks begun: %v; want two of each that was not settled, one of k1, which was", begun)
		}
	})
}

// T5: of A1, A2, B1 the first fails: A2 must wait until A1 is settled, B1 must not.
func TestT05_AFailureHoldsBackOnlyItsOwnGroup(t *testing.T) {
	brokertest.OnKindsAtOnce(t, func(t *testing.T, kind string) {
		b := brokertest.New(t)
		var mu sync.Mutex
		var log []string
		other := make(chan struct{})
		r := newRun(b, b.Queue(brokertest.Single(kind)), func(_ context.Context, d *keyseq.Delivery) error {
			name := fmt.Sprint(d.Key, ".", number(d))
			mu.Lock()
			log = append(log, name)
			mu.Unlock()
			switch {
			case d.Key == "k1":
				close(other)
			case number(d) == 1 && d.Attempt == 1:
				return errors.New("failed on purpose")
			case number(d) == 1:
				select {
				case <-other:
				case <-time.After(10 * time.Second):
					t.Error("the other key waits for this one")
				}
			}
			return nil
		}, nil)
		r.put("k0", 1)
		r.put("k0", 2)
		r.put("k1", 1)
		r.start()
		r.until(3)
		r.judge(orderaudit.Options{})
		if i, j := slices.Index(log, "k0.2"), len(log)-1; i != j && !(i == j-1 && log[j] == "k1.1") || len(log) != 4 {
			t.Errorf("it went %v, want k0.1 twice before k0.2", log)
		}
	})
}

// put publishes one message.
func (r *run) put(key string, n int64) {
	r.Helper()
	r.Put(r.queue, amqp.Publishing{Body: audited.Body(key, n, 0)})
	r.record.Sent(key, n)
	r.sent++
}

// T14: a poison message has three attempts, and so has each of the four that wait behind it in the same client, where the broker counts
// deliveries and would drop them at the fourth.
func TestT14_WaitingBehindPoisonCostsNoAttempt(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	arguments := brokertest.Single("quorum")
	arguments["x-delivery-limit"] = int32(3)
	q, dead := b.Queue(arguments), b.Queue(brokertest.Single("quorum"))
	var mu sync.Mutex
	attempts := map[int64]int{}
	r := newInstance(b, "manager", q, orderaudit.NewRecorder(), &rabbitmq.Factory{URL: b.URL, AcceptDeliveryLimit: true}, func(_ context.Context, d *keyseq.Delivery) error {
		mu.Lock()
		defer mu.Unlock()
		attempts[number(d)]++
		return errors.New("never works")
	}, func(c *keyseq.Config) {
		c.Retry = keyseq.RetryPolicy{MaxRetries: 2, Backoff: keyseq.FixedBackoff(5 * time.Millisecond)}
		c.DeadLetterQueue = dead
	})
	r.load(1, 1, 5)
	r.start()
	r.until(5)
	r.judge(orderaudit.Options{Expect: func(string, int64) orderaudit.Outcome { return orderaudit.DeadLettered }})
	for n := int64(1); n <= 5; n++ {
		if attempts[n] != 3 {
			t.Errorf("message %d had %d attempts, want 3", n, attempts[n])
		}
	}
	b.Eventually("all five are in the dead-letter queue", func() bool { return b.Count(dead) == 5 })
}

// T24: the connections break while every worker is inside Commit: it recovers, in order, with every send out, and leaves nothing behind
// (TestMain looks for goroutines).
func TestT24_TheConnectionDropsWhileAllWorkersAreInCommit(t *testing.T) {
	brokertest.OnKindsAtOnce(t, func(t *testing.T, kind string) {
		b, proxy := through(brokertest.New(t))
		q, out := b.Queue(brokertest.Single(kind)), b.Queue(brokertest.Single(kind))
		const workers = 20
		commits := make(chan struct{}, 100_000)
		factory := faulty.New(&rabbitmq.Factory{URL: b.URL, Heartbeat: 5 * time.Second}, faulty.On(faulty.Commit).Where(func(faulty.Event) bool {
			commits <- struct{}{}
			return false
		}))
		hush := make(chan struct{})
		var once sync.Once
		r := newInstance(b, "manager", q, orderaudit.NewRecorder(), factory, func(ctx context.Context, d *keyseq.Delivery) error {
			if number(d) == 3 {
				once.Do(func() { close(hush) })
			}
			return d.Send(ctx, jms.Outgoing{Queue: out, Body: d.Body})
		}, func(c *keyseq.Config) { c.Workers = workers })
		r.load(workers, 1, 20)
		r.start()
		<-hush
		loss := r.record.Loss("manager", "link silent, then cut", 0)
		proxy.Silence() // no confirmation comes any more: who enters Commit stays there
		for range len(commits) {
			<-commits // of before
		}
		for quiet := false; !quiet; {
			select {
			case <-commits:
			case <-time.After(time.Second): // nobody is on the way there any more
				quiet = true
			}
		}
		if s := r.manager.Snapshot(); s.Running != workers {
			t.Errorf("%d workers are busy, want all %d in Commit", s.Running, workers)
		}
		proxy.Speak()
		cut := time.Now()
		proxy.Cut()
		r.until(r.sent)
		t.Logf("all is settled %v after the cut", time.Since(cut).Round(time.Millisecond))
		loss.Done()
		s := b.Session(b.Connect(rabbitmq.Factory{}, jms.Subscription{Queue: out}))
		for sent := map[string]bool{}; len(sent) < r.sent; {
			m, err := s.Receive(b.Bounded(5 * time.Second))
			if err != nil {
				t.Errorf("the sends of %d of %d settled messages are there: %v", len(sent), r.sent, err)
				break
			}
			sent[string(m.Body)] = true
			if err := s.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		r.judge(orderaudit.Options{AckDelay: time.Second})
	})
}

// T25: the process dies between the success of its task and the commit: that message comes once more, marked as redelivered, before any later one of
// its key, and nothing else is repeated.
func TestT25_ACrashBeforeTheCommit(t *testing.T) {
	onElections(t, func(t *testing.T, e election) {
		b := brokertest.New(t)
		q := b.Queue(e.arguments)
		record, path := openRecord(b)
		producer := &run{Bench: b, queue: q, record: record}
		producer.load(1, 1, 5)
		loss := record.Loss("first", "kill -9 of itself", 0)
		p := newProcess(b, spec{Name: "first", Queue: q, Exclusive: e.exclusive, Heartbeat: 5 * time.Second, DieInCommit: true})
		if n := p.task(); n != "1" {
			t.Errorf("the first task was of message %s, want 1", n)
		}
		p.dead(record)
		loss.Done()
		var numbers []int64
		next := newInstance(b, "next", q, record, e.factory(b.URL), func(_ context.Context, d *keyseq.Delivery) error {
			numbers = append(numbers, number(d)) // one key: never two at once
			if number(d) == 1 && !d.Redelivered {
				t.Error("message 1 is not marked as redelivered")
			}
			return nil
		}, nil)
		next.start()
		next.until(5)
		next.shutdown()
		if !slices.Equal(numbers, []int64{1, 2, 3, 4, 5}) {
			t.Errorf("the next process handled %v, want 1 to 5", numbers)
		}
		judgeFiles(b, orderaudit.Options{}, record, path, p.Record)
	})
}

// T26: a message is retried in place for longer than the broker lets a client hold it. The manager gives it back before the broker takes it
// away, so it is never live twice, and what waits behind it waits on.
func TestT26_RetriesLongerThanTheBrokersTimeout(t *testing.T) {
	b := brokertest.NewVictim(t)
	const timeout = 4 * time.Second
	q := b.Queue(brokertest.Single("classic"))
	b.Node("ctl", "-q", "eval", fmt.Sprintf("application:set_env(rabbit, consumer_timeout, %d).", timeout.Milliseconds()))
	defer b.Node("ctl", "-q", "eval", "application:set_env(rabbit, consumer_timeout, 1800000).")
	var mu sync.Mutex
	var began time.Time
	var losses []string
	r := newInstance(b, "manager", q, orderaudit.NewRecorder(), &rabbitmq.Factory{URL: b.URL, ConsumerTimeout: timeout}, func(_ context.Context, d *keyseq.Delivery) error {
		mu.Lock()
		defer mu.Unlock()
		if began.IsZero() {
			began = time.Now()
		}
		if number(d) == 1 && time.Since(began) < 2*timeout {
			return errors.New("not yet")
		}
		return nil
	}, func(c *keyseq.Config) {
		c.Retry.Backoff, c.TaskTimeout = keyseq.FixedBackoff(100*time.Millisecond), time.Second
		c.Events = append(c.Events, keyseq.Events{State: func(_, _ keyseq.State, err error) {
			if err != nil {
				mu.Lock()
				losses = append(losses, err.Error())
				mu.Unlock()
			}
		}})
	})
	r.load(1, 1, 3)
	r.start()
	for limit := time.Now().Add(time.Minute); r.consumer.Gone.Load() < 3; {
		b.Node("ctl", "-q", "eval", fmt.Sprintf(`[proplists:get_value(channel_pid, C) ! tick || C <- rabbit_amqqueue:consumers_all(<<"/">>),
			{resource, _, queue, <<%q>>} <- [proplists:get_value(queue_name, C)]].`, q)) // it would look once a minute
		if time.Now().After(limit) {
			t.Fatalf("the message is not settled after a minute: %+v", r.manager.Snapshot())
		}
	}
	mu.Lock()
	if len(losses) < 2 {
		t.Errorf("the message was given back %d times in %v, want at least 2: %v", len(losses), 2*timeout, losses)
	}
	for _, text := range losses {
		if strings.Contains(text, "406") {
			t.Errorf("the broker took the message away: %s", text)
		}
	}
	mu.Unlock()
	r.judge(orderaudit.Options{})
}

// R2.17: messages are acknowledged by hand, on the channel that receives them, and no other way of reading or giving back is used: seen on the
// wire, over failures, retries, dead letters and stops.
func TestR2_17_OnlyManualAcknowledgements(t *testing.T) {
	onElections(t, func(t *testing.T, e election) {
		b := brokertest.New(t)
		wire := newTap(t, hostOf(b.URL))
		far := strings.Replace(b.URL, hostOf(b.URL), wire.listener.Addr().String(), 1)
		dead := b.Queue(e.arguments)
		r := newInstance(b, "manager", b.Queue(e.arguments), orderaudit.NewRecorder(), e.factory(far), func(_ context.Context, d *keyseq.Delivery) error {
			if n := number(d); n == 3 || n == 5 && d.Attempt == 1 {
				return errors.New("failed on purpose")
			}
			return nil
		}, func(c *keyseq.Config) { c.DeadLetterQueue, c.Retry.MaxRetries = dead, 1 })
		r.load(20, 1, 10)
		r.start()
		r.until(50)
		r.record.InstanceStopping("manager")
		if err := r.manager.Stop(b.Bounded(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		r.start()
		r.until(r.sent)
		r.judge(orderaudit.Options{})
		wire.mu.Lock()
		defer wire.mu.Unlock()
		for _, f := range wire.faults {
			t.Error(f)
		}
		if wire.methods[basicConsume] < 2 || wire.methods[basicAck] == 0 {
			t.Errorf("on the wire: %d basic.consume and %d basic.ack; the tap has not seen what it is for", wire.methods[basicConsume], wire.methods[basicAck])
		}
	})
}

// H25: the window bounds what the broker sends, exactly; its bytes do not, because a prefetch counts messages; and what does not fit into the
// protocol's 16 bits is refused rather than taken for "no limit".
func TestH25_ThePrefetchIsTheWindow(t *testing.T) {
	brokertest.OnKindsAtOnce(t, func(t *testing.T, kind string) {
		b := brokertest.New(t)
		q := b.Queue(brokertest.Single(kind))
		const window, total = 5, 20
		running := make(chan struct{}, total)
		finish := make(chan struct{})
		r := newRun(b, q, func(context.Context, *keyseq.Delivery) error {
			running <- struct{}{}
			<-finish
			return nil
		}, func(c *keyseq.Config) { c.Workers, c.MaxInFlight, c.MaxInFlightBytes = 1, window, 1024 })
		r.load(total, 1, 1)
		r.start()
		<-running
		b.Eventually("the broker has sent the window", func() bool { return b.Count(q) == total-window })
		for end := time.Now().Add(500 * time.Millisecond); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			if n := total - b.Count(q); n != window {
				t.Fatalf("%d messages are with the client, want exactly %d", n, window)
			}
		}
		close(finish)
		r.until(total)
		r.judge(orderaudit.Options{})

		beyond := newRun(b, q, nil, func(c *keyseq.Config) { c.MaxInFlight = 65536 })
		if err := beyond.manager.Start(b.Bounded(10 * time.Second)); !errors.Is(err, jms.ErrConfig) || !strings.Contains(err.Error(), "65535") {
			t.Errorf("Start with a MaxInFlight of 65536 = %v, want ErrConfig that names the limit", err)
		}
	})
}
