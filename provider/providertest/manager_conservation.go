package providertest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/orderaudit"
)

var conservationCases = []managerCase{
	{"G3", "Verdicts", "every message is settled as its task and its policy say, and dead letters are on their queue", verdicts},
	{"G3", "LargeBodies", "bodies of 1 MiB are received and sent, and no more of them are held than MaxInFlightBytes allows", largeBodies},
	{"G3", "ShutdownGivesBack", "Shutdown finishes what runs and leaves everything else on the queue, in order", shutdownGivesBack},
	{"G4", "NoDuplicatesWithoutLoss", "through Stop and Start, without a loss, every message is handled once", noDuplicates},
	{"G4", "DuplicatesAfterLoss", "after a loss no more is handled again than was in flight", duplicatesAfterLoss},
}

// verdictOf is what becomes of a message in the case Verdicts.
func verdictOf(_ string, number int64) orderaudit.Outcome {
	switch number % 5 {
	case 1, 2:
		return orderaudit.DeadLettered // by its task, or after its retries
	case 3:
		return orderaudit.Discarded
	}
	return orderaudit.Settled
}

func verdicts(a *audit) {
	const each = 10
	names := keys(20)
	a.load(names, 0, each)
	m := a.started(func(_ context.Context, d *keyseq.Delivery, n int) error {
		switch _, number := name(d.Body); number % 5 {
		case 1:
			return fmt.Errorf("wrapped: %w", keyseq.DeadLetter(errFailed))
		case 2:
			return errFailed
		case 3:
			return keyseq.Discard(errFailed)
		case 4:
			if n == 1 {
				return keyseq.RetryAfter(time.Millisecond, errFailed)
			}
		}
		return nil
	}, func(c *keyseq.Config) {
		c.Retry.MaxRetries, c.Retry.OnExhausted = 2, keyseq.ActionDeadLetter
		c.DeadLetterQueue = a.b.Other
	})
	a.untilSettled(len(names) * each)
	a.shutdown(m)
	a.judge(orderaudit.Options{Expect: verdictOf})
	var want []string
	for _, key := range names {
		for n := range int64(each) {
			if verdictOf(key, n) == orderaudit.DeadLettered {
				want = append(want, fmt.Sprintf("%s.%d", key, n))
			}
		}
	}
	if got := a.drain(a.b.Other, len(want)); !slices.Equal(texts(got), texts(want)) {
		a.broken("%d dead letters are on %s, want %d: %q", len(got), a.b.Other, len(want), got)
	}
}

func largeBodies(a *audit) {
	const total, size, most = 12, 1 << 20, 4 << 20
	for n := range total {
		body := fmt.Appendf(nil, "k%d.%d %s", n%3, n/3, strings.Repeat("x", size))
		a.send(a.b.Queue, jms.Outgoing{Text: true, Body: body})
		a.history.Sent(name(body))
		a.sent++
	}
	m := a.started(func(ctx context.Context, d *keyseq.Delivery, _ int) error {
		if len(d.Body) < size {
			return keyseq.Discard(fmt.Errorf("the body arrived with %d bytes", len(d.Body)))
		}
		time.Sleep(20 * time.Millisecond) // the reader goes on
		return a.output(ctx, d)
	}, func(c *keyseq.Config) { c.MaxInFlightBytes = most })
	a.untilSettled(total)
	a.shutdown(m)
	a.judge(orderaudit.Options{Outputs: one, Expect: func(string, int64) orderaudit.Outcome { return orderaudit.Settled }})
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.mostBytes > most+size+100 { // the one that fills it is not known before it is received
		a.broken("%d bytes were in flight, MaxInFlightBytes is %d", a.mostBytes, most)
	}
}

func shutdownGivesBack(a *audit) {
	const total = 12
	a.load([]string{"k"}, 0, total)
	free, open := a.gate()
	m := a.started(func(_ context.Context, d *keyseq.Delivery, _ int) error {
		if string(d.Body) == "k.2" {
			<-free
		}
		return nil
	}, nil)
	a.until("the third task runs and more is held", func() bool { return a.messages["k.2"] != nil && a.messages["k.2"].tasks > 0 && a.held > 2 })
	time.AfterFunc(a.h.Latency, open) // by then the Receive that was under way has ended
	a.shutdown(m)
	var want []string
	for n := 3; n < total; n++ {
		want = append(want, fmt.Sprintf("k.%d", n))
		a.history.Left("k", int64(n))
	}
	a.remaining(a.b.Queue, "message k.2 was running at Shutdown, those behind it had not begun", want)
	a.judge(orderaudit.Options{Incomplete: true})
}

func noDuplicates(a *audit) {
	const total = 400
	a.load(keys(20), 0, total/20)
	m := a.manager(func(context.Context, *keyseq.Delivery, int) error {
		time.Sleep(time.Millisecond)
		return nil
	}, nil)
	for cycle := range 4 {
		a.start(m)
		a.untilSettled(cycle * total / 4)
		a.history.InstanceStopping(instance)
		a.bounded("Stop", a.limit, m.Stop)
		a.mu.Lock()
		held, running := a.held, a.running
		a.mu.Unlock()
		if held > 0 || running > 0 {
			a.broken("after Stop %d messages are held and %d tasks run", held, running)
		}
	}
	a.start(m)
	a.untilSettled(total)
	a.shutdown(m)
	a.judge(orderaudit.Options{})
	for id, t := range a.messages {
		if t.tasks != 1 {
			a.broken("message %s was handled %d times", id, t.tasks)
		}
	}
}

func duplicatesAfterLoss(a *audit) {
	const total, most = 300, 10
	a.load(keys(30), 0, total/30)
	m := a.started(func(context.Context, *keyseq.Delivery, int) error {
		time.Sleep(rand.N(3 * time.Millisecond))
		return nil
	}, func(c *keyseq.Config) { c.MaxInFlight = most })
	a.cuts(1)
	a.untilSettled(total / 2)
	a.cut(most)
	a.untilSettled(total)
	a.shutdown(m)
	a.judge(orderaudit.Options{})
	repeated := 0
	for _, t := range a.messages {
		repeated += t.tasks - 1
	}
	if slack := a.asynchronous(); repeated > most+slack {
		a.broken("%d messages were handled again after one loss, with %d in flight", repeated, most)
	}
}

// asynchronous is how many settled messages a loss may take back where acknowledgements are not waited for.
func (a *audit) asynchronous() int {
	if a.factory.capabilities().AtomicSends {
		return 0
	}
	return 100
}
