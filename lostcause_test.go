package keyseq_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/memory"
)

// H11: a commit in doubt that costs the connection puts only its own message in doubt: what was done beside it was rolled back for certain, and its
// record must be undone.
func TestH11_ADoubtIsNotShared(t *testing.T) {
	bubble(t, func(r *rig) {
		first := true
		r.hook(func(c memory.Call) error {
			if c.Kind == memory.CallCommit && !c.After && first {
				first = false
				return fmt.Errorf("%w: %w", jms.ErrCommitUnknown, jms.ErrConnectionLost)
			}
			return nil
		})
		r.send("doubt", 1)
		r.send("other", 1)
		r.manager(func(_ context.Context, d *keyseq.Delivery) error {
			time.Sleep(100 * time.Millisecond) // both run
			if d.Key == "other" {
				time.Sleep(time.Second) // deaf to its context: it has done its work when it returns
			}
			return nil
		}).start()
		r.losing("the connection, by a commit", func() { time.Sleep(time.Minute) })
		r.drained()
		seen := map[string]bool{}
		for _, e := range r.messageErrors() {
			seen[e.body] = true
			if doubt := errors.Is(e.err, jms.ErrCommitUnknown); !e.performed || doubt != (e.body == "doubt.1") || doubt == errors.Is(e.err, jms.ErrRolledBack) {
				r.Errorf("%s: performed %t, %v", e.body, e.performed, e.err)
			}
		}
		if !seen["doubt.1"] || !seen["other.1"] {
			r.Errorf("told of %v, want both", seen)
		}
	})
}
