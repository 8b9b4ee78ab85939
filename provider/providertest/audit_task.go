package providertest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/orderaudit"
)

// gate is what a task waits at until open is called, at the end of the case at the latest.
func (a *audit) gate() (opened <-chan struct{}, open func()) {
	gate := make(chan struct{})
	open = sync.OnceFunc(func() { close(gate) })
	a.Cleanup(open)
	return gate, open
}

func (a *audit) task(ctx context.Context, d *keyseq.Delivery, task func(ctx context.Context, d *keyseq.Delivery, n int) error) error {
	key, number := name(d.Body)
	attempt := a.history.Start(instance, key, number, d.Attempt)
	var n int
	a.note(d.Message, func(t *track) {
		t.tasks++
		n = t.tasks
		t.open = true
		a.running++
		a.mostRunning = max(a.mostRunning, a.running)
	})
	intent := orderaudit.Failed // a panic
	defer func() {
		attempt.Return(intent)
		a.note(d.Message, func(t *track) { t.intent = intent; a.running-- })
	}()
	err := task(ctx, d, n)
	switch cause := context.Cause(ctx); {
	case err == nil:
		intent = orderaudit.Settled
	case errors.Is(cause, jms.ErrConnectionLost), errors.Is(cause, keyseq.ErrDrainTimeout):
		intent = orderaudit.GivenBack
	}
	return err
}

// note changes what is known of a message and wakes those who wait for news.
func (a *audit) note(m *jms.Message, change func(t *track)) {
	key, number := name(m.Body)
	id := fmt.Sprintf("%s.%d", key, number)
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.messages[id]
	if t == nil {
		t = &track{}
		a.messages[id] = t
	}
	change(t)
	close(a.news)
	a.news = make(chan struct{})
}

// events records outcomes. The manager tells them before it goes on.
func (a *audit) events() keyseq.Events {
	left := func(outcome func(e keyseq.MessageEvent, t *track) orderaudit.Outcome) func(keyseq.MessageEvent) {
		return func(e keyseq.MessageEvent) {
			key, number := name(e.Delivery.Body)
			a.note(e.Delivery.Message, func(t *track) {
				a.held--
				a.bytes -= len(e.Delivery.Body)
				if t.open { // its task has seen it
					before := settles(t.outcome)
					t.outcome, t.open = outcome(e, t), false
					if now := settles(t.outcome); now && !before {
						a.settled++
					} else if before && !now {
						a.settled--
					}
					a.history.End(instance, key, number, t.outcome)
				}
			})
		}
	}
	always := func(o orderaudit.Outcome) func(keyseq.MessageEvent, *track) orderaudit.Outcome {
		return func(keyseq.MessageEvent, *track) orderaudit.Outcome { return o }
	}
	return keyseq.Events{
		Received: func(e keyseq.MessageEvent) {
			a.note(e.Delivery.Message, func(*track) {
				a.held++
				a.bytes += len(e.Delivery.Body)
				a.mostHeld, a.mostBytes = max(a.mostHeld, a.held), max(a.mostBytes, a.bytes)
			})
		},
		Retrying: func(e keyseq.MessageEvent) {
			key, number := name(e.Delivery.Body)
			a.note(e.Delivery.Message, func(t *track) {
				if t.open && t.intent == orderaudit.Settled && !errors.Is(e.Err, jms.ErrBusy) { // the task will be repeated
					t.open = false
					a.history.End(instance, key, number, orderaudit.Failed)
				}
			})
		},
		Committed:    left(always(orderaudit.Settled)),
		DeadLettered: left(always(orderaudit.DeadLettered)),
		Discarded:    left(always(orderaudit.Discarded)),
		RolledBack: left(func(e keyseq.MessageEvent, _ *track) orderaudit.Outcome {
			if errors.Is(e.Err, jms.ErrCommitUnknown) {
				return orderaudit.Unknown
			}
			return orderaudit.GivenBack
		}),
	}
}
