// Package audited is a consumer and a producer whose every step is recorded for package orderaudit, in tests and in processes that
// are killed.
package audited

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/orderaudit"
)

// Body writes key, number and padding as a body, which keyseq.KeyFromBodyBefore(".") understands.
func Body(key string, number int64, padding int) []byte {
	return fmt.Appendf(nil, "%s.%d %s", key, number, bytes.Repeat([]byte("x"), padding))
}

// Name reads a Body.
func Name(body []byte) (key string, number int64) {
	head, _, _ := bytes.Cut(body, []byte(" "))
	name, digits, _ := bytes.Cut(head, []byte("."))
	number, _ = strconv.ParseInt(string(digits), 10, 64)
	return string(name), number
}

// Consumer records what one manager does. Set the fields, then use it as Listener and add Events to the configuration.
type Consumer struct {
	Instance string
	Record   *orderaudit.Recorder
	Task     func(ctx context.Context, d *keyseq.Delivery) error // nil: returns at once
	// News, if not nil, gets a token when something has been settled; a full channel is left alone.
	News chan struct{}

	Gone     atomic.Int64 // messages settled, dead-lettered or discarded, repeats not counted
	gone     sync.Map     // key.number
	attempts sync.Map     // key.number -> orderaudit.Attempt whose outcome is open
}

var _ keyseq.Listener = (*Consumer)(nil)

// DoTask implements keyseq.Listener.
func (c *Consumer) DoTask(ctx context.Context, d *keyseq.Delivery) (err error) {
	key, number := Name(d.Body)
	a := c.Record.Start(c.Instance, key, number, d.Attempt)
	c.attempts.Store(id(d), a)
	if c.Task != nil {
		err = c.Task(ctx, d)
	}
	intent := orderaudit.Failed
	switch cause := context.Cause(ctx); {
	case err == nil:
		intent = orderaudit.Settled
	case errors.Is(cause, jms.ErrConnectionLost), errors.Is(cause, keyseq.ErrDrainTimeout):
		intent = orderaudit.GivenBack
	}
	a.Return(intent)
	return err
}

// OnMessageError implements keyseq.Listener.
func (c *Consumer) OnMessageError(context.Context, *keyseq.Delivery, error, bool) {}

// Events records outcomes.
func (c *Consumer) Events() keyseq.Events {
	settled := func(o orderaudit.Outcome) func(keyseq.MessageEvent) {
		return func(e keyseq.MessageEvent) {
			c.end(e, o)
			if _, again := c.gone.LoadOrStore(id(e.Delivery), true); !again {
				c.Gone.Add(1)
			}
			select {
			case c.News <- struct{}{}:
			default:
			}
		}
	}
	return keyseq.Events{
		Committed: settled(orderaudit.Settled), DeadLettered: settled(orderaudit.DeadLettered), Discarded: settled(orderaudit.Discarded),
		RolledBack: func(e keyseq.MessageEvent) {
			if errors.Is(e.Err, jms.ErrCommitUnknown) {
				c.end(e, orderaudit.Unknown)
			} else {
				c.end(e, orderaudit.GivenBack)
			}
		},
	}
}

// end records what became of the message's latest attempt, if its task has seen it.
func (c *Consumer) end(e keyseq.MessageEvent, o orderaudit.Outcome) {
	if a, ok := c.attempts.LoadAndDelete(id(e.Delivery)); ok {
		a.(orderaudit.Attempt).End(o)
	} else if o != orderaudit.GivenBack && o != orderaudit.Unknown {
		key, number := Name(e.Delivery.Body)
		c.Record.End(c.Instance, key, number, o)
	}
}

func id(d *keyseq.Delivery) string {
	head, _, _ := bytes.Cut(d.Body, []byte(" "))
	return string(head)
}
