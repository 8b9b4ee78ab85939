package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/keyseq/keyseq/orderaudit"
	"github.com/keyseq/keyseq/provider/rabbitmq/internal/audited"
)

// producer publishes the numbers 1, 2, 3.. of every key. A number follows when the one before is confirmed for all keys; what was not
// confirmed is sent again, and recorded as doubtful: it may be on the queue twice.
type producer struct {
	b        *broker
	queue    string
	keys     int
	record   *orderaudit.Recorder
	sent     int
	doubtful int
	stop     atomic.Bool
}

func (p *producer) run(ctx context.Context, pause time.Duration) error {
	conn, ch, err := p.b.dial(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.CloseDeadline(time.Now().Add(time.Second)) }()
	for number := int64(1); !p.stop.Load(); number++ {
		open := make([]string, p.keys)
		for k := range open {
			open[k] = fmt.Sprintf("k%d", k)
		}
		for again := false; len(open) > 0; again = true {
			if open = p.publish(ctx, ch, open, number, again); len(open) == 0 {
				break
			}
			if ctx.Err() != nil {
				return fmt.Errorf("%d messages could not be sent: %w", len(open), ctx.Err())
			}
			if conn.IsClosed() || ch.IsClosed() {
				_ = conn.CloseDeadline(time.Now().Add(time.Second))
				if conn, ch, err = p.b.dial(ctx); err != nil {
					return err
				}
			}
		}
		time.Sleep(pause)
	}
	return nil
}

// publish sends one number of some keys, perhaps again, and gives back the keys whose message was not confirmed.
func (p *producer) publish(ctx context.Context, ch *amqp.Channel, keys []string, number int64, again bool) []string {
	confirms := make([]*amqp.DeferredConfirmation, len(keys))
	for i, key := range keys {
		c, err := ch.PublishWithDeferredConfirm("", p.queue, true, false, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: audited.Body(key, number, 100)})
		if err != nil {
			break
		}
		confirms[i] = c
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	var open []string
	for i, c := range confirms {
		if c != nil {
			if ok, err := c.WaitContext(ctx); ok && err == nil {
				if again {
					p.record.SentDoubtful(keys[i], number) // another copy, beside the one in doubt
				}
				p.record.Sent(keys[i], number)
				p.sent++
				continue
			}
		}
		// Also where publishing failed at once: a part of it may have left.
		p.record.SentDoubtful(keys[i], number)
		p.doubtful++
		open = append(open, keys[i])
	}
	return open
}
