package providertest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/orderaudit"
)

// cut breaks the manager's connection while at most so many messages are in flight.
func (a *audit) cut(most int) {
	if !a.factory.capabilities().AtomicSends {
		most = 0 // acknowledgements are on their way for an unknown number more
	}
	loss := a.history.Loss(instance, "connection cut", most)
	conn := a.factory.latest()
	// It lasts until the manager has noticed, which it has when it connects again: until then it may start a task.
	a.factory.mu.Lock()
	a.factory.noticed = loss.Done
	a.factory.mu.Unlock()
	a.b.Break(conn)
}

// judge looks at what is left on the queues and proves or refutes the history.
func (a *audit) judge(opts orderaudit.Options) {
	a.Helper()
	a.mu.Lock()
	sent, settled := a.sent, a.settled
	a.mu.Unlock()
	if opts.Incomplete {
		sent = settled
	}
	for _, body := range a.drain(a.b.Queue, sent-settled) {
		a.history.Left(name([]byte(body)))
	}
	if opts.Outputs != nil {
		for _, body := range a.drain(a.b.Other, settled) {
			key, number := name([]byte(body))
			a.history.Output(key, number, 1)
		}
	}
	if !a.factory.capabilities().AtomicSends {
		opts.AckDelay, opts.OutputsRepeat = time.Second, true
	}
	if verdict := a.history.History().Check(opts); !verdict.OK() {
		a.broken("%v", verdict)
	} else {
		a.Log(verdict)
	}
}

// tracked is the provider's factory; it remembers connections.
type tracked struct {
	jms.ConnectionFactory
	name func(jms.Subscription) jms.Subscription

	mu      sync.Mutex
	conns   []jms.Connection
	noticed func() // told at the next Connect
	refuse  int    // so many next calls fail as if no broker answered
}

// refuseNext lets the next n calls of Connect fail, and gives how many of an earlier wish have not been made.
func (f *tracked) refuseNext(n int) (left int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	left, f.refuse = f.refuse, n
	return left
}

func (f *tracked) Connect(ctx context.Context, sub jms.Subscription) (jms.Connection, error) {
	f.mu.Lock()
	if f.noticed != nil {
		f.noticed()
		f.noticed = nil
	}
	refuse := f.refuse > 0
	if refuse {
		f.refuse--
	}
	logger := sub.Logger
	sub = f.name(sub)
	sub.Logger = logger
	f.mu.Unlock()
	if refuse {
		return nil, fmt.Errorf("providertest: refused on purpose: %w", jms.ErrConnectionLost)
	}
	conn, err := f.ConnectionFactory.Connect(ctx, sub)
	if err == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.conns = append(f.conns, conn)
	}
	return conn, err
}

func (f *tracked) latest() jms.Connection {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.conns[len(f.conns)-1]
}

func (f *tracked) capabilities() jms.Capabilities { return f.latest().Capabilities() }

// texts sorts what came of a queue, for comparison.
func texts(all []string) []string {
	all = slices.Clone(all)
	slices.Sort(all)
	return all
}
