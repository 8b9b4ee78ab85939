package keyseq_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/provider/memory"
)

// A message that is not wanted is removed as if it had been handled, and counted.
func ExampleDiscard() {
	broker, err := memory.NewBroker(memory.Queue{Name: "PAYMENTS"})
	if err != nil {
		log.Fatal(err)
	}
	for _, body := range []string{"ping", "7.00"} {
		if _, err := broker.Send(keyseq.Outgoing{Queue: "PAYMENTS", GroupID: "4711", Body: []byte(body)}); err != nil {
			log.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	task := func(ctx context.Context, d *keyseq.Delivery) error {
		if string(d.Body) == "ping" {
			return keyseq.Discard(errors.New("only a ping"))
		}
		fmt.Printf("booked %s\n", d.Body)
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
	s := m.Snapshot()
	fmt.Println("committed:", s.Committed, "discarded:", s.Discarded, "left:", broker.Depth("PAYMENTS"))
	// Output:
	// booked 7.00
	// committed: 1 discarded: 1 left: 0
}
