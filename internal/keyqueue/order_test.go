package keyqueue_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/keyseq/keyseq/internal/keyqueue"
)

func TestItemsOfAKeyRunInOrderAndOneAtATime(t *testing.T) {
	inBubble(t, 10, slowly, func(b *bed) {
		b.add("a", "a", "a")
		b.ran("a.1")
		time.Sleep(time.Second)
		b.ran("a.2")
		time.Sleep(time.Second)
		b.ran("a.3")
		time.Sleep(time.Second)
		b.empty()
	})
}

// A key with a backlog goes to the end of the ready list after each item.
func TestKeysTakeTurns(t *testing.T) {
	inBubble(t, 1, slowly, func(b *bed) {
		b.add("hot", "hot", "hot", "x", "y", "hot")
		time.Sleep(7 * time.Second)
		b.ran("hot.1", "x.1", "y.1", "hot.2", "hot.3", "hot.4")
		b.empty()
	})
}

// A key keeps its place among the others while it runs: that its task ends a little later than theirs costs it no turn. 160 keys with 8 items each then
// take 100 workers 13 task times, the least possible, however they came; in the order of becoming ready it is often 14.
func TestEqualTasksTakeTheLeastPossibleTime(t *testing.T) {
	const keys, each = 160, 8
	names := numbered(keys)
	for i := range 20 {
		inBubble(t, 100, slowly, func(b *bed) {
			if i%2 == 0 {
				for range each {
					b.add(names...)
				}
			} else {
				for _, name := range names {
					for range each {
						b.add(name)
					}
				}
			}
			began := time.Now()
			for b.Stats().Held > 0 {
				<-b.Quiet()
			}
			if d := time.Since(began); d != 13*time.Second {
				b.Errorf("it took %v, want 13 s", d)
			}
		})
	}
}

// A key whose task is long goes on at once when it ends, for it is the one that has waited longest for a turn; after that it is the others' turn.
func TestALongTaskDoesNotCostItsKeyMoreThanOneTurn(t *testing.T) {
	inBubble(t, 2, func(_ *worker, _ *queue, i *item) keyqueue.Turn {
		if i.key == "long" {
			time.Sleep(9 * time.Second)
		}
		time.Sleep(time.Second)
		return keyqueue.Done()
	}, func(b *bed) {
		b.add("long", "long", "long")
		for range 12 {
			b.add("x", "y")
		}
		time.Sleep(10*time.Second - time.Millisecond)
		b.ran("long.1", "x.1", "y.1", "x.2", "y.2", "x.3", "y.3", "x.4", "y.4", "x.5", "y.5")
		time.Sleep(time.Second) // at 10 s it goes on
		b.wait()
		b.locked(func() { slices.Sort(b.began) })
		b.ran("long.2", "x.6")
		time.Sleep(time.Hour)
		b.empty()
	})
}

// Long tasks of keys with a backlog on every worker: a key that comes then has its turn after at most one more of each.
func TestABacklogOfLongTasksStarvesNobody(t *testing.T) {
	inBubble(t, 4, slowly, func(b *bed) {
		for range 100 {
			b.add("h1", "h2", "h3", "h4")
		}
		time.Sleep(10*time.Second + time.Millisecond)
		b.forget()
		b.add("cold")
		time.Sleep(2 * time.Second)
		b.wait()
		b.locked(func() {
			if !slices.Contains(b.began, "cold.1") {
				b.Errorf("the key has not begun within two task times, but %v", b.began)
			}
		})
		time.Sleep(time.Hour)
		b.empty()
	})
}

func TestWorkersAreTheBoundAndAreReached(t *testing.T) {
	for _, workers := range []int{1, 3, 50} {
		inBubble(t, workers, slowly, func(b *bed) {
			for i := range 60 {
				b.add(fmt.Sprint(i%(workers+5)), fmt.Sprint(i%(workers+5)))
			}
			b.wait()
			if s := b.Stats(); s.Running != workers || s.Workers != workers {
				b.Errorf("%d of %d workers run, want %d", s.Running, s.Workers, workers)
			}
			time.Sleep(3 * time.Minute)
			b.wait()
			if b.most != workers {
				b.Errorf("at most %d ran at once, want %d", b.most, workers)
			}
			b.empty()
		})
	}
}

// Workers are made only when there is something to do, and one that is free is used again.
func TestWorkersAreMadeOnDemand(t *testing.T) {
	inBubble(t, 10, slowly, func(b *bed) {
		for range 5 {
			b.add("a")
			b.wait()
			b.add("b")
			time.Sleep(time.Second)
			b.wait()
		}
		if n := b.Stats().Workers; n != 2 {
			b.Errorf("%d workers were made where two tasks ran at once", n)
		}
	})
}

// A key that comes again after it was idle is a new one, with nothing left of the old.
func TestAKeyIsForgottenWhenItHasNoWork(t *testing.T) {
	inBubble(t, 2, nil, func(b *bed) {
		for range 100 {
			b.add("a")
			b.empty()
		}
		if b.Look("a", func(view) {}) {
			b.Error("an idle key can still be seen")
		}
	})
}

// Lone keys are joined by nothing, not even by items whose key has their name, and run side by side.
func TestAddAloneGivesAKeyOfItsOwn(t *testing.T) {
	inBubble(t, 10, slowly, func(b *bed) {
		const n = 5
		for range n {
			b.Reserve()
			b.AddAlone("a", item{}, 10)
		}
		b.add("a")
		b.wait()
		if s := b.Stats(); s.Running != n+1 || s.Keys != n+1 {
			b.Errorf("%d run of %d keys, want %d: they are apart", s.Running, s.Keys, n+1)
		}
		heads := 0
		b.Each(func(v view) { heads += v.Items })
		if heads != n+1 {
			b.Errorf("Each shows %d items, want %d", heads, n+1)
		}
		time.Sleep(time.Second)
		b.empty()
	})
}

// Coming and going costs a lone key no more where there are many.
func TestManyLoneKeysComeAndGoInAnyOrder(t *testing.T) {
	inBubble(t, 1000, func(_ *worker, _ *queue, i *item) keyqueue.Turn {
		time.Sleep(time.Duration(i.n*7919%1000+1) * time.Millisecond)
		return keyqueue.Done()
	}, func(b *bed) {
		for n := range 5000 {
			b.Reserve()
			b.AddAlone("", item{"", n}, 10)
		}
		time.Sleep(time.Minute)
		b.empty()
	})
}
