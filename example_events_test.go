package keyseq_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/provider/memory"
)

// Events tell what happens, for metrics and traces; Snapshot has counters for the rest.
func ExampleEvents() {
	broker, err := memory.NewBroker(memory.Queue{Name: "PAYMENTS"})
	if err != nil {
		log.Fatal(err)
	}
	for _, body := range []string{"7.00"} {
		if _, err := broker.Send(keyseq.Outgoing{Queue: "PAYMENTS", GroupID: "4711", Body: []byte(body)}); err != nil {
			log.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	metrics := keyseq.Events{
		State: func(from, to keyseq.State, err error) { fmt.Println("state:", to) },
		Retrying: func(e keyseq.MessageEvent) {
			fmt.Printf("key %s: attempt %d failed: %v\n", e.Delivery.Key, e.Delivery.Attempt, e.Err)
		},
		Committed: func(e keyseq.MessageEvent) {
			fmt.Printf("key %s: settled at attempt %d\n", e.Delivery.Key, e.Delivery.Attempt)
			stop()
		},
	}
	task := func(ctx context.Context, d *keyseq.Delivery) error {
		if d.Attempt == 1 {
			return errors.New("busy")
		}
		return nil
	}
	m, err := keyseq.NewSequenceManager("PAYMENTS", broker, keyseq.ListenerFuncs{Task: task}, keyseq.KeyFromGroupID(), func(c *keyseq.Config) {
		c.Retry.Backoff = keyseq.FixedBackoff(time.Millisecond)
		c.Events = append(c.Events, metrics) // several listeners are told in turn
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := m.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// state: connecting
	// state: active
	// key 4711: attempt 1 failed: busy
	// key 4711: settled at attempt 2
	// state: draining
	// state: stopped
}
