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

// What a task sends goes out together with the settlement of its message: a failed attempt sends nothing.
func ExampleDelivery_Send() {
	broker, err := memory.NewBroker(memory.Queue{Name: "PAYMENTS"}, memory.Queue{Name: "LEDGER"})
	if err != nil {
		log.Fatal(err)
	}
	for _, body := range []string{"12.50"} {
		if _, err := broker.Send(keyseq.Outgoing{Queue: "PAYMENTS", GroupID: "4711", Body: []byte(body)}); err != nil {
			log.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	task := func(ctx context.Context, d *keyseq.Delivery) error {
		entry := keyseq.Outgoing{Queue: "LEDGER", Body: fmt.Appendf(nil, "booked %s at attempt %d", d.Body, d.Attempt)}
		if err := d.Send(ctx, entry); err != nil {
			return err
		}
		if d.Attempt == 1 {
			return errors.New("rates are not available") // what was sent is dropped
		}
		stop()
		return nil
	}
	m, err := keyseq.NewSequenceManager("PAYMENTS", broker, keyseq.ListenerFuncs{Task: task}, keyseq.KeyFromGroupID(), func(c *keyseq.Config) {
		c.Retry.Backoff = keyseq.FixedBackoff(time.Millisecond)
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := m.Run(ctx); err != nil {
		log.Fatal(err)
	}
	entries, err := broker.Browse("LEDGER")
	if err != nil {
		log.Fatal(err)
	}
	for _, entry := range entries {
		fmt.Printf("%s\n", entry.Body)
	}
	// Output:
	// booked 12.50 at attempt 2
}
