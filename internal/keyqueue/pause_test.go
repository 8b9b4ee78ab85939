package keyqueue_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/keyseq/keyseq/internal/keyqueue"
)

// pausing runs every item twice: at the first time it asks for the pause that its number says, in milliseconds.
func pausing() func(*worker, *queue, *item) keyqueue.Turn {
	var tried sync.Map
	return func(_ *worker, _ *queue, i *item) keyqueue.Turn {
		if _, second := tried.LoadOrStore(i.String(), true); !second {
			return keyqueue.Again(time.Duration(i.n) * time.Millisecond)
		}
		return keyqueue.Done()
	}
}

// With one worker, so that it takes the paused keys one after another when their time has come: each at its own, whatever the order of asking.
func TestPausesEndOnTime(t *testing.T) {
	inBubble(t, 1, pausing(), func(b *bed) {
		random, start := rand.New(rand.NewPCG(3, 4)), time.Now()
		pauses := random.Perm(1000)
		for _, ms := range pauses {
			b.Reserve()
			b.Add(fmt.Sprint(ms), item{fmt.Sprint(ms), ms + 1}, 1)
		}
		b.wait()
		if s := b.Stats(); s.Paused != len(pauses) || s.Running != 0 {
			b.Fatalf("%d keys pause and %d run, want %d and 0: a pause holds no worker", s.Paused, s.Running, len(pauses))
		}
		b.forget()
		for ms := 1; ms <= 1000; ms++ {
			time.Sleep(time.Until(start.Add(time.Duration(ms) * time.Millisecond)))
			b.ran(fmt.Sprintf("%d.%d", ms-1, ms))
		}
		b.empty()
	})
}

func TestAPausedKeyHoldsItsOthersAndNobodyElse(t *testing.T) {
	tries := 0
	inBubble(t, 1, func(_ *worker, _ *queue, i *item) keyqueue.Turn {
		if tries++; i.String() == "a.1" && tries == 1 {
			return keyqueue.Again(time.Minute)
		}
		return keyqueue.Done()
	}, func(b *bed) {
		b.add("a", "a", "b")
		b.ran("a.1", "b.1")
		b.add("a")
		time.Sleep(time.Minute - time.Nanosecond)
		b.ran()
		b.Look("a", func(v view) {
			if !v.Paused || v.Running || v.Items != 3 || time.Until(v.Due) != 1 {
				b.Errorf("the key shows %+v", v)
			}
		})
		time.Sleep(time.Nanosecond)
		b.ran("a.1", "a.2", "a.3")
		b.empty()
	})
}

// A pause that is not positive is none, but the key still goes to the end of the line.
func TestAgainWithoutAPause(t *testing.T) {
	tries := 0
	inBubble(t, 1, func(_ *worker, _ *queue, i *item) keyqueue.Turn {
		time.Sleep(time.Second)
		if tries++; i.key == "a" && tries < 3 {
			return keyqueue.Again(-time.Hour)
		}
		return keyqueue.Done()
	}, func(b *bed) {
		b.add("a", "b")
		time.Sleep(10 * time.Second)
		b.ran("a.1", "b.1", "a.1")
		b.empty()
	})
}

// A key that is blocked leaves the heap wherever it stands there, and the others still end on time.
func TestBlockingEndsAPause(t *testing.T) {
	inBubble(t, 10, pausing(), func(b *bed) {
		start := time.Now()
		for _, ms := range rand.New(rand.NewPCG(5, 6)).Perm(100) {
			b.Reserve()
			b.Add(fmt.Sprint(ms), item{fmt.Sprint(ms), ms + 1}, 1)
		}
		b.wait()
		b.forget()
		keys := b.BlockWhere(func(v view) bool { return v.Head.n%3 == 0 })
		if len(keys) != 33 {
			b.Fatalf("blocked %d keys, want 33", len(keys))
		}
		for ms := 1; ms <= 100; ms++ {
			time.Sleep(time.Until(start.Add(time.Duration(ms) * time.Millisecond)))
			if ms%3 == 0 {
				b.ran()
			} else {
				b.ran(fmt.Sprintf("%d.%d", ms-1, ms))
			}
		}
		for _, k := range keys {
			b.Release(k)
		}
		b.wait()
		b.empty()
	})
}
