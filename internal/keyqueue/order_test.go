package keyqueue_test

import (
	"fmt"
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
