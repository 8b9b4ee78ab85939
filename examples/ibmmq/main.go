// Command ibmmq loads an IBM MQ queue with payments and handles them in sequence: one after another within an account, many accounts
// at once. Some tasks fail and are retried, one payment is dead-lettered. At the end the recorded run is audited; the exit status is 1 if order
// was broken or a message lost.
//
//	docker compose up -d --wait        # IBM's developer image, with compose.yaml of this directory
//	go run .                           # load, consume, audit
//
// The parts also run alone; start a second consumer, and one of them is active while the other stands by:
//
//	go run . load
//	go run . consume                   # until interrupted
//
// docs/ibmmq.md says what must be installed. MQ_CONNECTIONS, MQ_QUEUE_MANAGER, MQ_CHANNEL, MQ_USER and MQ_PASSWORD lead to another
// queue manager.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/keyseq/keyseq/orderaudit"
)

const (
	queue     = "DEV.SEQ" // defined by 20-keyseq.mqsc, with its backout queue DEV.SEQ.BO and its lock queue
	lockQueue = "DEV.SEQ.LOCK"
	accounts  = 100 // keys
	payments  = 10  // messages of each
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, append(os.Args[1:], "")[0]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, command string) error {
	switch command {
	case "load":
		return load(nil)
	case "consume":
		return consume(ctx, newLedger(nil))
	case "":
		return demo(ctx)
	}
	return fmt.Errorf("unknown command %q: load, consume, or nothing for both and an audit", command)
}

// demo loads the queue, handles everything, and judges the record of it.
func demo(ctx context.Context) error {
	audit := orderaudit.NewRecorder()
	if err := load(audit); err != nil {
		return err
	}
	l := newLedger(audit)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-l.full:
		case <-ctx.Done():
		}
		cancel()
	}()
	if err := consume(ctx, l); err != nil {
		return err
	}
	verdict := audit.History().Check(orderaudit.Options{})
	fmt.Println(verdict)
	if err := verdict.Err(); err != nil {
		return err
	}
	fmt.Println("order: ok")
	return nil
}
