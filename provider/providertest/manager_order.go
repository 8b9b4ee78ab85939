package providertest

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/orderaudit"
)

var orderCases = []managerCase{
	{"G1", "Failures", "messages of a key are handled in order through failed attempts and panics, and each commit's send comes out once", orderOverFailures},
	{"G1", "Losses", "order holds while the connection is lost again and again, and what repeats is marked as redelivered", orderOverLosses},
	{"G2", "TaskIgnoresTimeout", "a task that ignores the end of its context keeps its key until it returns; other keys go on", taskIgnoresTimeout},
	{"G2", "TaskIgnoresDrain", "Shutdown names the key of a task that ignores the drain deadline; its message starts again only after the task has ended",
		taskIgnoresDrain},
}

// one is the number of outputs of every message.
func one(string, int64) int { return 1 }

// output is what a task sends for its message.
func (a *audit) output(ctx context.Context, d *keyseq.Delivery) error {
	return d.Send(ctx, jms.Outgoing{Queue: a.b.Other, Text: true, Body: d.Body})
}

func orderOverFailures(a *audit) {
	const total = 2000
	a.load(keys(100), 0, total/100)
	m := a.started(func(ctx context.Context, d *keyseq.Delivery, _ int) error {
		if err := a.output(ctx, d); err != nil {
			return err
		}
		time.Sleep(rand.N(2 * time.Millisecond))
		switch rand.IntN(25) {
		case 0:
			return errFailed
		case 1:
			panic(errFailed)
		}
		return nil
	}, nil)
	a.untilSettled(total)
	a.shutdown(m)
	a.judge(orderaudit.Options{Outputs: one})
}

func orderOverLosses(a *audit) {
	const total, most = 1000, 100
	a.load(keys(50), 0, total/50)
	var unmarked atomic.Pointer[string]
	m := a.started(func(ctx context.Context, d *keyseq.Delivery, n int) error {
		if n > 1 && d.Attempt == 1 && !d.Redelivered {
			body := string(d.Body)
			unmarked.Store(&body)
		}
		if err := a.output(ctx, d); err != nil {
			return err
		}
		time.Sleep(rand.N(4 * time.Millisecond))
		return nil
	}, func(c *keyseq.Config) { c.MaxInFlight = most })
	cuts := a.cuts(6)
	for i := range cuts {
		a.untilSettled((i + 1) * total / (cuts + 2))
		a.cut(most)
	}
	a.untilSettled(total)
	a.shutdown(m)
	a.judge(orderaudit.Options{Outputs: one})
	if body := unmarked.Load(); body != nil {
		a.broken("message %s was handled again after a loss and is not marked as redelivered", *body)
	}
}

func taskIgnoresTimeout(a *audit) {
	const timeout = 50 * time.Millisecond
	a.load([]string{"deaf", "other"}, 0, 5)
	var late atomic.Bool
	m := a.started(func(ctx context.Context, d *keyseq.Delivery, n int) error {
		if string(d.Body) != "deaf.1" || n > 1 {
			return nil
		}
		if !a.await(func() bool {
			return a.messages["other.4"] != nil && a.messages["other.4"].outcome == orderaudit.Settled
		}) {
			return errFailed
		}
		<-ctx.Done()
		time.Sleep(3 * timeout) // deaf
		if !errors.Is(context.Cause(ctx), keyseq.ErrTaskTimeout) {
			late.Store(true)
		}
		return ctx.Err()
	}, func(c *keyseq.Config) { c.Workers, c.TaskTimeout = 2, timeout })
	a.untilSettled(10)
	a.shutdown(m)
	a.judge(orderaudit.Options{})
	if late.Load() {
		a.broken("the task's context ended for another cause than ErrTaskTimeout")
	}
}

func taskIgnoresDrain(a *audit) {
	a.load([]string{"deaf"}, 0, 3)
	free, open := a.gate()
	task := func(_ context.Context, d *keyseq.Delivery, n int) error {
		if string(d.Body) == "deaf.1" && n == 1 {
			<-free
			return errFailed
		}
		return nil
	}
	m := a.started(task, nil)
	a.until("the deaf task has begun", func() bool { return a.messages["deaf.1"] != nil && a.messages["deaf.1"].tasks == 1 })
	a.history.InstanceStopping(instance)
	ctx, cancel := context.WithTimeout(a.ctx, 50*time.Millisecond)
	defer cancel()
	err := a.do("Shutdown with a deadline", func() error { return m.Shutdown(ctx) })
	if !errors.Is(err, keyseq.ErrDrainTimeout) || !strings.Contains(err.Error(), "deaf") {
		a.broken("Shutdown returned %v, want ErrDrainTimeout and the name of the key that still runs", err)
	}
	if err := a.do("Start while a task still runs", func() error { return m.Start(ctx) }); err == nil {
		a.broken("Start succeeded while a task of the earlier run was still running")
	}
	open()
	a.bounded("Start after the task has ended", a.limit, func(ctx context.Context) error {
		for {
			err := m.Start(ctx)
			if !errors.Is(err, keyseq.ErrStopping) && !errors.Is(err, keyseq.ErrRunning) {
				return err
			}
			select {
			case <-ctx.Done():
				return err
			case <-time.After(10 * time.Millisecond):
			}
		}
	})
	a.untilSettled(3)
	a.shutdown(m)
	a.judge(orderaudit.Options{})
}
