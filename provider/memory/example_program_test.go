package memory_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/memory"
)

// book is the program under test: it books a payment and says so to another queue.
func book(ctx context.Context, d *keyseq.Delivery) error {
	if string(d.Body) == "broken" {
		return keyseq.DeadLetter(errors.New("not a payment"))
	}
	return d.Send(ctx, jms.Outgoing{Queue: "LEDGER", Body: fmt.Appendf(nil, "%s: %s", d.Key, d.Body)})
}

// A test of a whole program: send, run until all is handled, look at what it has sent.
func Example_program() {
	broker, err := memory.NewBroker(
		memory.Queue{Name: "PAYMENTS"},
		memory.Queue{Name: "PAYMENTS.ERRORS"},
		memory.Queue{Name: "LEDGER"},
	)
	if err != nil {
		log.Fatal(err)
	}
	for _, body := range []string{"12.50", "broken", "7.00"} {
		if _, err := broker.Send(jms.Outgoing{Queue: "PAYMENTS", GroupID: "4711", Body: []byte(body)}); err != nil {
			log.Fatal(err)
		}
	}

	manager, err := keyseq.NewSequenceManager("PAYMENTS", broker, keyseq.ListenerFuncs{Task: book}, keyseq.KeyFromGroupID(),
		func(c *keyseq.Config) { c.DeadLetterQueue = "PAYMENTS.ERRORS" })
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	go func() {
		for broker.Depth("PAYMENTS") > 0 && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		cancel() // all is handled: let Run end
	}()
	if err := manager.Run(ctx); err != nil {
		log.Fatal(err)
	}

	for _, queue := range []string{"LEDGER", "PAYMENTS.ERRORS"} {
		messages, err := broker.Browse(queue)
		if err != nil {
			log.Fatal(err)
		}
		for _, m := range messages {
			fmt.Printf("%s: %s\n", queue, m.Body)
		}
	}
	// Output:
	// LEDGER: 4711: 12.50
	// LEDGER: 4711: 7.00
	// PAYMENTS.ERRORS: broken
}
