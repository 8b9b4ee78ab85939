package keyseq_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/memory"
)

// account remembers what it has booked.
type account struct{ booked []string }

// DoTask books, once: a message can come again after a loss.
func (a *account) DoTask(ctx context.Context, d *keyseq.Delivery) error {
	a.booked = append(a.booked, string(d.Body))
	return nil
}

// OnMessageError undoes what was recorded if the message certainly comes again. After jms.ErrCommitUnknown it may have been settled: the record
// stays, and a repeat has to be expected.
func (a *account) OnMessageError(ctx context.Context, d *keyseq.Delivery, err error, taskPerformed bool) {
	if taskPerformed && errors.Is(err, jms.ErrRolledBack) {
		fmt.Printf("%s was rolled back: undone\n", d.Body)
		a.booked = a.booked[:len(a.booked)-1]
	}
}

// A Listener that keeps a record hears of a commit that failed.
func ExampleListener() {
	broker, err := memory.NewBroker(memory.Queue{Name: "PAYMENTS"})
	if err != nil {
		log.Fatal(err)
	}
	for _, body := range []string{"first", "second"} {
		if _, err := broker.Send(keyseq.Outgoing{Queue: "PAYMENTS", GroupID: "4711", Body: []byte(body)}); err != nil {
			log.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	broker.SetHook(func(_ context.Context, c memory.Call) error { // the first commit is rolled back by the broker
		if c.Kind == memory.CallCommit && !c.After {
			broker.SetHook(nil)
			return jms.ErrRolledBack
		}
		return nil
	})
	var a account
	m, err := keyseq.NewSequenceManager("PAYMENTS", broker, &a, keyseq.KeyFromGroupID(), func(c *keyseq.Config) {
		c.Events = append(c.Events, keyseq.Events{Committed: func(e keyseq.MessageEvent) {
			if string(e.Delivery.Body) == "second" {
				stop()
			}
		}})
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := m.Run(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println("booked:", a.booked)
	// Output:
	// first was rolled back: undone
	// booked: [first second]
}
