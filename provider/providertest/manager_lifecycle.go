package providertest

import (
	"context"
	"errors"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/orderaudit"
)

var lifecycleCases = []managerCase{
	{"G8", "Reconnects", "an idle manager whose connection is lost, and whose broker does not answer for a while, reconnects and goes on", reconnects},
	{"G8", "UnknownQueue", "Run returns ErrConfig for a queue that does not exist", runUnknownQueue},
	{"G8", "UnknownTarget", "a send to a queue that does not exist is a failed attempt, never a silent success", unknownTarget},
	{"G8", "RunEndsWithContext", "Run returns nil when its context ends and all that ran is settled", runEndsWithContext},
	{"G8", "Restart", "a manager starts again after Shutdown, and another one after it, without losing or mixing anything", restart},
}

func nothing(context.Context, *keyseq.Delivery, int) error { return nil }

func reconnects(a *audit) {
	m := a.started(nothing, nil)
	a.cuts(1)
	const refused = 5
	a.factory.refuseNext(refused)
	a.cut(1)
	a.load(keys(3), 0, 3)
	a.untilSettled(9)
	// Where a session is a connection of its own, only sessions may have been lost: then nothing had to be connected anew.
	if left := a.factory.refuseNext(0); left > 0 && left < refused {
		a.broken("the manager reads although %d of %d calls of Connect, which find no broker, are still to come", left, refused)
	}
	a.shutdown(m)
	a.judge(orderaudit.Options{})
}

func runUnknownQueue(a *audit) {
	a.needs(a.b.Unknown != "", "Unknown, the name of a queue that does not exist")
	listener := keyseq.ListenerFuncs{Task: func(context.Context, *keyseq.Delivery) error { return nil }}
	m, err := keyseq.NewSequenceManager(a.b.Unknown, a.factory, listener, keyseq.KeyFromBodyBefore("."),
		func(c *keyseq.Config) { c.SingleActiveConsumer = a.single })
	if err != nil {
		a.Fatalf("NewSequenceManager: %v", err)
	}
	if err := a.do("Run on an unknown queue", func() error { return m.Run(a.ctx) }); !errors.Is(err, jms.ErrConfig) {
		a.broken("Run returned %v, want ErrConfig", err)
	}
}

func unknownTarget(a *audit) {
	a.needs(a.b.Unknown != "", "Unknown, the name of a queue that does not exist")
	a.load([]string{"k"}, 0, 3)
	m := a.started(func(ctx context.Context, d *keyseq.Delivery, n int) error {
		if string(d.Body) == "k.1" && n == 1 {
			return d.Send(ctx, jms.Outgoing{Queue: a.b.Other, Body: d.Body}, jms.Outgoing{Queue: a.b.Unknown, Body: d.Body})
		}
		return a.output(ctx, d)
	}, nil)
	a.untilSettled(3)
	a.shutdown(m)
	if n := a.messages["k.1"].tasks; n != 2 {
		a.broken("the task whose send cannot be routed ran %d times, want 2: its commit must fail once", n)
	}
	a.judge(orderaudit.Options{Outputs: one})
}

func runEndsWithContext(a *audit) {
	m := a.started(nothing, nil)
	a.shutdown(m)
	a.load(keys(5), 0, 4)
	ctx, cancel := context.WithCancel(a.ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	a.untilSettled(20)
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			a.broken("Run returned %v", err)
		}
	case <-time.After(a.h.Patience):
		a.broken("Run has not returned %v after its context ended", a.h.Patience)
	}
	a.judge(orderaudit.Options{})
}

func restart(a *audit) {
	const total = 300
	a.load(keys(30), 0, total/30)
	slow := func(context.Context, *keyseq.Delivery, int) error {
		time.Sleep(time.Millisecond)
		return nil
	}
	first := a.manager(slow, nil)
	for cycle := range 3 {
		a.start(first)
		a.untilSettled((cycle + 1) * total / 6)
		a.shutdown(first)
	}
	second := a.started(slow, nil)
	a.untilSettled(total)
	a.shutdown(second)
	a.judge(orderaudit.Options{})
}
