package keyseq_test

import (
	"context"
	"fmt"
	"log"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/provider/memory"
)

// A queue is read, its messages handled in order for each account, until the context ends.
func Example() {
	broker, err := memory.NewBroker(memory.Queue{Name: "PAYMENTS"})
	if err != nil {
		log.Fatal(err)
	}
	for _, body := range []string{"open", "deposit 10", "withdraw 4", "close"} {
		if _, err := broker.Send(keyseq.Outgoing{Queue: "PAYMENTS", GroupID: "4711", Body: []byte(body)}); err != nil {
			log.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	task := func(ctx context.Context, d *keyseq.Delivery) error {
		fmt.Printf("account %s: %s\n", d.Key, d.Body)
		if string(d.Body) == "close" {
			stop() // a program would run until it gets a signal
		}
		return nil // settles the message
	}
	m, err := keyseq.NewSequenceManager("PAYMENTS", broker, keyseq.ListenerFuncs{Task: task}, keyseq.KeyFromGroupID())
	if err != nil {
		log.Fatal(err)
	}
	if err := m.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// account 4711: open
	// account 4711: deposit 10
	// account 4711: withdraw 4
	// account 4711: close
}
