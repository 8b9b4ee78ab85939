package keyqueue_test

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keyseq/keyseq/internal/keyqueue"
)

// Everything at once in real time, for the race detector: a reader, workers that end in all ways, somebody who gives back, one who halts, one
// who detaches, one who looks. In the end every item was done, dropped or given back exactly once, and in the order of its key.
func TestStress(t *testing.T) {
	const keys, workers, limit = 30, 8, 200
	items := 20_000
	if testing.Short() {
		items = 2000
	}
	var gone [keys]atomic.Int64 // items that have left
	var busy [keys]atomic.Int32
	var last [keys]int // of what ran; each key is one at a time
	names := numbered(keys)
	var running, detached atomic.Int64
	d := keyqueue.New(workers, func(w *keyqueue.Worker[item, atomic.Bool], k *keyqueue.Key[item], i *item) keyqueue.Turn {
		at := i.n % keys
		if !busy[at].CompareAndSwap(0, 1) {
			t.Errorf("two items of %s run at once", k.Name())
		}
		defer busy[at].Store(0)
		if n := running.Add(1); n > workers+detached.Load() {
			t.Errorf("%d run at once", n)
		}
		defer running.Add(-1)
		if i.n < last[at] {
			t.Errorf("%s: %d runs after %d", k.Name(), i.n, last[at])
		}
		last[at] = i.n
		switch rand.IntN(40) {
		case 0:
			for range rand.IntN(100) {
				runtime.Gosched()
			}
			return keyqueue.Again(time.Duration(rand.IntN(300)) * time.Microsecond)
		case 1:
			gone[at].Add(1)
			return keyqueue.Left()
		case 2:
			return keyqueue.Stay()
		case 3:
			w.Exit = keyqueue.Again(0)
			runtime.Goexit()
		case 4:
			runtime.Gosched()
		}
		gone[at].Add(1)
		return keyqueue.Done()
	})
	d.SetLimits(keyqueue.Limits{Items: limit, Bytes: 1 << 40, Fresh: workers + 3})
	end := make(chan struct{})
	var others sync.WaitGroup
	every := func(pause time.Duration, do func()) {
		others.Go(func() {
			tick := time.NewTicker(pause)
			defer tick.Stop()
			for {
				select {
				case <-end:
					return
				case <-tick.C:
					do()
				}
			}
		})
	}
	giveBack := func(k *keyqueue.Key[item]) {
		for {
			back := d.TakeBack(k)
			for i, x := range back {
				gone[x.n%keys].Add(1)
				if i > 0 && x.n >= back[i-1].n {
					t.Errorf("given back %v: not newest first", back)
				}
			}
			d.Returned(len(back))
			if d.Release(k) {
				return
			}
		}
	}
	others.Go(func() {
		for {
			select {
			case <-end:
				return
			case <-d.Left():
				for _, k := range d.Leaving() {
					giveBack(k)
				}
			}
		}
	})
	every(2*time.Millisecond, func() {
		for _, k := range d.BlockWhere(func(v keyqueue.View[item]) bool { return v.Head.n%7 == 0 }) {
			giveBack(k)
		}
	})
	every(3*time.Millisecond, func() { d.Halt(); runtime.Gosched(); d.Resume() })
	every(5*time.Millisecond, func() {
		type one struct {
			w    *keyqueue.Worker[item, atomic.Bool]
			turn uint64
		}
		var all []one
		d.Workers(func(w *keyqueue.Worker[item, atomic.Bool], _ keyqueue.View[item], turn uint64) {
			all = append(all, one{w, turn})
		})
		for _, o := range all {
			detached.Add(1) // before it can have an effect; never taken back: an upper bound
			d.Detach(o.w, o.turn)
		}
	})
	every(time.Millisecond, func() {
		n := 0
		d.Each(func(v keyqueue.View[item]) { n += v.Items })
		if s := d.Stats(); s.Held > limit || s.Running > workers || n > limit {
			t.Errorf("%+v, %d items", s, n)
		}
	})
	for i := range items {
		for !d.Reserve() {
			select {
			case <-d.Room():
			case <-time.After(time.Minute):
				t.Fatalf("no room for a minute: %+v", d.Stats())
			}
		}
		d.Add(names[i%keys], item{names[i%keys], i}, 1)
	}
	for late := time.After(time.Minute); d.Stats().Held > 0; {
		select {
		case <-d.Quiet():
		case <-late:
			t.Fatalf("not all is done after a minute: %+v", d.Stats())
		}
	}
	close(end)
	others.Wait()
	<-d.Close()
	total := int64(0)
	for i := range gone {
		total += gone[i].Load()
	}
	if total != int64(items) {
		t.Errorf("%d items have left, want %d", total, items)
	}
	if s := d.Stats(); s.Keys != 0 || s.Workers != 0 || s.Detached != 0 || s.Bytes != 0 {
		t.Errorf("something is left: %+v", s)
	}
}

// Each shows every key that is there all the time, and shows it once, also while the table grows under its feet.
func TestEachWhileTheTableGrows(t *testing.T) {
	d := newBare()
	d.Halt()
	const staying = 5000
	keys := numbered(200_000)
	add := func(key string) { d.Reserve(); d.Add(key, nil, 1) }
	for _, k := range keys[:staying] {
		add(k)
	}
	grown := make(chan struct{})
	go func() {
		defer close(grown)
		for _, k := range keys[staying:] {
			add(k)
		}
	}()
	for more := true; more; {
		select {
		case <-grown:
			more = false
		default:
		}
		seen := map[string]int{}
		d.Each(func(v keyqueue.View[*message]) { seen[v.Name]++ })
		for _, k := range keys[:staying] {
			if seen[k] == 0 {
				t.Fatalf("%s was missed", k)
			}
		}
		for k, n := range seen {
			if n > 1 {
				t.Fatalf("%s was shown %d times", k, n)
			}
		}
	}
	<-d.Close()
}
