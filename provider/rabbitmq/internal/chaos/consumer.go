package main

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"math/rand/v2"
	"os"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/orderaudit"
	"github.com/keyseq/keyseq/provider/rabbitmq"
	"github.com/keyseq/keyseq/provider/rabbitmq/internal/audited"
)

// heartbeat is short, so that a dead link is noticed within a round: 1.5 of it here, 3 by the broker.
const heartbeat = 2 * time.Second

// consume is the process of one consumer: it reads until it is told to end.
func consume(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("consumer", flag.ExitOnError)
	url := flags.String("url", "", "broker")
	queue := flags.String("queue", "", "to read")
	out := flags.String("out", "", "queue to send one message to for each that is handled; \"\": none")
	name := flags.String("name", "", "of the instance")
	file := flags.String("record", "", "file of the history")
	window := flags.Int("window", 100, "MaxInFlight")
	task := flags.Duration("task", 0, "longest task")
	takeover := flags.Duration("takeover", 0, "TakeoverDelay")
	exclusive := flags.Bool("exclusive", false, "elect the active instance by an exclusive consumer")
	_ = flags.Parse(args) // ExitOnError
	record, err := orderaudit.OpenFile(*file)
	if err != nil {
		return err
	}
	c := &audited.Consumer{Instance: *name, Record: record, Task: func(ctx context.Context, d *keyseq.Delivery) error {
		if *task > 0 {
			select {
			case <-time.After(rand.N(*task)):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		if rand.IntN(50) == 0 {
			return errors.New("failed on purpose")
		}
		if *out != "" {
			return d.Send(ctx, jms.Outgoing{Queue: *out, Body: d.Body})
		}
		return nil
	}}
	m, err := keyseq.NewSequenceManager(*queue, &rabbitmq.Factory{URL: *url, Heartbeat: heartbeat, Exclusive: *exclusive}, c, keyseq.KeyFromBodyBefore("."), func(k *keyseq.Config) {
		k.SingleActiveConsumer = true
		k.Workers, k.MaxInFlight, k.TakeoverDelay = 20, *window, *takeover
		k.Reconnect = keyseq.ExponentialBackoff(50*time.Millisecond, time.Second)
		k.Retry = keyseq.RetryPolicy{MaxRetries: keyseq.Unlimited, Backoff: keyseq.FixedBackoff(5 * time.Millisecond)}
		k.CallTimeout, k.DrainTimeout = 5*time.Second, 10*time.Second
		k.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
		k.Events = append(k.Events, c.Events(), keyseq.Events{State: func(_, to keyseq.State, err error) {
			if to == keyseq.StateConnecting && err != nil { // also what nobody caused: a busy machine misses heartbeats
				record.Loss(*name, "noticed: "+err.Error(), 0)
			}
		}})
	})
	if err != nil {
		return err
	}
	record.InstanceStarted(*name)
	if *takeover > 0 {
		record.Takeover(*name, *takeover)
	}
	err = m.Run(ctx)
	if errors.Is(err, keyseq.ErrDrainTimeout) && ctx.Err() != nil { // the broker was away while it was told to end
		err = nil
	}
	return errors.Join(err, record.Close())
}
