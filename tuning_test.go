package keyseq_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/provider/memory"
)

// The law of docs/tuning.md: with messages of a key in runs of L, a window of M keeps min(Workers, 1 + 2M/(L+1)) workers busy. And where a session is costly
// the window sizes itself: it holds about Workers*(L+1)/2 in the steady state, from one setting, and little more than Workers if every
// message has another key.
func TestTuning_TheLawOfTheWindow(t *testing.T) {
	const workers, task = 100, 250 * time.Millisecond
	for _, c := range []struct {
		run, window int
		costly      bool
		busy        float64 // workers, by the law
		held        [2]int  // on average; {}: not looked at
	}{
		{run: 24, window: 100, busy: 9},
		{run: 24, window: 300, busy: 25},
		{run: 24, window: 600, busy: 49},
		{run: 24, window: 1250, busy: 100},
		{run: 8, window: 100, busy: 23.2},
		{run: 8, window: 450, busy: 100},
		{run: 2, window: 100, busy: 67.7},
		{run: 1, window: 100, busy: 100},
		{run: 24, window: 4000, costly: true, busy: 100, held: [2]int{1000, 2000}},
		{run: 1, window: 4000, costly: true, busy: 100, held: [2]int{100, 115}},
	} {
		t.Run(fmt.Sprintf("runs of %d, window %d, self-sizing %t", c.run, c.window, c.costly), func(t *testing.T) {
			profile := memory.Profile{Name: "plain"}
			if c.costly {
				profile = costly()
				profile.MaxSessions = 5000
			}
			bubble(t, func(r *rig) {
				r.unjudged = true // the order is proved elsewhere, and an audit of so many takes its time
				var out []keyseq.Outgoing
				for k := range 16_000 / c.run {
					for n := range c.run {
						out = append(out, keyseq.Outgoing{Queue: inQueue, Body: fmt.Appendf(nil, "k%d.%d", k, n)})
					}
				}
				must(r.broker.SendBatch(out))
				m := must(keyseq.NewSequenceManager(inQueue, r.broker, keyseq.ListenerFuncs{Task: func(ctx context.Context, _ *keyseq.Delivery) error {
					select {
					case <-time.After(task):
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				}}, keyseq.KeyFromBodyBefore("."), func(cfg *keyseq.Config) { cfg.Workers, cfg.MaxInFlight = workers, c.window }))
				if err := m.Start(r.Context()); err != nil {
					r.Fatal(err)
				}
				time.Sleep(13*time.Second + task/3) // the start, when keys are begun all at once; and between the ends of tasks
				before := m.Snapshot()
				const samples = 40
				held := 0
				for range samples {
					time.Sleep(task)
					synctest.Wait()
					held += m.Snapshot().InFlight
				}
				held /= samples
				after := m.Snapshot()
				busy := float64(after.Committed-before.Committed) / samples
				r.Logf("%.1f workers busy (the law says %.1f), %d held", busy, c.busy, held)
				if busy < 0.9*c.busy || busy > 1.1*c.busy {
					r.Errorf("%.1f workers busy, want about %.1f", busy, c.busy)
				}
				if c.held[1] > 0 && (held < c.held[0] || held > c.held[1]) {
					r.Errorf("%d held, want %d to %d", held, c.held[0], c.held[1])
				}
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				defer cancel()
				if err := m.Shutdown(ctx); err != nil {
					r.Error(err)
				}
			}, profile)
		})
	}
}
