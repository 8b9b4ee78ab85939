package keyseq_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/provider/memory"
)

// A task that finds that nothing can go on ends the run: its message is given back, and Run returns the reason.
func ExampleStopAll() {
	broker, err := memory.NewBroker(memory.Queue{Name: "PAYMENTS"})
	if err != nil {
		log.Fatal(err)
	}
	for _, body := range []string{"7.00"} {
		if _, err := broker.Send(keyseq.Outgoing{Queue: "PAYMENTS", GroupID: "4711", Body: []byte(body)}); err != nil {
			log.Fatal(err)
		}
	}
	corrupt := errors.New("ledger is corrupt")
	task := func(ctx context.Context, d *keyseq.Delivery) error { return keyseq.StopAll(corrupt) }
	m, err := keyseq.NewSequenceManager("PAYMENTS", broker, keyseq.ListenerFuncs{Task: task}, keyseq.KeyFromGroupID())
	if err != nil {
		log.Fatal(err)
	}
	err = m.Run(context.Background())
	fmt.Println("ended by the ledger:", errors.Is(err, corrupt))
	fmt.Println("messages on the queue:", broker.Depth("PAYMENTS"))
	// Output:
	// ended by the ledger: true
	// messages on the queue: 1
}
