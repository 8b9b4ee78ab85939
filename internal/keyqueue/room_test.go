package keyqueue_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keyseq/keyseq/internal/keyqueue"
)

func TestItemsAreLimitedReservedPlacesIncluded(t *testing.T) {
	inBubble(t, 1, slowly, func(b *bed) {
		b.SetLimits(keyqueue.Limits{Items: 3, Bytes: 1 << 20})
		b.add("a", "b")
		if !b.Reserve() || b.Reserve() {
			b.Fatal("want one more place and no second one")
		}
		if s := b.Stats(); s.Held != 3 || !s.Full {
			b.Errorf("held %d, full %t; want 3, true", s.Held, s.Full)
		}
		if rung(b.Room()) {
			b.Error("the bell was rung where there is no room")
		}
		b.Cancel()
		if !rung(b.Room()) || !b.Reserve() {
			b.Error("a place that was given back cannot be had")
		}
		b.Cancel()
		b.add("c")
		if b.Reserve() {
			b.Error("a place beyond the limit")
		}
		time.Sleep(time.Second)
		b.wait()
		if !rung(b.Room()) {
			b.Error("the bell was not rung when an item was done")
		}
		time.Sleep(2 * time.Second)
		b.empty()
	})
}

func TestTheBellIsNotRungForNobody(t *testing.T) {
	inBubble(t, 1, nil, func(b *bed) {
		b.add("a", "b", "c")
		b.wait()
		if rung(b.Room()) {
			b.Error("the bell was rung although every Reserve succeeded")
		}
	})
}

func TestBytesCloseTheRoomWhenTheyAreReached(t *testing.T) {
	inBubble(t, 1, slowly, func(b *bed) {
		b.SetLimits(keyqueue.Limits{Items: 100, Bytes: 25})
		b.add("a", "a", "a") // 10 bytes each: the third one is still let in
		if b.Reserve() || b.Stats().Bytes != 30 {
			b.Errorf("a place at %d bytes, limit 25", b.Stats().Bytes)
		}
		time.Sleep(time.Second)
		b.wait()
		if !b.Reserve() {
			b.Error("no place at 20 bytes, limit 25")
		}
		b.Cancel()
		time.Sleep(3 * time.Second)
		b.empty()
	})
}

// The window sizes itself: no place while enough keys run or are ready, but items of a key that is counted already let it grow.
func TestFreshKeysAreLimited(t *testing.T) {
	inBubble(t, 2, slowly, func(b *bed) {
		b.SetLimits(keyqueue.Limits{Items: 100, Bytes: 1 << 20, Fresh: 3})
		b.add("a", "b", "a", "a", "a") // two keys
		b.add("c")                     // three
		if b.Reserve() {
			b.Error("a place for a fourth key")
		}
		time.Sleep(time.Second) // b is done
		b.wait()
		if !rung(b.Room()) {
			b.Error("the bell was not rung when a key was done")
		}
		b.add("d")
		time.Sleep(10 * time.Second)
		b.empty()
	})
}

// H13: keys that fail and are retried at once are always ready or running, but do not count: they would keep everything else out.
func TestKeysThatAreRetriedAreNotFresh(t *testing.T) {
	inBubble(t, 2, func(_ *worker, _ *queue, i *item) keyqueue.Turn {
		time.Sleep(time.Second)
		if i.key[0] == 'f' {
			return keyqueue.Again(0)
		}
		return keyqueue.Done()
	}, func(b *bed) {
		b.SetLimits(keyqueue.Limits{Items: 100, Bytes: 1 << 20, Fresh: 3})
		for i := range 20 {
			b.add(fmt.Sprint("f", i))
			time.Sleep(30 * time.Second) // it has failed at least once
		}
		b.wait() // not in the moment between two attempts
		if s := b.Stats(); s.Ready+s.Running < 20 {
			b.Fatalf("%+v: want all failing keys ready or running", s)
		}
		b.add("good", "good", "good")
		time.Sleep(time.Minute)
		if b.Look("good", func(view) {}) {
			b.Error("the good key has not been worked off")
		}
		for _, k := range b.BlockWhere(everything) {
			for time.Sleep(time.Second); ; {
				b.Returned(len(b.TakeBack(k)))
				if b.Release(k) {
					break
				}
			}
		}
		b.empty()
	})
}

// A key whose head is put off without being tried counts as before when it is ready again: a moment in which nothing may start must not fill the window.
func TestAKeyThatIsPutOffStaysFresh(t *testing.T) {
	var on atomic.Bool
	inBubble(t, 2, func(*worker, *queue, *item) keyqueue.Turn {
		if !on.Load() {
			return keyqueue.NotYet(time.Second)
		}
		time.Sleep(time.Minute)
		return keyqueue.Done()
	}, func(b *bed) {
		b.SetLimits(keyqueue.Limits{Items: 100, Bytes: 1 << 20, Fresh: 3})
		b.add("a", "b", "c")
		b.wait()
		on.Store(true)
		time.Sleep(2 * time.Second)
		b.wait()
		if s := b.Stats(); s.Running != 2 || s.Ready != 1 {
			b.Fatalf("%+v: want two keys running and one ready", s)
		}
		if b.Reserve() {
			b.Error("there is room for more fresh keys than the limit")
			b.Cancel()
		}
		time.Sleep(10 * time.Minute)
		b.empty()
	})
}

// What joins a key after its failed item was given back is at its first attempt, and counts.
func TestAKeyThatWasTakenBackIsFresh(t *testing.T) {
	inBubble(t, 1, func(*worker, *queue, *item) keyqueue.Turn {
		time.Sleep(time.Second)
		return keyqueue.Again(time.Hour)
	}, func(b *bed) {
		b.SetLimits(keyqueue.Limits{Items: 100, Bytes: 1 << 20, Fresh: 1})
		b.add("a")
		time.Sleep(time.Minute) // it pauses
		k := b.BlockWhere(everything)[0]
		b.Returned(len(b.TakeBack(k)))
		b.add("a")
		b.Release(k)
		if b.Reserve() {
			b.Error("a place beside a fresh key")
		}
		time.Sleep(time.Minute)
		b.Halt()
		b.DropAll()
		b.empty()
	})
}

// A key that was blocked, taken back, dropped, or that succeeded at a second attempt leaves the count exactly once.
func TestTheCountOfFreshKeysReturnsToZero(t *testing.T) {
	turns := map[string]func(tries int) keyqueue.Turn{
		"done": func(int) keyqueue.Turn { return keyqueue.Done() },
		"again": func(n int) keyqueue.Turn {
			return []keyqueue.Turn{keyqueue.Again(time.Second), keyqueue.Done()}[min(n, 1)]
		},
		"left": func(int) keyqueue.Turn { return keyqueue.Left() },
		"stay": func(int) keyqueue.Turn { return keyqueue.Stay() },
	}
	for name, turn := range turns {
		t.Run(name, func(t *testing.T) {
			tries := map[int]int{}
			inBubble(t, 1, func(_ *worker, _ *queue, i *item) keyqueue.Turn {
				time.Sleep(time.Second)
				tries[i.n]++
				return turn(tries[i.n] - 1)
			}, func(b *bed) {
				for round := range 10 {
					b.SetLimits(keyqueue.Limits{Items: 100, Bytes: 1 << 20, Fresh: 1})
					b.add("a")
					if b.Reserve() {
						b.Fatalf("round %d: a place beside a fresh key: the count is too low", round)
					}
					time.Sleep(5 * time.Second)
					for _, k := range b.Leaving() {
						b.Returned(len(b.TakeBack(k)))
						b.Release(k)
					}
					b.empty()
					if b.Stats().Full {
						b.Fatalf("round %d: no place although nothing is held: the count is too high", round)
					}
				}
			})
		})
	}
}

func TestSetLimitsRingsAndKeepsWhatIsHeld(t *testing.T) {
	inBubble(t, 1, slowly, func(b *bed) {
		b.add("a", "b", "c")
		b.SetLimits(keyqueue.Limits{Items: 2, Bytes: 1 << 20})
		if s := b.Stats(); s.Held != 3 || b.Reserve() {
			b.Errorf("held %d, want 3 and no place", s.Held)
		}
		b.SetLimits(keyqueue.Limits{Items: 4, Bytes: 1 << 20})
		if !rung(b.Room()) || !b.Reserve() {
			b.Error("a higher limit makes no room")
		}
		b.Cancel()
		time.Sleep(3 * time.Second)
		b.empty()
	})
}
