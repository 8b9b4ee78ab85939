package keyseq_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/keyseq/keyseq"
)

// booking is the code under test.
func booking(ctx context.Context, d *keyseq.Delivery) error {
	if len(d.Body) == 0 {
		return keyseq.DeadLetter(errors.New("empty"))
	}
	return d.Send(ctx, keyseq.Outgoing{Queue: "LEDGER", Body: d.Body})
}

// A handler is tested without a broker and without a manager: a literal Delivery will do.
func ExampleDelivery() {
	d := &keyseq.Delivery{Message: &keyseq.Message{Body: []byte("12.50")}, Key: "4711", Attempt: 1}
	err := booking(context.Background(), d)
	fmt.Println(err, len(d.Staged()), d.Staged()[0].Queue)

	empty := &keyseq.Delivery{Message: &keyseq.Message{}, Key: "4711", Attempt: 1}
	fmt.Println(booking(context.Background(), empty))
	// Output:
	// <nil> 1 LEDGER
	// dead letter: empty
}
