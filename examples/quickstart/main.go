// Command quickstart runs the main job of keyseq on the embedded broker: 100 keys with 10 messages each go through 50 workers, one after another
// within a key and many keys at once. Some tasks fail and are retried, one message is dead-lettered. At the end the recorded run is
// audited; the exit status is 1 if order was broken or a message lost.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"text/tabwriter"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/orderaudit"
	"github.com/keyseq/keyseq/provider/memory"
)

const (
	queue, deadQueue = "PAYMENTS", "PAYMENTS.DEAD"
	keys, versions   = 100, 10
	workers          = 50
	taskTime         = 20 * time.Millisecond
	instance         = "quickstart"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		if errors.Is(err, orderaudit.ErrViolated) {
			fmt.Println("order: VIOLATED")
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("order: ok")
}

func run(ctx context.Context) error {
	broker, err := memory.NewBroker(memory.Queue{Name: queue}, memory.Queue{Name: deadQueue})
	if err != nil {
		return err
	}
	defer broker.Close()
	audit := orderaudit.NewRecorder()
	if err := load(broker, audit); err != nil {
		return err
	}

	m, err := keyseq.NewSequenceManager(queue, broker, &payments{audit: audit}, keyseq.KeyFromProperty("account"),
		func(c *keyseq.Config) {
			c.Workers = workers
			c.DeadLetterQueue = deadQueue
			c.Retry = keyseq.RetryPolicy{MaxRetries: 5, Backoff: keyseq.FixedBackoff(50 * time.Millisecond)}
			c.Events = append(c.Events, settlements(audit))
		})
	if err != nil {
		return err
	}
	start := time.Now()
	if err := m.Start(ctx); err != nil {
		return err
	}
	wait(ctx, m, start)
	elapsed := time.Since(start)
	// The context may have ended by Ctrl-C; what runs still gets its time.
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := m.Shutdown(drain); err != nil {
		return err
	}
	report(m.Snapshot(), elapsed)
	return judge(ctx, audit)
}

// payments is the user's code: what a program gives to keyseq.
type payments struct {
	audit *orderaudit.Recorder
}

var errLedgerBusy = errors.New("ledger is busy")

// DoTask books one payment. Version 7 of each account fails twice before it succeeds; one payment is no good at all.
func (p *payments) DoTask(ctx context.Context, d *keyseq.Delivery) error {
	version := sequence(d.Message)
	attempt := p.audit.Start(instance, d.Key, version, d.Attempt)
	select {
	case <-time.After(taskTime):
	case <-ctx.Done():
		attempt.Return(orderaudit.GivenBack)
		return ctx.Err()
	}
	switch {
	case d.Key == "account-042" && version == 5:
		attempt.Return(orderaudit.DeadLettered)
		return keyseq.DeadLetter(errors.New("no such currency"))
	case version == 7 && d.Attempt <= 2:
		attempt.Return(orderaudit.Failed)
		return errLedgerBusy
	}
	attempt.Return(orderaudit.Settled)
	return nil
}

// OnMessageError hears of every failed attempt. A program would undo here what it recorded, if performed and errors.Is(err, jms.ErrRolledBack).
func (p *payments) OnMessageError(context.Context, *keyseq.Delivery, error, bool) {}

// load fills the queue, the versions of the accounts interleaved.
func load(broker *memory.Broker, audit *orderaudit.Recorder) error {
	for v := range versions {
		for k := range keys {
			account := fmt.Sprintf("account-%03d", k)
			_, err := broker.Send(keyseq.Outgoing{Queue: queue, Text: true, Body: fmt.Appendf(nil, "payment %d of %s", v, account),
				Properties: map[string]any{"account": account, "version": int64(v)}})
			if err != nil {
				return err
			}
			audit.Sent(account, int64(v))
		}
	}
	return nil
}

func sequence(m *keyseq.Message) int64 {
	v, _ := m.Properties["version"].(int64)
	return v
}

// settlements records what became of each message, for the audit.
func settlements(audit *orderaudit.Recorder) keyseq.Events {
	end := func(outcome orderaudit.Outcome) func(keyseq.MessageEvent) {
		return func(e keyseq.MessageEvent) {
			audit.End(instance, e.Delivery.Key, sequence(e.Delivery.Message), outcome)
		}
	}
	return keyseq.Events{Committed: end(orderaudit.Settled), DeadLettered: end(orderaudit.DeadLettered), RolledBack: end(orderaudit.GivenBack)}
}

// wait shows the progress, where somebody looks, until everything is settled.
func wait(ctx context.Context, m *keyseq.SequenceManager, start time.Time) {
	progress := io.Discard
	if to, err := os.Stderr.Stat(); err == nil && to.Mode()&os.ModeCharDevice != 0 {
		progress = os.Stderr
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for settled := uint64(0); settled < keys*versions; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		s := m.Snapshot()
		settled = s.Committed + s.DeadLettered
		fmt.Fprintf(progress, "\r%5.1f s: %4d of %d settled, %2d running, %3d keys with work, %2d retrying ",
			time.Since(start).Seconds(), settled, keys*versions, s.Running, s.Keys, s.Retrying)
	}
	fmt.Fprintln(progress)
}

func report(s keyseq.Snapshot, elapsed time.Duration) {
	oneByOne := time.Duration(s.Received+s.Retries) * taskTime
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, row := range [][2]any{
		{"messages", s.Committed + s.DeadLettered},
		{"keys", keys},
		{"workers", workers},
		{"time", elapsed.Round(time.Millisecond)},
		{"one by one it would take", oneByOne.Round(time.Millisecond)},
		{"failed attempts", s.Retries},
		{"dead letters", s.DeadLettered},
	} {
		fmt.Fprintf(w, "%v\t%v\n", row[0], row[1])
	}
	w.Flush()
}

// judge checks the whole run: order, overlap, loss, repeats.
func judge(ctx context.Context, audit *orderaudit.Recorder) error {
	verdict := audit.History().Check(orderaudit.Options{
		Incomplete: ctx.Err() != nil,
		Expect: func(key string, seq int64) orderaudit.Outcome {
			if key == "account-042" && seq == 5 {
				return orderaudit.DeadLettered
			}
			return orderaudit.Settled
		},
	})
	return verdict.Err()
}
