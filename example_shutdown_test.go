package keyseq_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/provider/memory"
)

// Shutdown finishes what runs, gives back the rest in order, and closes everything.
func ExampleSequenceManager_Shutdown() {
	broker, err := memory.NewBroker(memory.Queue{Name: "PAYMENTS"})
	if err != nil {
		log.Fatal(err)
	}
	for _, body := range []string{"first", "second", "third"} {
		if _, err := broker.Send(keyseq.Outgoing{Queue: "PAYMENTS", GroupID: "4711", Body: []byte(body)}); err != nil {
			log.Fatal(err)
		}
	}
	begun, finish := make(chan struct{}), make(chan struct{})
	task := func(ctx context.Context, d *keyseq.Delivery) error {
		close(begun)
		<-finish
		fmt.Printf("%s: done\n", d.Body)
		return nil
	}
	m, err := keyseq.NewSequenceManager("PAYMENTS", broker, keyseq.ListenerFuncs{Task: task}, keyseq.KeyFromGroupID())
	if err != nil {
		log.Fatal(err)
	}
	if err := m.Start(context.Background()); err != nil {
		log.Fatal(err)
	}
	<-begun

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second) // then what runs is cancelled
	defer cancel()
	time.AfterFunc(10*time.Millisecond, func() { close(finish) })
	if err := m.Shutdown(ctx); err != nil {
		log.Fatal(err) // names the keys whose tasks were cancelled
	}
	left, err := broker.Browse("PAYMENTS")
	if err != nil {
		log.Fatal(err)
	}
	for _, message := range left {
		fmt.Printf("%s: back on the queue\n", message.Body)
	}
	// Output:
	// first: done
	// second: back on the queue
	// third: back on the queue
}
