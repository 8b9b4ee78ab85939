package keyqueue

import (
	"hash/maphash"
	"time"
)

// View is what can be seen of a key, under the lock and no longer.
type View[T any] struct {
	Name    string
	Head    *T // nil: nothing is left, but something still refers to the key
	Second  *T // nil: the head is alone
	Items   int
	Running bool
	Paused  bool
	Blocked bool // starts nothing until released
	Due     time.Time
}

func (d *Dispatcher[T, W]) view(k *Key[T]) View[T] {
	v := View[T]{Name: k.name, Items: int(k.n), Running: k.state == stateRunning, Paused: k.state == statePaused, Blocked: k.blocked}
	if k.head != nil {
		v.Head = &k.head.item
		if k.head.next != nil {
			v.Second = &k.head.next.item
		}
	}
	if v.Paused {
		v.Due = d.pauses.base.Add(time.Duration(k.due))
	}
	return v
}

// Update runs change under the lock, for items that others may be looking at. It must be short and call nothing of d.
func (d *Dispatcher[T, W]) Update(change func()) {
	d.mu.Lock()
	change()
	d.mu.Unlock()
}

// Look shows one key to see; false if it has no work. see is called under the lock: it must be short and call nothing of d.
func (d *Dispatcher[T, W]) Look(name string, see func(View[T])) bool {
	h := maphash.String(d.seed, name)
	d.mu.Lock()
	defer d.mu.Unlock()
	k := d.table.find(h, name)
	if k == nil {
		return false
	}
	see(d.view(k))
	return true
}

// bucketsPerLock is how much of the table is visited at one holding of the lock: some microseconds.
const bucketsPerLock = 64

// Each shows every key to see, giving the lock up in between: a key that comes or goes meanwhile may be missed, none is shown twice. see
// must be short and call nothing of d.
func (d *Dispatcher[T, W]) Each(see func(View[T])) {
	d.mu.Lock()
	n := len(d.table.buckets)
	for i := 0; i < n; {
		for end := min(i+bucketsPerLock, n); i < end; i++ {
			// A table that has grown meanwhile has the keys of this bucket in those that are a multiple of n further.
			for b := i; b < len(d.table.buckets); b += n {
				d.table.each(b, func(k *Key[T]) { see(d.view(k)) })
			}
		}
		d.mu.Unlock() // let others in
		d.mu.Lock()
	}
	d.mu.Unlock()
}

// Stats are the dispatcher's counters at one moment.
type Stats struct {
	Workers, Running, Detached int
	Ready, Paused, Keys        int
	Blocked                    int // keys that start nothing until released
	Held                       int // items and reserved places
	Bytes                      int64
	Limits                     Limits
	Full                       bool
}

// Stats returns the counters.
func (d *Dispatcher[T, W]) Stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	return Stats{
		Workers: len(d.all) - d.loose, Running: d.running, Detached: d.loose,
		Ready: d.round.ready, Paused: len(d.pauses.keys), Blocked: d.blocked, Keys: d.table.live,
		Held: d.room.held, Bytes: d.room.bytes, Limits: d.room.limits, Full: d.room.full(),
	}
}

// Quiet is rung whenever fewer run or fewer are held than before.
func (d *Dispatcher[T, W]) Quiet() <-chan struct{} { return d.quiet }
