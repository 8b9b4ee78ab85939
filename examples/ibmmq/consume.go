package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/orderaudit"
	"github.com/keyseq/keyseq/provider/ibmmq"
)

const instance = "example"

// ledger is the user's code.
type ledger struct {
	audit *orderaudit.Recorder // nil: nothing is recorded
	done  atomic.Int64         // payments that have left the queue
	full  chan struct{}        // closed when those of one load have
}

func newLedger(audit *orderaudit.Recorder) *ledger {
	return &ledger{audit: audit, full: make(chan struct{})}
}

var errBusy = errors.New("the ledger is busy")

// DoTask books one payment. Every fifth of an account fails once before it succeeds; one payment is no good at all.
func (l *ledger) DoTask(ctx context.Context, d *keyseq.Delivery) (err error) {
	number, _ := d.Properties["number"].(int64)
	intent := orderaudit.Settled
	if l.audit != nil {
		attempt := l.audit.Start(instance, d.Key, number, d.Attempt)
		defer func() { attempt.Return(intent) }()
	}
	time.Sleep(5 * time.Millisecond) // the work
	switch {
	case d.Key == "account-042" && number == 4:
		intent = orderaudit.DeadLettered
		return keyseq.DeadLetter(errors.New("no such currency"))
	case number%5 == 3 && d.Attempt == 1:
		intent = orderaudit.Failed
		return errBusy
	}
	return nil
}

// OnMessageError hears of every failed attempt. A program would undo here what it recorded, if booked and errors.Is(err, jms.ErrRolledBack).
func (l *ledger) OnMessageError(_ context.Context, d *keyseq.Delivery, err error, booked bool) {
	slog.Debug("payment failed", "account", d.Key, "attempt", d.Attempt, "error", err, "booked", booked)
}

// settled is for the events of the manager: what has become of a payment.
func (l *ledger) settled(outcome orderaudit.Outcome) func(keyseq.MessageEvent) {
	return func(e keyseq.MessageEvent) {
		if number, ok := e.Delivery.Properties["number"].(int64); ok && l.audit != nil {
			l.audit.End(instance, e.Delivery.Key, number, outcome)
		}
		if outcome != orderaudit.GivenBack && l.done.Add(1) == accounts*payments {
			close(l.full)
		}
	}
}

// consume reads the queue until ctx ends. Several processes may do so at once: the lock queue makes one of them active.
func consume(ctx context.Context, l *ledger) error {
	cf, err := connection()
	if err != nil {
		return err
	}
	factory := ibmmq.FromJMS20(cf, func(f *ibmmq.Factory) {
		f.Heartbeat = 5 * time.Second // HBINT of the channel in 20-keyseq.mqsc
		f.LockQueue = lockQueue
	})
	m, err := keyseq.NewSequenceManager(queue, factory, l, keyseq.KeyFromProperty("account"), func(c *keyseq.Config) {
		c.SingleActiveConsumer = true
		c.Workers = 50
		c.Retry = keyseq.RetryPolicy{MaxRetries: 5, Backoff: keyseq.FixedBackoff(50 * time.Millisecond)}
		c.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
		c.Events = append(c.Events, keyseq.Events{
			Committed: l.settled(orderaudit.Settled), DeadLettered: l.settled(orderaudit.DeadLettered), RolledBack: l.settled(orderaudit.GivenBack),
		})
	})
	if err != nil {
		return err
	}
	began := time.Now()
	err = m.Run(ctx)
	fmt.Printf("%d payments in %v\n", l.done.Load(), time.Since(began).Round(time.Millisecond))
	return err
}
