package main

import (
	"context"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

// message is one version of one order.
type message struct {
	order   string
	version int64
}

// body is the text of a message.
const body = "version %d of %s"

// produce declares exchange and queue, publishes every version of every order, and returns what the broker has confirmed.
func produce(ctx context.Context, url string) ([]message, error) {
	conn, err := amqp.Dial(url)
	if err != nil {
		return nil, fmt.Errorf("no broker (set AMQP_URL; scripts/rabbitmq start, or docker compose up -d --wait, gives you one): %w", err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		return nil, err
	}
	if err := ch.ExchangeDeclare(exchange, amqp.ExchangeTopic, true, false, false, false, nil); err != nil {
		return nil, err
	}
	if _, err := ch.QueueDeclare(queue, true, false, false, false, arguments); err != nil {
		return nil, err
	}
	if err := ch.QueueBind(queue, "#", exchange, false, nil); err != nil {
		return nil, err
	}
	if err := ch.Confirm(false); err != nil {
		return nil, err
	}
	var sent []message
	var confirms []*amqp.DeferredConfirmation
	for v := range versions {
		for o := range orders {
			m := message{fmt.Sprintf("order-%02d", o), int64(v + 1)}
			c, err := ch.PublishWithDeferredConfirmWithContext(ctx, exchange, m.order, true, false, amqp.Publishing{
				DeliveryMode: amqp.Persistent, ContentType: "text/plain", Headers: amqp.Table{"version": m.version},
				Body: fmt.Appendf(nil, body, m.version, m.order),
			})
			if err != nil {
				return nil, err
			}
			sent, confirms = append(sent, m), append(confirms, c)
		}
	}
	for i, c := range confirms {
		if ok, err := c.WaitContext(ctx); err != nil || !ok {
			return nil, fmt.Errorf("the broker did not confirm version %d of %s: %w", sent[i].version, sent[i].order, err)
		}
	}
	fmt.Printf("published %d messages of %d orders\n", len(sent), orders)
	return sent, nil
}

// empty removes what an earlier run has left.
func empty(url string) error {
	conn, err := amqp.Dial(url)
	if err != nil {
		return fmt.Errorf("no broker (set AMQP_URL; scripts/rabbitmq start, or docker compose up -d --wait, gives you one): %w", err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	_, err = ch.QueueDelete(queue, false, false, false)
	return err
}
