package keyseq_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/provider/memory"
)

// G2: an instance that closes its connection while a task of it still runs, and whose broker has taken the task's message back already, holds nothing; its
// standby waits for TakeoverDelay all the same.
func TestG2_AStandbyWaitsForTasksWhoseMessageIsGone(t *testing.T) {
	bubble(t, func(r *rig) {
		const takeover = 30 * time.Second
		id := must(r.broker.Send(keyseq.Outgoing{Queue: inQueue, Body: []byte("K.1")}))
		r.unjudged = true // the take-back is the broker's own, and told to nobody
		var running, together atomic.Int32
		task := func(context.Context, *keyseq.Delivery) error {
			if running.Add(1) > 1 {
				together.Add(1)
			}
			defer running.Add(-1)
			time.Sleep(20 * time.Second) // deaf to its context
			return nil
		}
		var receives atomic.Int32
		r.broker.SetHook(func(_ context.Context, c memory.Call) error {
			if c.Kind == memory.CallReceive && !c.After && receives.Add(1) == 2 {
				time.Sleep(time.Hour) // A cannot tell that its connection is well, and closes it
			}
			return nil
		})
		single := func(c *keyseq.Config) {
			c.SingleActiveConsumer, c.TakeoverDelay, c.CallTimeout = true, takeover, time.Second
		}
		r.instance("A", task, single).start()
		r.instance("B", task, single).start()
		time.Sleep(500 * time.Millisecond)
		check(r.broker.TakeBack(id))
		r.drained()
		time.Sleep(time.Hour)
		if together.Load() != 0 {
			r.Error("two tasks of a key ran at once in two instances")
		}
	}, memory.Queue{Name: inQueue, SingleActiveConsumer: true})
}
