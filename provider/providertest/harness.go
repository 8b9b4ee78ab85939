package providertest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
)

// Harness tells the suite how to reach the provider under test.
type Harness struct {
	// New makes what one case needs: two empty queues and the way to reach them. It is called once for every case, on the
	// goroutine of the case (inside its bubble if Bubble is set), and registers with t.Cleanup what must be undone. Required.
	New func(t testing.TB) Broker
	// NewSingleActive makes a broker whose Queue can be read with Subscription.SingleActiveConsumer, for providers where that
	// is a property of the queue. nil: New. If it is set, RunManager uses it and reads with a single active consumer.
	NewSingleActive func(t testing.TB) Broker
	// Config changes the settings of the managers that RunManager makes, after the case has changed them: ReturnDelay for a broker that
	// the test has told to notice losses early, for example. May be nil.
	Config func(c *keyseq.Config)
	// Bubble runs each case in a bubble of testing/synctest, with virtual time. Only for a provider that does no real I/O.
	Bubble bool
	// Patience is how long the suite waits for what must happen before it fails a case. Default 10 s.
	Patience time.Duration
	// Quiet is how long the suite watches that something does not happen. Default 200 ms; longer makes the suite slower and
	// stricter.
	Quiet time.Duration
	// Latency is the most time "promptly" may mean: from the arrival of a message, the end of a context or the close of a
	// connection to the return of a waiting Receive. Default 2 s.
	Latency time.Duration

	single bool // NewSingleActive was given
}

// Broker is what Harness.New gives to one case. Functions are called from several goroutines at once; those left nil skip the cases that
// need them.
type Broker struct {
	// Factory is the provider under test. Required.
	Factory jms.ConnectionFactory
	// Queue is empty and read by the case. Other is empty too; the case sends to it and reads it. Both are required.
	Queue, Other string
	// Unknown is the name of a queue that does not exist. "": cases about unknown queues are skipped.
	Unknown string
	// Send puts messages on a queue, in this order, and returns when the broker has stored them. The Queue field of the messages
	// counts for nothing. Required; it must not use a connection that reads Queue.
	Send func(ctx context.Context, queue string, out ...jms.Outgoing) error
	// Break cuts a connection that Factory made as a network failure would: nobody says goodbye, nothing is given back in order.
	// It must not wait for calls that are under way. Each connection was made with a Subscription.Client of its own, by which the
	// broker's tools can find it.
	Break func(c jms.Connection)
	// LoseRole takes the active role from a connection that has it, as a broker that prefers another instance would.
	LoseRole func(c jms.Connection)
	// Unsettled counts the messages of a queue that were sent to a client and are not settled, prefetched ones included.
	Unsettled func(ctx context.Context, queue string) (int, error)
	// Fill makes the queue refuse further messages with ErrBusy, though it exists, until undo is called.
	Fill func(queue string) (undo func())
	// Unreachable is a factory of the provider that points where no broker answers.
	Unreachable jms.ConnectionFactory
}

func (h Harness) withDefaults() Harness {
	h.single = h.NewSingleActive != nil
	if !h.single {
		h.NewSingleActive = h.New
	}
	if h.Patience <= 0 {
		h.Patience = 10 * time.Second
	}
	if h.Quiet <= 0 {
		h.Quiet = 200 * time.Millisecond
	}
	if h.Latency <= 0 {
		h.Latency = 2 * time.Second
	}
	return h
}

// check reports everything that the harness left out at once.
func (b Broker) check(t testing.TB) {
	t.Helper()
	var missing []string
	for name, absent := range map[string]bool{
		"Factory": b.Factory == nil, "Queue": b.Queue == "", "Other": b.Other == "", "Send": b.Send == nil,
	} {
		if absent {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		t.Fatalf("providertest: Harness.New left out of its Broker: %s", strings.Join(missing, ", "))
	}
	if b.Queue == b.Other {
		t.Fatalf("providertest: Harness.New gave Queue and Other the same name %q: they must be two queues", b.Queue)
	}
}
