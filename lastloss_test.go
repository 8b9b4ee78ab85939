package keyseq_test

import (
	"context"
	"testing"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/memory"
)

// G1: there is one deadline for the queue, and every loss moves it. The broker takes m.1 back 15 s after its own loss, not after that of l.1; until then
// m.2 must not start.
func TestG1_EveryLossMovesTheDeadline(t *testing.T) {
	bubble(t, func(r *rig) {
		lost := map[string]bool{}
		r.hook(func(c memory.Call) error {
			if c.Kind != memory.CallCommit || c.After {
				return nil
			}
			body := string(c.Message.Body)
			if (body == "l.1" || body == "m.1") && !lost[body] {
				lost[body] = true
				return jms.ErrCommitUnknown
			}
			return nil
		})
		r.send("l", 1)
		r.send("m", 1, 2)
		var started []string
		r.manager(func(_ context.Context, d *keyseq.Delivery) error {
			r.locked(func() { started = append(started, string(d.Body)) })
			if d.Key == "m" && !d.Redelivered {
				time.Sleep(10 * time.Second)
			}
			return nil
		}).start()
		r.losing("two sessions, ten seconds apart", func() { time.Sleep(time.Minute) })
		r.drained()
		r.locked(func() {
			if len(started) != 5 {
				r.Errorf("started: %v, want l.1 and m.1 twice, m.2 once", started)
			}
		})
	}, memory.LikeIBMMQ())
}
