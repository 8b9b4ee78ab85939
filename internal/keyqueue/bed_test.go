package keyqueue_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyseq/keyseq/internal/keyqueue"
)

type (
	dispatcher = keyqueue.Dispatcher[item, string]
	worker     = keyqueue.Worker[item, string]
	queue      = keyqueue.Key[item]
	view       = keyqueue.View[item]
)

// item is the n-th one of its key.
type item struct {
	key string
	n   int
}

func (i item) String() string { return fmt.Sprintf("%s.%d", i.key, i.n) }

// bed is a dispatcher in a synctest bubble, with a record of what it ran. It fails the test when two items of a key run at once, when one overtakes
// another, or when more run than there are workers.
type bed struct {
	*testing.T
	*dispatcher
	workers int
	run     func(w *worker, k *queue, i *item) keyqueue.Turn // nil: Done

	mu      sync.Mutex
	began   []string       // what ran, in order
	running map[string]int // keys
	now     int            // how many run, detached ones not counted
	most    int
	last    map[string]int // the latest item of a key
	next    map[string]int // for add
}

func newBed(t *testing.T, workers int, run func(w *worker, k *queue, i *item) keyqueue.Turn) *bed {
	b := &bed{T: t, workers: workers, run: run, running: map[string]int{}, last: map[string]int{}, next: map[string]int{}}
	b.dispatcher = keyqueue.New(workers, b.turn)
	b.SetLimits(keyqueue.Limits{Items: 1 << 20, Bytes: 1 << 40})
	return b
}

// inBubble runs a test with virtual time. At its end nothing may run any more: the workers are ended.
func inBubble(t *testing.T, workers int, run func(w *worker, k *queue, i *item) keyqueue.Turn, test func(b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, workers, run)
		defer b.shut()
		test(b)
	})
}

// shut ends the workers, which must be possible.
func (b *bed) shut() {
	b.Helper()
	ended := b.Close()
	synctest.Wait()
	select {
	case <-ended:
	default:
		b.Errorf("workers are left: %+v", b.Stats())
	}
}

func (b *bed) turn(w *worker, k *queue, i *item) keyqueue.Turn {
	it := *i
	b.enter(it)
	defer b.leave(it)
	if b.run == nil {
		return keyqueue.Done()
	}
	return b.run(w, k, i)
}

func (b *bed) enter(it item) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.began = append(b.began, it.String())
	if it.key == "" {
		return // of a lone key: no order
	}
	b.running[it.key]++
	if b.running[it.key] > 1 {
		b.Errorf("two items of %q run at once", it.key)
	}
	if it.n < b.last[it.key] {
		b.Errorf("%v runs after number %d", it, b.last[it.key])
	}
	b.last[it.key] = it.n
	b.now++
	b.most = max(b.most, b.now)
}

func (b *bed) leave(it item) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if it.key != "" {
		b.running[it.key]--
		b.now--
	}
}

// add reserves a place, which must be there, and adds the next item of a key, of 10 bytes.
func (b *bed) add(keys ...string) {
	b.Helper()
	for _, key := range keys {
		if !b.Reserve() {
			b.Fatalf("no place for an item of %q: %+v", key, b.Stats())
		}
		b.next[key]++
		b.Add(key, item{key, b.next[key]}, 10)
	}
}

// wait lets everything run until nothing moves but time.
func (b *bed) wait() { synctest.Wait() }

// ran checks what has begun so far, in this order, and forgets it.
func (b *bed) ran(want ...string) {
	b.Helper()
	b.wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Equal(b.began, want) {
		b.Errorf("ran %v, want %v", b.began, want)
	}
	b.began = nil
}

// forget drops the record of what has begun.
func (b *bed) forget() {
	b.wait()
	b.locked(func() { b.began = nil })
}

func (b *bed) locked(f func()) { b.mu.Lock(); defer b.mu.Unlock(); f() }

// empty checks that nothing is held, not even a place.
func (b *bed) empty() {
	b.Helper()
	b.wait()
	if s := b.Stats(); s.Held != 0 || s.Bytes != 0 || s.Keys != 0 || s.Ready != 0 || s.Paused != 0 || s.Blocked != 0 || s.Running != 0 || s.Detached != 0 {
		b.Errorf("something is left: %+v", s)
	}
}

// slowly is a run that takes a second.
func slowly(*worker, *queue, *item) keyqueue.Turn {
	time.Sleep(time.Second)
	return keyqueue.Done()
}

func names(keys []*queue) []string {
	var all []string
	for _, k := range keys {
		all = append(all, k.Name())
	}
	slices.Sort(all)
	return all
}

// rung says whether a bell has been rung, and silences it.
func rung(bell <-chan struct{}) bool {
	select {
	case <-bell:
		return true
	default:
		return false
	}
}
