package keyseq_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/provider/memory"
)

// A message that no retry will help goes to the dead-letter queue, with the reason; its key goes on.
func ExampleDeadLetter() {
	broker, err := memory.NewBroker(memory.Queue{Name: "PAYMENTS"}, memory.Queue{Name: "PAYMENTS.DEAD"})
	if err != nil {
		log.Fatal(err)
	}
	for _, body := range []string{"no amount", "7.00"} {
		if _, err := broker.Send(keyseq.Outgoing{Queue: "PAYMENTS", GroupID: "4711", Body: []byte(body)}); err != nil {
			log.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	task := func(ctx context.Context, d *keyseq.Delivery) error {
		if string(d.Body) == "no amount" {
			return keyseq.DeadLetter(errors.New("not a payment"))
		}
		fmt.Printf("booked %s\n", d.Body)
		stop()
		return nil
	}
	m, err := keyseq.NewSequenceManager("PAYMENTS", broker, keyseq.ListenerFuncs{Task: task}, keyseq.KeyFromGroupID(), func(c *keyseq.Config) {
		c.DeadLetterQueue = "PAYMENTS.DEAD"
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := m.Run(ctx); err != nil {
		log.Fatal(err)
	}
	dead, err := broker.Browse("PAYMENTS.DEAD")
	if err != nil {
		log.Fatal(err)
	}
	for _, message := range dead {
		fmt.Printf("dead: %s (key %s: %s)\n", message.Body, message.Properties["keyseq_key"], message.Properties["keyseq_reason"])
	}
	// Output:
	// booked 7.00
	// dead: no amount (key 4711: dead letter: not a payment)
}
