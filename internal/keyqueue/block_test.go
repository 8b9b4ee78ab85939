package keyqueue_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/keyseq/keyseq/internal/keyqueue"
)

func TestHaltStopsEveryStart(t *testing.T) {
	inBubble(t, 2, slowly, func(b *bed) {
		b.add("a", "b", "a", "c")
		b.ran("a.1", "b.1")
		b.Halt()
		b.add("d")
		time.Sleep(time.Minute)
		b.ran()
		if s := b.Stats(); s.Ready != 3 || s.Running != 0 {
			b.Errorf("%d ready, %d running; want 3 and 0", s.Ready, s.Running)
		}
		b.Resume()
		b.ran("c.1", "d.1") // a became ready again after d
		time.Sleep(time.Minute)
		b.ran("a.2")
		b.empty()
	})
}

// everything has the form of BlockWhere.
func everything(view) bool { return true }

func texts(items []item) (all []string) {
	for _, i := range items {
		all = append(all, i.String())
	}
	return all
}

func TestABlockedKeyGivesBackNewestFirst(t *testing.T) {
	inBubble(t, 1, slowly, func(b *bed) {
		b.add("a", "a", "b", "a", "b") // a.1 runs
		b.wait()
		keys := b.BlockWhere(everything)
		if got := names(keys); !slices.Equal(got, []string{"a", "b"}) {
			b.Fatalf("blocked %v", got)
		}
		if again := b.BlockWhere(everything); len(again) != 0 {
			b.Errorf("keys are blocked twice: %v", names(again))
		}
		b.add("b") // joins the blocked key
		slices.SortFunc(keys, func(x, y *queue) int { return int(x.Name()[0]) - int(y.Name()[0]) })
		if got := texts(b.TakeBack(keys[0])); !slices.Equal(got, []string{"a.3", "a.2"}) {
			b.Errorf("of a: %v, want a.3 and a.2: a.1 runs", got)
		}
		if got := texts(b.TakeBack(keys[1])); !slices.Equal(got, []string{"b.3", "b.2", "b.1"}) {
			b.Errorf("of b: %v, want all, newest first", got)
		}
		if s := b.Stats(); s.Held != 6 || s.Bytes != 10 || s.Blocked != 2 {
			b.Errorf("%+v: places are held until Returned, bytes only as long as the items are", s)
		}
		b.Returned(5)
		if s := b.Stats(); s.Held != 1 {
			b.Errorf("held %d, want 1", s.Held)
		}
		b.add("a", "b") // come again, still blocked
		time.Sleep(time.Minute)
		b.ran("a.1")
		for _, k := range keys {
			if !b.Release(k) {
				b.Error("not released")
			}
		}
		time.Sleep(time.Minute)
		b.ran("a.4", "b.4")
		b.empty()
	})
}

// A turn that ends with Left or Stay blocks its key until it is given back; the item of Stay is among what is given back, that of Left is gone.
func TestATurnBlocksItsKey(t *testing.T) {
	for _, c := range []struct {
		name string
		turn keyqueue.Turn
		back []string
	}{{"left", keyqueue.Left(), []string{"a.3", "a.2"}}, {"stay", keyqueue.Stay(), []string{"a.3", "a.2", "a.1"}}} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, 2, func(_ *worker, _ *queue, i *item) keyqueue.Turn {
				if i.String() == "a.1" {
					return c.turn
				}
				return keyqueue.Done()
			}, func(b *bed) {
				b.add("a", "a", "a", "b")
				b.ran("a.1", "b.1")
				if !rung(b.Left()) {
					b.Error("Left was not rung")
				}
				keys := b.Leaving()
				if got := names(keys); !slices.Equal(got, []string{"a"}) || len(b.Leaving()) != 0 {
					b.Fatalf("leaving %v, want a, once", got)
				}
				items := b.TakeBack(keys[0])
				if got := texts(items); !slices.Equal(got, c.back) {
					b.Errorf("given back %v, want %v", got, c.back)
				}
				b.Returned(len(items))
				b.Release(keys[0])
				b.empty()
				b.add("a")
				b.ran("a.4")
			})
		})
	}
}

// A key that was blocked from outside while it ran, and whose turn then leaves too, has to be given back once more.
func TestAKeyBlockedOnceMoreIsNotReleased(t *testing.T) {
	inBubble(t, 1, func(*worker, *queue, *item) keyqueue.Turn {
		time.Sleep(time.Second)
		return keyqueue.Stay()
	}, func(b *bed) {
		b.add("a", "a")
		b.wait()
		keys := b.BlockWhere(everything)
		b.Returned(len(b.TakeBack(keys[0])))
		time.Sleep(time.Second)
		b.wait()
		if len(b.Leaving()) != 0 {
			b.Error("a key is in two hands")
		}
		if b.Release(keys[0]) {
			b.Fatal("released with an item that is to be given back")
		}
		if got := texts(b.TakeBack(keys[0])); !slices.Equal(got, []string{"a.1"}) {
			b.Errorf("given back %v, want a.1", got)
		}
		b.Returned(1)
		if !b.Release(keys[0]) {
			b.Error("not released")
		}
		b.empty()
	})
}

// An attempt that fails while its key is blocked is not repeated before the release; then at once.
func TestAgainOfABlockedKeyWaitsForTheRelease(t *testing.T) {
	tries := 0
	inBubble(t, 1, func(*worker, *queue, *item) keyqueue.Turn {
		time.Sleep(time.Second)
		if tries++; tries == 1 {
			return keyqueue.Again(time.Second)
		}
		return keyqueue.Done()
	}, func(b *bed) {
		b.add("a")
		b.wait()
		keys := b.BlockWhere(everything)
		time.Sleep(time.Minute)
		b.ran("a.1")
		if n := len(b.TakeBack(keys[0])); n != 1 {
			b.Errorf("%d items taken back, want the failed one", n)
		}
		b.Returned(1)
		b.add("a")
		b.Release(keys[0])
		b.ran("a.2")
		time.Sleep(time.Minute)
		b.empty()
	})
}

func TestAddLeavingNeverRuns(t *testing.T) {
	inBubble(t, 1, nil, func(b *bed) {
		b.Reserve()
		b.AddLeaving("a", item{"a", 1}, 10)
		b.add("a")
		b.ran("a.1") // that of the key, not the lone one
		keys := b.Leaving()
		if len(keys) != 1 || !rung(b.Left()) {
			b.Fatalf("leaving %v", names(keys))
		}
		if got := b.TakeBack(keys[0]); len(got) != 1 {
			b.Errorf("given back %v", got)
		}
		b.Returned(1)
		b.Release(keys[0])
		b.empty()
	})
}

func TestDropAllForgetsWhatDoesNotRun(t *testing.T) {
	inBubble(t, 2, func(_ *worker, _ *queue, i *item) keyqueue.Turn {
		time.Sleep(time.Second)
		if i.String() == "paused.1" {
			return keyqueue.Again(time.Hour)
		}
		return keyqueue.Done()
	}, func(b *bed) {
		b.add("paused", "x", "runs", "too", "ready", "blocked")
		time.Sleep(1500 * time.Millisecond) // runs.1 and too.1 have begun
		b.Halt()
		b.BlockWhere(func(v view) bool { return v.Name == "blocked" })
		b.add("runs")
		dropped := texts(b.DropAll())
		slices.Sort(dropped)
		if want := []string{"blocked.1", "paused.1", "ready.1", "runs.2"}; !slices.Equal(dropped, want) {
			b.Errorf("dropped %v, want %v", dropped, want)
		}
		if s := b.Stats(); s.Held != 2 || s.Blocked != 0 || s.Paused != 0 || s.Keys != 2 {
			b.Errorf("after it: %+v, want the two that run", s)
		}
		b.add("runs", "blocked") // come again
		b.Resume()
		b.forget()
		b.ran()
		time.Sleep(time.Minute)
		b.wait()
		b.locked(func() { slices.Sort(b.began) })
		b.ran("blocked.2", "runs.3")
		b.empty()
		if n := len(b.Leaving()); n != 0 {
			b.Errorf("%d keys are to be given back", n)
		}
	})
}

// Quiet is rung when something ends.
func TestQuietIsRungWhenAnItemIsDone(t *testing.T) {
	inBubble(t, 1, slowly, func(b *bed) {
		b.add("a")
		b.wait()
		if rung(b.Quiet()) {
			b.Error("rung while nothing has ended")
		}
		time.Sleep(time.Second)
		b.wait()
		if !rung(b.Quiet()) {
			b.Error("not rung when the item was done")
		}
	})
}

// What gives back visits only keys that have something, and sees what runs.
func TestBlockWhereSeesHeadAndSecond(t *testing.T) {
	inBubble(t, 1, slowly, func(b *bed) {
		b.add("a", "a", "b")
		b.wait()
		seen := map[string]string{}
		b.BlockWhere(func(v view) bool {
			second := "-"
			if v.Second != nil {
				second = v.Second.String()
			}
			seen[v.Name] = fmt.Sprint(v.Head, " ", second, " ", v.Running)
			return false
		})
		if seen["a"] != "a.1 a.2 true" || seen["b"] != "b.1 - false" {
			b.Errorf("seen %v", seen)
		}
		time.Sleep(time.Minute)
		b.empty()
	})
}
