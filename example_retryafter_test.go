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

// A task that knows when another try makes sense says so, for instance from an HTTP Retry-After.
func ExampleRetryAfter() {
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
	began := time.Now()
	task := func(ctx context.Context, d *keyseq.Delivery) error {
		if d.Attempt == 1 {
			return keyseq.RetryAfter(20*time.Millisecond, errors.New("429 Too Many Requests"))
		}
		fmt.Println("attempt", d.Attempt, "came no earlier:", time.Since(began) >= 20*time.Millisecond)
		stop()
		return nil
	}
	m, err := keyseq.NewSequenceManager("PAYMENTS", broker, keyseq.ListenerFuncs{Task: task}, keyseq.KeyFromGroupID())
	if err != nil {
		log.Fatal(err)
	}
	if err := m.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// attempt 2 came no earlier: true
}
