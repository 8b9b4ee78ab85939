package keyseq

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Delivery is one attempt at a message; every attempt gets a new one. In a unit test of a handler a literal will do:
//
//	d := &keyseq.Delivery{Message: &keyseq.Message{Body: body}, Key: "4711", Attempt: 1}
type Delivery struct {
	// Message is what was received; read-only.
	*Message
	// Queue is where it came from, Key what the KeyExtractor made of it.
	Queue, Key string
	// Attempt counts from 1 what the task has seen of this message, also attempts whose commit was rolled back or is in doubt, which use up no
	// retry. Attempts that the manager interrupted do not count. They survive a redelivery while the process lives, where the provider's message IDs
	// are stable; elsewhere the count begins anew.
	Attempt int
	// Epoch grows with every activation of an instance, across processes as far as their clocks agree (it is made of the wall clock's
	// nanoseconds). A store that remembers the highest epoch it has seen of a key can refuse a late writer that was frozen.
	Epoch uint64
	// ReceivedAt is when the message was received by this manager.
	ReceivedAt time.Time

	mu     sync.Mutex
	staged []Outgoing
	over   bool
}

// Send stages messages that go out together with the settlement of this one, in the order of the calls; nothing goes out
// if the attempt fails. It does no I/O, so ctx is only looked at: its error is returned if it has ended. After the
// attempt it returns ErrStale. Bodies and properties must not be changed afterwards. It is safe for concurrent use.
func (d *Delivery) Send(ctx context.Context, out ...Outgoing) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for i, o := range out {
		if o.Queue == "" {
			return fmt.Errorf("keyseq: send %d of %d of message %q, key %q: Outgoing.Queue is empty: name the queue to send to", i+1, len(out), d.messageID(), d.Key)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over {
		return fmt.Errorf("keyseq: send for message %q, key %q: %w: send before DoTask returns", d.messageID(), d.Key, ErrStale)
	}
	d.staged = append(d.staged, out...)
	return nil
}

// Staged returns what Send has staged, for unit tests of a handler.
func (d *Delivery) Staged() []Outgoing {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.staged)
}

func (d *Delivery) messageID() string {
	if d.Message == nil {
		return ""
	}
	return d.ID
}

// close ends the attempt for Send and returns what was staged.
func (d *Delivery) close() []Outgoing {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over = true
	return d.staged
}
