package faulty_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"

	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/faulty"
	"github.com/keyseq/keyseq/provider/memory"
)

// The second commit is done, and its reply is lost.
func Example() {
	broker, err := memory.NewBroker(memory.Queue{Name: "PAYMENTS"})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := broker.SendBatch([]jms.Outgoing{{Queue: "PAYMENTS"}, {Queue: "PAYMENTS"}}); err != nil {
		log.Fatal(err)
	}
	factory := faulty.New(broker, faulty.On(faulty.Commit).Nth(2).After().Return(jms.ErrCommitUnknown))

	ctx := context.Background()
	conn, err := factory.Connect(ctx, jms.Subscription{Queue: "PAYMENTS", Client: "me", Logger: slog.Default()})
	if err != nil {
		log.Fatal(err)
	}
	session, err := conn.OpenSession(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		if _, err := session.Receive(ctx); err != nil {
			log.Fatal(err)
		}
		err := session.Commit(ctx)
		fmt.Printf("in doubt: %t, left: %d\n", errors.Is(err, jms.ErrCommitUnknown), broker.Depth("PAYMENTS"))
	}
	for _, e := range factory.Events() {
		fmt.Println(e.Rule)
	}
	// Output:
	// in doubt: false, left: 1
	// in doubt: true, left: 0
	// faulty.On(faulty.Commit).Nth(2).After().Return(jms.ErrCommitUnknown)
}
