package ibmmq_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/ibmmq"
)

// Messages that come in the very moment in which a slice of MQGET ends, or the context of Receive does, are neither lost nor received twice nor passed
// over: each Receive that fails has left nothing in the unit of work.
func TestReceiveAtTheEndOfItsWait(t *testing.T) {
	b := newBench(t)
	const messages = 400
	s := b.session(b.connect(b.factory(func(f *ibmmq.Factory) { f.WaitSlice = time.Millisecond }), jms.Subscription{}))
	send := b.sender()
	sent := make(chan error, 1)
	go func() {
		for n := range messages {
			if err := send(context.Background(), b.queue, jms.Outgoing{Text: true, Body: fmt.Append(nil, n)}); err != nil {
				sent <- err
				return
			}
			for end := time.Now().Add(rand.N(2 * time.Millisecond)); time.Now().Before(end); time.Sleep(50 * time.Microsecond) {
			}
		}
		sent <- nil
	}()
	ended := 0
	limit := time.Now().Add(time.Minute)
	for next := 0; next < messages; {
		ctx, cancel := context.WithTimeout(t.Context(), rand.N(3*time.Millisecond))
		if next%2 == 0 { // cancelled, and not at a deadline that the last slice knows
			ctx, cancel = context.WithCancel(t.Context())
			time.AfterFunc(rand.N(3*time.Millisecond), cancel)
		}
		m, err := s.Receive(ctx)
		cancel()
		switch {
		case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
			if ended++; time.Now().After(limit) {
				t.Fatalf("%d of %d messages came within a minute", next, messages)
			}
			continue
		case err != nil:
			t.Fatal(err)
		}
		if want := fmt.Sprint(next); string(m.Body) != want || m.DeliveryCount != 1 {
			t.Fatalf("received %s, delivery %d; want %s for the first time", m.Body, m.DeliveryCount, want)
		}
		if err := s.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		next++
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	if ended < 50 {
		t.Errorf("%d Receives ended without a message: the test needs some", ended)
	}
}
