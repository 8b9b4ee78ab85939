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
		b.Run(kind+"/manager", func(b *testing.B) { drain(b, kind, managed) })
	}
}

// drain loads the queue and takes the time until the consumer has settled everything.
func drain(b *testing.B, kind string, consume func(b *testing.B, url, queue string, n int) time.Duration) {
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

func managed(b *testing.B, url, queue string, n int) time.Duration {
	var settled atomic.Int64
	done := make(chan struct{})
	m, err := keyseq.NewSequenceManager(queue, &rabbitmq.Factory{URL: url}, keyseq.ListenerFuncs{
		Task: func(context.Context, *keyseq.Delivery) error { return nil },
	}, keyseq.KeyFromBodyBefore("."), func(c *keyseq.Config) {
		c.SingleActiveConsumer, c.Workers = true, 100
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
