package providertest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/orderaudit"
)

var isolationCases = []managerCase{
	{"G5", "FailingKeyHoldsItself", "a key whose head fails again and again holds no other key and no worker, and goes on in order when it is mended",
		failingKeyHoldsItself},
	{"G5", "WaitingMessagesHoldNoWorker", "messages that wait behind a running task of their key hold no worker", waitingHoldsNoWorker},
	{"G5", "FullWindowIsTold", "when waiting messages of a failing key fill the window, Events.Blocked names the key within a second", fullWindowIsTold},
	{"G6", "Fairness", "a key with a long backlog takes turns with the other keys in the window", fairness},
	{"G7", "Bounds", "no more than Workers tasks run and no more than MaxInFlight messages are held, and both are reached", bounds},
}

func failingKeyHoldsItself(a *audit) {
	const each = 10
	names := append(keys(20), "poison")
	a.load(names, 0, each)
	var mended atomic.Bool
	m := a.started(func(_ context.Context, d *keyseq.Delivery, _ int) error {
		if string(d.Body) == "poison.0" && !mended.Load() {
			return errFailed
		}
		return nil
	}, func(c *keyseq.Config) { c.Workers, c.Retry.Backoff = 2, keyseq.FixedBackoff(20*time.Millisecond) })
	a.untilSettled(each * (len(names) - 1))
	a.until("the failing message has been tried five times", func() bool { return a.messages["poison.0"].tasks >= 5 })
	a.mu.Lock()
	follower := a.messages["poison.1"]
	started := follower != nil && follower.tasks > 0
	a.mu.Unlock()
	if started {
		a.broken("the message behind the failing one has been started")
	}
	mended.Store(true)
	a.untilSettled(each * len(names))
	a.shutdown(m)
	a.judge(orderaudit.Options{})
}

func waitingHoldsNoWorker(a *audit) {
	a.load([]string{"slow"}, 0, 30)
	a.load([]string{"quick"}, 0, 3)
	free, open := a.gate()
	m := a.started(func(_ context.Context, d *keyseq.Delivery, _ int) error {
		if string(d.Body) == "slow.0" {
			<-free
		}
		return nil
	}, func(c *keyseq.Config) { c.Workers = 2 })
	settled := func() bool {
		return a.messages["quick.2"] != nil && a.messages["quick.2"].outcome == orderaudit.Settled
	}
	a.until("the quick key is done although the slow one still runs and 29 messages wait behind it", settled)
	open()
	a.untilSettled(33)
	a.shutdown(m)
	a.judge(orderaudit.Options{})
}

func fullWindowIsTold(a *audit) {
	const total, window = 12, 5
	a.load([]string{"poison"}, 0, total)
	var mended atomic.Bool
	told := make(chan time.Time, 1)
	m := a.started(func(_ context.Context, d *keyseq.Delivery, _ int) error {
		if string(d.Body) == "poison.0" && !mended.Load() {
			return errFailed
		}
		return nil
	}, func(c *keyseq.Config) {
		c.MaxInFlight = window
		c.Retry.Backoff = keyseq.FixedBackoff(a.h.Latency)
		c.Events = append(c.Events, keyseq.Events{Blocked: func(reports []keyseq.KeyReport) {
			if len(reports) == 1 && reports[0].Key == "poison" {
				select {
				case told <- time.Now():
				default:
				}
			}
		}})
	})
	a.until("the window is full", func() bool { return a.held == window && a.messages["poison.0"].tasks > 0 })
	full := time.Now()
	select {
	case at := <-told:
		if took := at.Sub(full); took > time.Second+a.h.Latency {
			a.broken("Events.Blocked named the key %v after the window was full", took)
		}
	case <-time.After(time.Second + a.h.Patience):
		a.broken("Events.Blocked has not named the key %v after the window was full", time.Second+a.h.Patience)
	}
	mended.Store(true)
	a.untilSettled(total)
	a.shutdown(m)
	a.judge(orderaudit.Options{})
}

func fairness(a *audit) {
	const backlog, others = 200, 10
	a.load([]string{"long"}, 0, backlog)
	a.load(keys(others), 0, 1)
	var before atomic.Int64 // of the long key, when the last of the others is done
	var long, short atomic.Int64
	m := a.started(func(_ context.Context, d *keyseq.Delivery, _ int) error {
		if d.Key != "long" {
			time.Sleep(time.Millisecond)
			if short.Add(1) == others {
				before.Store(long.Load())
			}
			return nil
		}
		if long.Load() == 0 {
			a.await(func() bool { return a.messages["k0.0"] != nil }) // the other keys come into the window
		}
		time.Sleep(10 * time.Millisecond)
		long.Add(1)
		return nil
	}, func(c *keyseq.Config) { c.Workers, c.MaxInFlight = 2, backlog+others+10 })
	a.untilSettled(backlog + others)
	a.shutdown(m)
	a.judge(orderaudit.Options{})
	if n := before.Load(); n > backlog/2 {
		a.broken("%d of the %d messages of the long key were handled before each of the %d other keys had one turn", n, backlog, others)
	}
}

func bounds(a *audit) {
	const total, workers, window = 300, 5, 12
	a.load(keys(60), 0, total/60)
	var most atomic.Int64
	m := a.started(func(ctx context.Context, _ *keyseq.Delivery, _ int) error {
		time.Sleep(2 * time.Millisecond)
		if a.b.Unsettled != nil {
			if n, err := a.b.Unsettled(ctx, a.b.Queue); err == nil && int64(n) > most.Load() {
				most.Store(int64(n))
			}
		}
		return nil
	}, func(c *keyseq.Config) { c.Workers, c.MaxInFlight = workers, window })
	a.untilSettled(total)
	a.shutdown(m)
	a.judge(orderaudit.Options{})
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.mostRunning != workers {
		a.broken("at most %d tasks ran at once, with Workers %d and 60 keys", a.mostRunning, workers)
	}
	if a.mostHeld > window || most.Load() > window {
		a.broken("%d messages were held at once (%d by the broker's count), MaxInFlight is %d", a.mostHeld, most.Load(), window)
	}
}
