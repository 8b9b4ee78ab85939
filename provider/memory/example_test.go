package memory_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"

	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/memory"
)

// A broker with two queues; one message is handled and leads to another.
func Example() {
	broker, err := memory.NewBroker(
		memory.Queue{Name: "PAYMENTS"},
		memory.Queue{Name: "LEDGER"},
	)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := broker.Send(jms.Outgoing{Queue: "PAYMENTS", GroupID: "4711", Body: []byte("12.50")}); err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	conn, err := broker.Connect(ctx, jms.Subscription{Queue: "PAYMENTS", Logger: slog.Default()})
	if err != nil {
		log.Fatal(err)
	}
	session, err := conn.OpenSession(ctx)
	if err != nil {
		log.Fatal(err)
	}
	m, err := session.Receive(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("account %s: %s\n", m.GroupID, m.Body)
	if err := session.Commit(ctx, jms.Outgoing{Queue: "LEDGER", Body: []byte("booked")}); err != nil {
		log.Fatal(err)
	}

	booked, err := broker.Browse("LEDGER")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d payments left, ledger: %s\n", broker.Depth("PAYMENTS"), booked[0].Body)
	// Output:
	// account 4711: 12.50
	// 0 payments left, ledger: booked
}

// A broken connection: what it held is back on the queue, at its place.
func ExampleBroker_Break() {
	broker, err := memory.NewBroker(memory.Queue{Name: "PAYMENTS"})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := broker.SendBatch([]jms.Outgoing{{Queue: "PAYMENTS", Body: []byte("first")}, {Queue: "PAYMENTS", Body: []byte("second")}}); err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	conn, err := broker.Connect(ctx, jms.Subscription{Queue: "PAYMENTS", Logger: slog.Default()})
	if err != nil {
		log.Fatal(err)
	}
	session, err := conn.OpenSession(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := session.Receive(ctx); err != nil {
		log.Fatal(err)
	}

	if _, err := broker.Break("PAYMENTS", memory.Loss{}); err != nil {
		log.Fatal(err)
	}
	err = session.Commit(ctx)
	fmt.Println("connection lost:", errors.Is(err, jms.ErrConnectionLost))
	ready, err := broker.Browse("PAYMENTS")
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range ready {
		fmt.Printf("%s, redelivered next time: %t\n", m.Body, m.DeliveryCount > 0)
	}
	// Output:
	// connection lost: true
	// first, redelivered next time: true
	// second, redelivered next time: false
}

// A commit that is done and whose reply is lost.
func ExampleBroker_SetHook() {
	broker, err := memory.NewBroker(memory.Queue{Name: "PAYMENTS"})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := broker.Send(jms.Outgoing{Queue: "PAYMENTS"}); err != nil {
		log.Fatal(err)
	}
	broker.SetHook(func(ctx context.Context, c memory.Call) error {
		if c.Kind == memory.CallCommit && c.After {
			return jms.ErrCommitUnknown
		}
		return nil
	})
	ctx := context.Background()
	conn, err := broker.Connect(ctx, jms.Subscription{Queue: "PAYMENTS", Logger: slog.Default()})
	if err != nil {
		log.Fatal(err)
	}
	session, err := conn.OpenSession(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := session.Receive(ctx); err != nil {
		log.Fatal(err)
	}
	err = session.Commit(ctx)
	fmt.Println(errors.Is(err, jms.ErrCommitUnknown), broker.Depth("PAYMENTS"))
	// Output: true 0
}
