package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/memory"
	"github.com/keyseq/keyseq/provider/rabbitmq"
	amqp "github.com/rabbitmq/amqp091-go"
)

// preloaded is a queue that holds the whole load before it is read.
type preloaded struct {
	factory      jms.ConnectionFactory
	queue        string
	singleActive bool // it is declared so
	close        func() error
}

// opener fills a queue.
type opener func(ctx context.Context, items []item) (preloaded, error)

func brokerNamed(name string) (opener, error) {
	switch name {
	case "memory":
		return openMemory, nil
	case "rabbitmq":
		return openRabbitMQ, nil
	}
	return nil, fmt.Errorf("-broker %q: must be memory or rabbitmq", name)
}

func openMemory(_ context.Context, items []item) (preloaded, error) {
	const queue = "BENCH"
	b, err := memory.NewBroker(memory.Queue{Name: queue})
	if err != nil {
		return preloaded{}, err
	}
	for _, it := range items {
		if _, err := b.Send(jms.Outgoing{Queue: queue, Body: body(it), Properties: map[string]any{"key": it.key, "seq": it.seq}}); err != nil {
			return preloaded{}, err
		}
	}
	return preloaded{factory: b, queue: queue, close: func() error { b.Close(); return nil }}, nil
}

func body(it item) []byte { return []byte(it.key + "." + strconv.FormatInt(it.seq, 10)) }

// openRabbitMQ declares a queue of its own, fills it with confirmed persistent messages, and deletes it at the end.
func openRabbitMQ(ctx context.Context, items []item) (p preloaded, err error) {
	url := os.Getenv("KEYSEQ_RABBITMQ_URL")
	if url == "" {
		return p, errors.New("KEYSEQ_RABBITMQ_URL is not set: scripts/rabbitmq start; export KEYSEQ_RABBITMQ_URL=$(scripts/rabbitmq url)")
	}
	conn, err := amqp.Dial(url)
	if err != nil {
		return p, fmt.Errorf("cannot reach RabbitMQ: %w", err)
	}
	ch, err := conn.Channel()
	if err != nil {
		return p, errors.Join(err, conn.Close())
	}
	queue := fmt.Sprintf("keyseq.benchmark.%d", os.Getpid())
	p = preloaded{factory: &rabbitmq.Factory{URL: url}, queue: queue, singleActive: true, close: func() error {
		_, err := ch.QueueDelete(queue, false, false, false)
		return errors.Join(err, conn.Close())
	}}
	if _, err := ch.QueueDeclare(queue, true, false, false, false, amqp.Table{amqp.SingleActiveConsumerArg: true}); err != nil {
		return p, errors.Join(err, conn.Close())
	}
	if err := publish(ctx, ch, queue, items); err != nil {
		return p, errors.Join(err, p.close())
	}
	return p, nil
}

func publish(ctx context.Context, ch *amqp.Channel, queue string, items []item) error {
	if err := ch.Confirm(false); err != nil {
		return err
	}
	pending := make([]*amqp.DeferredConfirmation, 0, len(items))
	for _, it := range items {
		c, err := ch.PublishWithDeferredConfirmWithContext(ctx, "", queue, true, false, amqp.Publishing{DeliveryMode: amqp.Persistent,
			Headers: amqp.Table{"key": it.key, "seq": it.seq}, Body: body(it)})
		if err != nil {
			return err
		}
		pending = append(pending, c)
	}
	for _, c := range pending {
		ok, err := c.WaitContext(ctx)
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("queue %q: the broker did not take a message", queue)
		}
	}
	return nil
}
