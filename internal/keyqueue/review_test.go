package keyqueue_test

import (
	"math"
	"testing"
	"time"

	"github.com/keyseq/keyseq/internal/keyqueue"
)

// A pause "for ever" (the longest duration there is) must not overflow: it would stand before all others, and their pauses would never end.
func TestReview_TheLongestPauseKeepsNoOtherFromEnding(t *testing.T) {
	inBubble(t, 2, func(_ *worker, _ *queue, i *item) keyqueue.Turn {
		if i.key == "never" {
			return keyqueue.Again(math.MaxInt64)
		}
		if i.n == 1 {
			i.n = 2 // the second time it is done
			return keyqueue.Again(time.Second)
		}
		return keyqueue.Done()
	}, func(b *bed) {
		time.Sleep(time.Second)
		b.add("never")
		b.wait()
		b.add("soon")
		time.Sleep(time.Hour)
		if b.Look("soon", func(view) {}) {
			b.Error("the pause of a second has not ended in an hour")
		}
		b.DropAll()
	})
}

// Clause 5 of the give-back rule: a call that does not return frees its worker. Its key must not count as one that needs a worker either, or a few of
// them would keep all others out.
func TestReview_ADetachedKeyIsNotFresh(t *testing.T) {
	var stuck chan struct{}
	inBubble(t, 1, func(_ *worker, _ *queue, i *item) keyqueue.Turn {
		if i.key == "a" && i.n == 1 {
			<-stuck
		}
		return keyqueue.Done()
	}, func(b *bed) {
		stuck = make(chan struct{})
		b.add("a", "a")
		b.wait()
		b.SetLimits(keyqueue.Limits{Items: 100, Bytes: 1 << 20, Fresh: 1})
		if b.Reserve() {
			b.Fatal("a place was given while a fresh key runs")
		}
		b.Workers(func(w *worker, _ view, turn uint64) { go b.Detach(w, turn) })
		b.wait()
		if !b.Reserve() {
			b.Error("no place is given while a call is stuck")
		} else {
			b.Cancel()
		}
		b.locked(func() { b.now-- })
		close(stuck)
		b.ran("a.1", "a.2")
		if !b.Reserve() {
			b.Error("the count of fresh keys did not return to zero")
		} else {
			b.Cancel()
		}
		b.empty()
	})
}
