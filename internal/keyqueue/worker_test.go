package keyqueue_test

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyseq/keyseq/internal/keyqueue"
)

// A callback that ends its goroutine takes its worker with it, and nothing else: the item is repeated, or what Exit says is done.
func TestGoexitTakesTheWorkerOnly(t *testing.T) {
	for _, c := range []struct {
		name string
		exit keyqueue.Turn
		want []string
	}{{"default", keyqueue.Turn{}, []string{"a.1", "a.1", "a.2"}}, {"exit", keyqueue.Done(), []string{"a.1", "a.2"}}} {
		t.Run(c.name, func(t *testing.T) {
			ended := false
			inBubble(t, 1, func(w *worker, _ *queue, _ *item) keyqueue.Turn {
				if !ended {
					ended = true
					w.Exit = c.exit
					runtime.Goexit()
				}
				return keyqueue.Done()
			}, func(b *bed) {
				b.add("a", "a")
				b.ran(c.want...)
				if n := b.Stats().Workers; n != 1 {
					b.Errorf("%d workers, want a new one in the place of the old", n)
				}
				b.empty()
			})
		})
	}
}

// Many that end at once, some detached, leave the others their full number of workers.
func TestGoexitOfManyWorkers(t *testing.T) {
	inBubble(t, 5, nil, func(b *bed) {
		b.run = func(w *worker, _ *queue, _ *item) keyqueue.Turn {
			time.Sleep(time.Second)
			if w.Own == "" { // its first turn
				w.Own, w.Exit = "used", keyqueue.Done()
				runtime.Goexit()
			}
			return keyqueue.Done()
		}
		for k := range 20 {
			b.add(string(rune('a' + k)))
		}
		time.Sleep(time.Minute)
		b.wait()
		if b.most != 5 || len(b.began) != 20 {
			b.Errorf("%d items ran, at most %d at once; want 20 and 5", len(b.began), b.most)
		}
		b.empty()
	})
}

// Another worker takes the place of one that is stuck. Its key waits for it; when it comes back, its turn counts.
func TestDetach(t *testing.T) {
	inBubble(t, 1, nil, func(b *bed) {
		stuck := make(chan keyqueue.Turn)
		b.run = func(_ *worker, _ *queue, i *item) keyqueue.Turn {
			if i.String() == "a.1" {
				return <-stuck
			}
			return keyqueue.Done()
		}
		b.add("a", "a", "b")
		b.wait()
		var w *worker
		var turn uint64
		b.Workers(func(x *worker, v view, n uint64) {
			if v.Name != "a" || v.Head.n != 1 || !v.Running {
				b.Errorf("Workers shows %+v", v)
			}
			w, turn = x, n
		})
		if b.Detach(w, turn+1) {
			b.Error("detached at a turn that is not the present one")
		}
		if !b.Detach(w, turn) || b.Detach(w, turn) {
			b.Error("want it detached once")
		}
		b.locked(func() { b.now-- }) // it does not count any more
		b.ran("a.1", "b.1")
		if s := b.Stats(); s.Running != 0 || s.Detached != 1 || s.Workers != 1 || s.Held != 2 {
			b.Errorf("%+v: want one detached beside one worker, and both items of its key held", s)
		}
		stuck <- keyqueue.Done()
		b.ran("a.2")
		if s := b.Stats(); s.Detached != 0 || s.Workers != 1 {
			b.Errorf("%+v: want the detached one gone", s)
		}
		b.empty()
	})
}

// Close waits for what runs, a detached worker included; Reopen makes it work again, with what was left.
func TestCloseAndReopen(t *testing.T) {
	inBubble(t, 2, slowly, func(b *bed) {
		b.add("a", "b", "c", "a")
		b.wait()
		var w *worker
		var turn uint64
		b.Workers(func(x *worker, _ view, n uint64) { w, turn = x, n })
		b.Detach(w, turn)
		b.locked(func() { b.now-- })
		b.wait() // c runs in its place
		ended := b.Close()
		if rung(ended) {
			b.Fatal("closed while something runs")
		}
		began := time.Now()
		<-ended
		if d := time.Since(began); d != time.Second {
			b.Errorf("closed after %v, want the second that its tasks take", d)
		}
		b.ran("a.1", "b.1", "c.1")
		if s := b.Stats(); s.Workers != 0 || s.Held != 1 {
			b.Errorf("%+v, want no worker and what did not run", s)
		}
		b.Resume() // does not open it
		b.ran()
		b.Reopen()
		b.ran("a.2")
		b.add("d")
		time.Sleep(time.Minute)
		b.ran("d.1")
		b.empty()
	})
}

func TestCloseOfADispatcherThatNeverRanReturnsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		<-newBed(t, 3, nil).Close()
	})
}

// A pause that ends after Close starts nothing before Reopen.
func TestNothingStartsAfterClose(t *testing.T) {
	tries := 0
	inBubble(t, 1, func(*worker, *queue, *item) keyqueue.Turn {
		if tries++; tries == 1 {
			return keyqueue.Again(time.Second)
		}
		return keyqueue.Done()
	}, func(b *bed) {
		b.add("a")
		b.ran("a.1")
		<-b.Close()
		time.Sleep(time.Minute)
		b.ran()
		b.Reopen()
		b.ran("a.1")
		b.empty()
	})
}

func TestEachAndLook(t *testing.T) {
	inBubble(t, 1, slowly, func(b *bed) {
		want := map[string]int{}
		for _, k := range numbered(1000) {
			b.add(k)
			want[k]++
		}
		b.Each(func(v view) { want[v.Name]-- })
		for k, n := range want {
			if n != 0 {
				b.Fatalf("%s was shown %d times, want once", k, 1-n)
			}
			if !b.Look(k, func(v view) {
				if v.Name != k || v.Items != 1 {
					b.Errorf("Look at %s shows %+v", k, v)
				}
			}) {
				b.Errorf("%s is not seen", k)
			}
		}
		if b.Look("other", func(view) {}) {
			b.Error("a key without work is seen")
		}
		for _, k := range b.BlockWhere(everything) {
			b.Returned(len(b.TakeBack(k)))
			b.Release(k)
		}
		time.Sleep(time.Minute)
		b.empty()
	})
}

// What is changed inside Update is seen by who looks.
func TestUpdate(t *testing.T) {
	inBubble(t, 1, nil, func(b *bed) {
		b.run = func(_ *worker, _ *queue, i *item) keyqueue.Turn {
			b.Update(func() { i.n = 42 })
			time.Sleep(time.Second)
			return keyqueue.Done()
		}
		b.add("a")
		b.wait()
		b.Look("a", func(v view) {
			if v.Head.n != 42 {
				b.Errorf("the head shows %v", v.Head)
			}
		})
		time.Sleep(time.Second)
		b.empty()
	})
}
