package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/orderaudit"
	"github.com/keyseq/keyseq/provider/rabbitmq"
)

// shipping handles orders. It prints a line for each, which the demo counts, and records what it does if record is not nil.
type shipping struct {
	name   string
	record *orderaudit.Recorder
}

func (s *shipping) DoTask(ctx context.Context, d *keyseq.Delivery) error {
	if s.record != nil {
		version, _ := d.Properties["version"].(int64)
		a := s.record.Start(s.name, d.Key, version, d.Attempt)
		defer a.Return(orderaudit.Settled)
	}
	time.Sleep(100 * time.Millisecond) // the work
	fmt.Printf("%s: %s\n", s.name, d.Body)
	return nil
}

func (s *shipping) OnMessageError(ctx context.Context, d *keyseq.Delivery, err error, shipped bool) {
	slog.Warn("order failed", "order", d.Key, "attempt", d.Attempt, "error", err, "shipped", shipped)
}

// consume reads the queue until ctx ends. Several instances may do so at once: one is active, the others wait.
func consume(ctx context.Context, url, name, record string) error {
	s := &shipping{name: name}
	if record != "" {
		var err error
		if s.record, err = orderaudit.OpenFile(record); err != nil {
			return err
		}
		defer s.record.Close()
	}
	factory := &rabbitmq.Factory{URL: url, Name: "example " + name, Declare: true, Arguments: arguments}
	m, err := keyseq.NewSequenceManager(queue, factory, s, keyseq.KeyFromProperty(rabbitmq.RoutingKey), func(c *keyseq.Config) {
		c.SingleActiveConsumer = true
		c.Workers = 20
		c.Retry.MaxRetries = 5
		c.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
		c.Events = append(c.Events, keyseq.Events{
			Committed: func(e keyseq.MessageEvent) {
				if version, ok := e.Delivery.Properties["version"].(int64); ok && s.record != nil {
					s.record.End(name, e.Delivery.Key, version, orderaudit.Settled)
				}
			},
			State: func(_, to keyseq.State, _ error) { fmt.Printf("%s is %v\n", name, to) },
		})
	})
	if err != nil {
		return err
	}
	return m.Run(ctx)
}
