package ibmmq_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/orderaudit"
)

// audited records for package orderaudit what one manager does. Bodies are "key.number", and may go on after a blank.
type audited struct {
	instance string
	record   *orderaudit.Recorder
	task     func(ctx context.Context, d *keyseq.Delivery) error // nil: returns at once
	onError  func(d *keyseq.Delivery, err error, performed bool) // nil: nothing

	gone     atomic.Int64 // messages that have left the queue, repeats not counted
	settled  sync.Map
	attempts sync.Map
}

func nameOf(body []byte) (key string, number int64) {
	name, digits, _ := bytes.Cut(body, []byte("."))
	digits, _, _ = bytes.Cut(digits, []byte(" "))
	number, _ = strconv.ParseInt(string(digits), 10, 64)
	return string(name), number
}

func (a *audited) DoTask(ctx context.Context, d *keyseq.Delivery) (err error) {
	key, number := nameOf(d.Body)
	attempt := a.record.Start(a.instance, key, number, d.Attempt)
	a.attempts.Store(string(d.Body), attempt)
	if a.task != nil {
		err = a.task(ctx, d)
	}
	intent := orderaudit.Failed
	switch cause := context.Cause(ctx); {
	case err == nil:
		intent = orderaudit.Settled
	case errors.Is(cause, jms.ErrConnectionLost), errors.Is(cause, keyseq.ErrDrainTimeout):
		intent = orderaudit.GivenBack
	}
	attempt.Return(intent)
	return err
}

func (a *audited) OnMessageError(_ context.Context, d *keyseq.Delivery, err error, performed bool) {
	if a.onError != nil {
		a.onError(d, err, performed)
	}
}

func (a *audited) events() keyseq.Events {
	settled := func(o orderaudit.Outcome) func(keyseq.MessageEvent) {
		return func(e keyseq.MessageEvent) {
			a.end(e, o)
			if _, again := a.settled.LoadOrStore(string(e.Delivery.Body), true); !again {
				a.gone.Add(1)
			}
		}
	}
	return keyseq.Events{
		Committed: settled(orderaudit.Settled), DeadLettered: settled(orderaudit.DeadLettered), Discarded: settled(orderaudit.Discarded),
		RolledBack: func(e keyseq.MessageEvent) {
			if errors.Is(e.Err, jms.ErrCommitUnknown) {
				a.end(e, orderaudit.Unknown)
			} else {
				a.end(e, orderaudit.GivenBack)
			}
		},
	}
}

func (a *audited) end(e keyseq.MessageEvent, o orderaudit.Outcome) {
	if attempt, ok := a.attempts.LoadAndDelete(string(e.Delivery.Body)); ok {
		attempt.(orderaudit.Attempt).End(o)
	} else if o != orderaudit.GivenBack && o != orderaudit.Unknown {
		key, number := nameOf(e.Delivery.Body)
		a.record.End(a.instance, key, number, o)
	}
}

// load sends so many messages of each key, interleaved.
func (b *bench) load(record *orderaudit.Recorder, keys, each int) {
	b.t.Helper()
	send := b.sender()
	for n := range each {
		out := make([]jms.Outgoing, keys)
		for k := range out {
			out[k] = jms.Outgoing{Text: true, Body: fmt.Appendf(nil, "k%d.%d", k, n)}
		}
		if err := send(b.t.Context(), b.queue, out...); err != nil {
			b.t.Fatal(err)
		}
		for _, o := range out {
			record.Sent(nameOf(o.Body))
		}
	}
}

func judge(t testing.TB, h *orderaudit.History, opts orderaudit.Options) {
	t.Helper()
	v := h.Check(opts)
	if err := v.Err(); err != nil {
		t.Fatal(err)
	}
	t.Log(v)
}

// manage makes an audited manager and starts it.
func (b *bench) manage(factory jms.ConnectionFactory, a *audited, configure ...func(*keyseq.Config)) *keyseq.SequenceManager {
	b.t.Helper()
	m := b.newManager(factory, a, configure...)
	if err := m.Start(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	return m
}

func (b *bench) newManager(factory jms.ConnectionFactory, a *audited, configure ...func(*keyseq.Config)) *keyseq.SequenceManager {
	b.t.Helper()
	m, err := keyseq.NewSequenceManager(b.queue, factory, a, keyseq.KeyFromBodyBefore("."), append([]func(*keyseq.Config){func(c *keyseq.Config) {
		c.Workers, c.ReturnDelay = 20, quickReturn
		c.Reconnect = keyseq.FixedBackoff(20e6)
		c.Events = append(c.Events, a.events())
	}}, configure...)...)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10e9)
		defer cancel()
		_ = m.Shutdown(ctx)
	})
	return m
}
