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

// A failed message is tried again in place, with growing pauses, while its key waits and other keys go on.
func ExampleRetryPolicy() {
	broker, err := memory.NewBroker(memory.Queue{Name: "PAYMENTS"})
	if err != nil {
		log.Fatal(err)
	}
	for _, body := range []string{"first", "second"} {
		if _, err := broker.Send(keyseq.Outgoing{Queue: "PAYMENTS", GroupID: "4711", Body: []byte(body)}); err != nil {
			log.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	task := func(ctx context.Context, d *keyseq.Delivery) error {
		if string(d.Body) == "first" && d.Attempt < 3 {
			fmt.Printf("%s, attempt %d: fails\n", d.Body, d.Attempt)
			return errors.New("database is down")
		}
		fmt.Printf("%s, attempt %d: done\n", d.Body, d.Attempt)
		if string(d.Body) == "second" {
			stop()
		}
		return nil
	}
	m, err := keyseq.NewSequenceManager("PAYMENTS", broker, keyseq.ListenerFuncs{Task: task}, keyseq.KeyFromGroupID(), func(c *keyseq.Config) {
		c.Retry = keyseq.RetryPolicy{
			MaxRetries:  5,
			Backoff:     keyseq.StepBackoff(time.Millisecond, 5*time.Millisecond, time.Second),
			OnExhausted: keyseq.ActionStop,
		}
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := m.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// first, attempt 1: fails
	// first, attempt 2: fails
	// first, attempt 3: done
	// second, attempt 1: done
}
