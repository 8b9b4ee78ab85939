package guarantees

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/orderaudit"
	"github.com/keyseq/keyseq/provider/rabbitmq"
	"github.com/keyseq/keyseq/provider/rabbitmq/internal/audited"
	"github.com/keyseq/keyseq/provider/rabbitmq/internal/brokertest"
	"github.com/keyseq/keyseq/provider/rabbitmq/internal/faultproxy"
)

// T21: instance A has K1 running and K2..K5 held, B waits. A shuts down: B begins at K2, after K1 is settled.
func TestT21_AStandbyBeginsWhereTheActiveOneStopped(t *testing.T) {
	brokertest.OnKindsAtOnce(t, func(t *testing.T, kind string) {
		b := brokertest.New(t)
		q := b.Queue(brokertest.Single(kind))
		var mu sync.Mutex
		var log []string
		note := func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			log = append(log, fmt.Sprintf(format, args...))
		}
		running, finish := make(chan struct{}), make(chan struct{})
		a := newRun(b, q, func(ctx context.Context, d *keyseq.Delivery) error {
			note("A %d", number(d))
			close(running)
			<-finish
			note("A done")
			return nil
		}, nil)
		standby := newRun(b, q, func(ctx context.Context, d *keyseq.Delivery) error {
			note("B %d", number(d))
			return nil
		}, nil)
		a.load(1, 1, 5)
		a.start()
		<-running
		standby.start()
		stopped := make(chan error, 1)
		go func() { stopped <- a.manager.Shutdown(b.Bounded(20 * time.Second)) }()
		select {
		case err := <-stopped:
			t.Fatalf("Shutdown returned %v while a task runs", err)
		case <-time.After(300 * time.Millisecond): // B has time for what it must not do
		}
		if s := standby.manager.State(); s != keyseq.StateUnconfirmed {
			t.Errorf("the waiting instance is %v, want unconfirmed: the broker has not told", s)
		}
		close(finish)
		if err := <-stopped; err != nil {
			t.Fatal(err)
		}
		standby.until(4)
		if s := standby.manager.State(); s != keyseq.StateActive {
			t.Errorf("the instance that works is %v, want active", s)
		}
		mu.Lock()
		defer mu.Unlock()
		if want := []string{"A 1", "A done", "B 2", "B 3", "B 4", "B 5"}; !slices.Equal(log, want) {
			t.Errorf("it went %v, want %v", log, want)
		}
	})
}

func number(d *keyseq.Delivery) int64 {
	_, n := audited.Name(d.Body)
	return n
}

// R2.18: twenty-five retries in place do not move the broker's count, so a queue that drops what was delivered more often than five times
// keeps everything, and those that wait behind have all their attempts.
func TestR2_18_RetriesDoNotCountAsDeliveries(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	arguments := brokertest.Single("quorum")
	arguments["x-delivery-limit"] = int32(5)
	q := b.Queue(arguments)
	r := &run{Bench: b, queue: q, record: orderaudit.NewRecorder()}
	attempts := map[int64]int{}
	var mu sync.Mutex
	r.consumer = &audited.Consumer{Instance: "manager", Record: r.record, News: make(chan struct{}, 1), Task: func(ctx context.Context, d *keyseq.Delivery) error {
		mu.Lock()
		defer mu.Unlock()
		attempts[number(d)]++
		if d.DeliveryCount != 1 {
			t.Errorf("message %d is delivered for the %d. time", number(d), d.DeliveryCount)
		}
		if d.Attempt <= 25 {
			return errors.New("not yet")
		}
		return nil
	}}
	var err error
	r.manager, err = keyseq.NewSequenceManager(q, &rabbitmq.Factory{URL: b.URL, AcceptDeliveryLimit: true}, r.consumer, keyseq.KeyFromBodyBefore("."), func(c *keyseq.Config) {
		c.SingleActiveConsumer = true
		c.Retry = keyseq.RetryPolicy{MaxRetries: 25, Backoff: keyseq.FixedBackoff(time.Millisecond), OnExhausted: keyseq.ActionStop}
		c.Events = append(c.Events, r.consumer.Events())
	})
	if err != nil {
		t.Fatal(err)
	}
	r.load(1, 1, 5)
	r.start()
	r.until(5)
	for n := int64(1); n <= 5; n++ {
		if attempts[n] != 26 {
			t.Errorf("message %d had %d attempts, want 26", n, attempts[n])
		}
	}
	r.judge(orderaudit.Options{})
}

// T24, R2.20: the links break again and again while workers are inside Commit; it goes on by itself, in order, and nothing is left
// behind (the package's TestMain looks for goroutines).
func TestT24_LinksBreakAgainAndAgain(t *testing.T) {
	brokertest.OnKindsAtOnce(t, func(t *testing.T, kind string) {
		b := brokertest.New(t)
		q, out := b.Queue(brokertest.Single(kind)), b.Queue(amqp.Table{amqp.QueueTypeArg: kind})
		proxy, err := faultproxy.New(hostOf(b.URL))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(proxy.Close)
		through := *b
		through.URL = strings.Replace(b.URL, hostOf(b.URL), proxy.Addr(), 1)
		r := newRun(&through, q, func(ctx context.Context, d *keyseq.Delivery) error {
			return d.Send(ctx, jms.Outgoing{Queue: out, Body: d.Body})
		}, func(c *keyseq.Config) { c.Workers, c.MaxInFlight = 50, 500 })
		r.load(50, 1, 60)
		r.start()
		for round := range 5 {
			r.until(round * r.sent / 6)
			loss := r.record.Loss("manager", "links cut", 0)
			proxy.Cut()
			r.until((round*r.sent + r.sent/2) / 6) // it has come back
			loss.Done()
		}
		r.until(r.sent)
		r.judge(orderaudit.Options{AckDelay: time.Second})
	})
}

func hostOf(url string) string {
	_, rest, _ := strings.Cut(url, "@")
	return strings.TrimSuffix(rest, "/")
}

// R2.01, T7: two instances, 10,000 messages of one order; the active one is cut off five times. The first deliveries are in order, and the
// instance that waits handles nothing.
func TestR2_01_FirstDeliveriesKeepTheQueuesOrder(t *testing.T) {
	brokertest.OnKindsAtOnce(t, func(t *testing.T, kind string) {
		b := brokertest.New(t)
		q := b.Queue(brokertest.Single(kind))
		const total = 10_000
		b.Numbered(q, total)
		var mu sync.Mutex
		seen := map[string]bool{}
		var firsts []int
		done := make(chan struct{})
		var active string
		switches := 0
		cut, goOn := make(chan string), make(chan struct{}) // the active instance waits to be cut off
		var proxies []*faultproxy.Proxy
		var managers []*keyseq.SequenceManager
		for i := range 2 {
			name := fmt.Sprint("instance ", i)
			proxy, err := faultproxy.New(hostOf(b.URL))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(proxy.Close)
			proxies = append(proxies, proxy)
			m, err := keyseq.NewSequenceManager(q, &rabbitmq.Factory{URL: strings.Replace(b.URL, hostOf(b.URL), proxy.Addr(), 1)}, keyseq.ListenerFuncs{
				Task: func(ctx context.Context, d *keyseq.Delivery) error {
					mu.Lock()
					if active != name {
						active = name
						switches++
					}
					wait := false
					if body := string(d.Body); !seen[body] {
						seen[body] = true
						n := 0
						_, _ = fmt.Sscan(body, &n)
						if firsts = append(firsts, n); len(firsts) == total {
							close(done)
						}
						wait = len(firsts)%(total/6) == 0 && len(firsts) <= 5*(total/6)
					}
					mu.Unlock()
					if wait {
						cut <- name
						<-goOn
					}
					return nil
				},
			}, keyseq.KeyExtractorFunc(func(*keyseq.Message) (string, error) { return "one", nil }), func(c *keyseq.Config) {
				c.SingleActiveConsumer, c.MaxInFlight = true, 300
				c.Reconnect = keyseq.FixedBackoff(100 * time.Millisecond)
			})
			if err != nil {
				t.Fatal(err)
			}
			managers = append(managers, m)
			if err := m.Start(b.Bounded(20 * time.Second)); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := m.Shutdown(b.Bounded(20 * time.Second)); err != nil {
					t.Errorf("Shutdown: %v", err)
				}
			})
		}
		for range 5 {
			select {
			case name := <-cut:
				b.Eventually("the other instance stands by", func() bool {
					return !slices.ContainsFunc(managers, func(m *keyseq.SequenceManager) bool { return m.State() == keyseq.StateConnecting })
				})
				for i, p := range proxies {
					if name == fmt.Sprint("instance ", i) {
						p.Cut()
					}
				}
				goOn <- struct{}{}
			case <-time.After(time.Minute):
				t.Fatal("nothing moves")
			}
		}
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Fatal("not all messages came within a minute")
		}
		mu.Lock()
		defer mu.Unlock()
		if !slices.IsSorted(firsts) {
			t.Error("the first deliveries are not in the queue's order")
		}
		if switches < 6 {
			t.Errorf("the active instance changed %d times for 5 cuts", switches-1)
		}
	})
}
