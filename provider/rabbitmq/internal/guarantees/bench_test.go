package guarantees

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/provider/rabbitmq"
	"github.com/keyseq/keyseq/provider/rabbitmq/internal/brokertest"
)

// BenchmarkConsume drains a backlog of persistent messages of 1 KiB and 1,000 keys with an empty task: with a bare consumer of the client
// library (one channel, prefetch 1,000, each message acknowledged alone), and through the manager with 100 workers. Compare the two of
// one type of queue:
//
//	go test -run xxx -bench Consume -benchtime 100000x -count 5 ./internal/guarantees
func BenchmarkConsume(b *testing.B) {
	for _, kind := range brokertest.Kinds {
		b.Run(kind+"/bare", func(b *testing.B) { drain(b, kind, bare) })
		b.Run(kind+"/manager", func(b *testing.B) {
			drain(b, kind, func(b *testing.B, url, queue string, n int) time.Duration {
				return managed(b, url, queue, n, func(context.Context, *keyseq.Delivery) error { return nil })
			})
		})
	}
}

// BenchmarkShortTasks is the same through the manager with tasks that sleep 1 ms. The ideal are workers that are always busy, with tasks as long as they
// really were: the timers of a machine make more of 1 ms.
//
//	go test -run xxx -bench ShortTasks -benchtime 100000x -count 5 ./internal/guarantees
func BenchmarkShortTasks(b *testing.B) {
	for _, kind := range brokertest.Kinds {
		b.Run(kind, func(b *testing.B) {
			tasks := sleeper{task: time.Millisecond}
			took := drain(b, kind, func(b *testing.B, url, queue string, n int) time.Duration {
				return managed(b, url, queue, n, tasks.do)
			})
			tasks.report(b, b.N, took)
		})
	}
}

// BenchmarkGrouped is the largest of the published tests: 480 keys with 24 messages each, those of a key in a row, tasks of 25 ms, the manager as it
// comes. The ideal is that of BenchmarkShortTasks.
//
//	go test -run xxx -bench Grouped -benchtime 1x -count 5 ./internal/guarantees
func BenchmarkGrouped(b *testing.B) {
	const keys, each = 480, 24
	for _, kind := range brokertest.Kinds {
		b.Run(kind, func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				bench := brokertest.New(b)
				queue := bench.Queue(brokertest.Single(kind))
				batch := make([]amqp.Publishing, 0, keys*each)
				for k := range keys {
					for i := range each {
						batch = append(batch, amqp.Publishing{Body: fmt.Appendf(nil, "k%d.%d", k, i)})
					}
				}
				bench.Put(queue, batch...)
				tasks := sleeper{task: 25 * time.Millisecond}
				b.StartTimer()
				tasks.report(b, keys*each, managed(b, bench.URL, queue, keys*each, tasks.do))
			}
		})
	}
}

// sleeper is a task that knows how long it really took.
type sleeper struct {
	task   time.Duration
	lasted atomic.Int64 // all of them together
}

func (s *sleeper) do(ctx context.Context, _ *keyseq.Delivery) error {
	began := time.Now()
	select {
	case <-time.After(s.task):
	case <-ctx.Done():
	}
	s.lasted.Add(int64(time.Since(began)))
	return nil
}

// report compares with 100 workers that are always busy.
func (s *sleeper) report(b *testing.B, n int, took time.Duration) {
	const workers = 100
	task := float64(s.lasted.Load()) / float64(n)
	ideal := float64((n+workers-1)/workers) * task
	b.ReportMetric(task/1e6, "ms/task")
	b.ReportMetric(ideal/float64(took), "of-ideal")
}

// drain loads the queue and takes the time until the consumer has settled everything.
func drain(b *testing.B, kind string, consume func(b *testing.B, url, queue string, n int) time.Duration) time.Duration {
	bench := brokertest.New(b)
	queue := bench.Queue(brokertest.Single(kind))
	padding := bytes.Repeat([]byte("x"), 1010)
	batch := make([]amqp.Publishing, 0, 1000)
	for i := range b.N {
		batch = append(batch, amqp.Publishing{Body: fmt.Appendf(nil, "k%d.%d %s", i%1000, i/1000, padding)})
		if len(batch) == cap(batch) || i == b.N-1 {
			bench.Put(queue, batch...)
			batch = batch[:0]
		}
	}
	b.ResetTimer()
	took := consume(b, bench.URL, queue, b.N)
	b.StopTimer()
	b.ReportMetric(float64(b.N)/took.Seconds(), "msg/s")
	return took
}

// bare acknowledges each message alone, as it comes.
func bare(b *testing.B, url, queue string, n int) time.Duration {
	conn, err := amqp.Dial(url)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		b.Fatal(err)
	}
	if err := ch.Qos(1000, 0, false); err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	deliveries, err := ch.Consume(queue, "", false, false, false, false, nil)
	if err != nil {
		b.Fatal(err)
	}
	for range n {
		d := <-deliveries
		if err := d.Ack(false); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(began)
}

// managed has 100 workers, as a manager that is told nothing else.
func managed(b *testing.B, url, queue string, n int, task func(context.Context, *keyseq.Delivery) error) time.Duration {
	var settled atomic.Int64
	done := make(chan struct{})
	m, err := keyseq.NewSequenceManager(queue, &rabbitmq.Factory{URL: url}, keyseq.ListenerFuncs{
		Task: task,
	}, keyseq.KeyFromBodyBefore("."), func(c *keyseq.Config) {
		c.SingleActiveConsumer = true
		c.Events = append(c.Events, keyseq.Events{Committed: func(keyseq.MessageEvent) {
			if settled.Add(1) == int64(n) {
				close(done)
			}
		}})
	})
	if err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	if err := m.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	<-done
	took := time.Since(began)
	b.StopTimer()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := m.Shutdown(ctx); err != nil {
		b.Error(err)
	}
	return took
}
