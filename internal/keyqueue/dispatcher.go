package keyqueue

import (
	"hash/maphash"
	"math"
	"sync"
	"time"
)

// Dispatcher hands the items of each key, in order and one at a time, to at most a fixed number of workers. T is the item, kept by
// value; W is what the owner wants to keep with each worker. All methods are safe for concurrent use.
type Dispatcher[T, W any] struct {
	run        func(*Worker[T, W], *Key[T], *T) Turn
	maxWorkers int
	seed       maphash.Seed

	mu     sync.Mutex
	table  table[T]
	round  round[T]
	pauses pauseHeap[T]
	room   room

	halted  bool          // nothing starts, on any key
	blocked int           // keys that are
	leaving []*Key[T]     // keys blocked by a turn, not yet taken by Leaving
	left    chan struct{} // rung when there is one more

	idle    *Worker[T, W] // parked, last in first out
	all     []*Worker[T, W]
	waking  bool // a worker is on its way: wake no second one
	running int  // workers inside run, without the detached
	loose   int  // detached workers that have not come back
	quit    bool
	ended   chan struct{} // closed when quit and the last worker is gone

	quiet chan struct{} // rung whenever running, loose or the number of held items falls
}

// New makes a dispatcher that has no workers yet. run is called on a worker's goroutine for the head of a key and says
// with its Turn what becomes of it; the item may be read and changed there, but other readers of it see the changes only where they were
// made inside Update.
func New[T, W any](workers int, run func(*Worker[T, W], *Key[T], *T) Turn) *Dispatcher[T, W] {
	d := &Dispatcher[T, W]{run: run, maxWorkers: workers, seed: maphash.MakeSeed(), quiet: make(chan struct{}, 1), left: make(chan struct{}, 1)}
	d.table.init()
	d.room.bell = make(chan struct{}, 1)
	d.pauses.base = time.Now()
	return d
}

// Add appends an item to its key, in the place that Reserve took. The key's queue is made if there is none. size is counted against
// the limit of bytes.
func (d *Dispatcher[T, W]) Add(key string, item T, size int) {
	h := maphash.String(d.seed, key)
	d.mu.Lock()
	k := d.table.get(h, key)
	d.append(k, item, size)
}

// AddAlone gives an item a key of its own, which no other item joins; name is only shown.
func (d *Dispatcher[T, W]) AddAlone(name string, item T, size int) {
	d.mu.Lock()
	k := d.table.alone(name)
	d.append(k, item, size)
}

// AddLeaving is AddAlone for an item that must not run: its key is blocked and reported by Leaving.
func (d *Dispatcher[T, W]) AddLeaving(name string, item T, size int) {
	d.mu.Lock()
	k := d.table.alone(name)
	d.setBlocked(k, true)
	k.listed = true
	d.reportLeaving(k)
	d.append(k, item, size)
}

// reportLeaving puts a key on the list of Leaving. The lock is held.
func (d *Dispatcher[T, W]) reportLeaving(k *Key[T]) {
	d.leaving = append(d.leaving, k)
	select {
	case d.left <- struct{}{}:
	default:
	}
}

// append is entered with the lock held and leaves without.
func (d *Dispatcher[T, W]) append(k *Key[T], item T, size int) {
	d.table.push(k, item, size)
	d.room.bytes += int64(size)
	if k.state != stateIdle || k.blocked {
		if k.state == stateIdle {
			k.state = stateResting
		}
		d.mu.Unlock()
		return
	}
	d.makeReady(k)
	w, spawn := d.summon()
	d.mu.Unlock()
	d.start(w, spawn)
}

// makeReady gives a key its next turn, in the order of the round.
func (d *Dispatcher[T, W]) makeReady(k *Key[T]) {
	d.round.enter(k)
	if k.tries == 0 {
		d.room.fresh++
	}
}

// unready takes a ready key out of the round, wherever it stands.
func (d *Dispatcher[T, W]) unready(k *Key[T]) {
	d.round.leave(k)
	if k.tries == 0 {
		d.room.fresh--
	}
}

// Turn is what run made of the head of a key.
type Turn struct {
	kind  turnKind
	pause time.Duration
}

type turnKind uint8

const (
	turnNone turnKind = iota
	turnDone
	turnAgain
	turnNotYet
	turnLeft
	turnStay
)

// Done says that the item is done with; the key's next one may run.
func Done() Turn { return Turn{kind: turnDone} }

// Again says to run the same item again after the pause; its key waits, its worker does not.
func Again(pause time.Duration) Turn { return Turn{turnAgain, pause} }

// NotYet is Again for an item that has not been tried: its key counts as before. See Limits.Fresh.
func NotYet(pause time.Duration) Turn { return Turn{turnNotYet, pause} }

// Left says that the item is gone without being settled. Its key is blocked and reported by Leaving.
func Left() Turn { return Turn{kind: turnLeft} }

// Stay says that the item is to be given back. It stays the head of its key, which is blocked and reported by Leaving.
func Stay() Turn { return Turn{kind: turnStay} }

// finish applies a turn to the key that a worker had. The lock is held.
func (d *Dispatcher[T, W]) finish(k *Key[T], t Turn) {
	if k.tries == 0 {
		d.room.fresh--
	}
	switch t.kind {
	case turnAgain, turnNotYet:
		if t.kind == turnAgain && k.tries < math.MaxUint16 {
			k.tries++
		}
		d.round.leave(k)
		if k.blocked {
			k.state = stateResting
		} else {
			d.pause(k, t.pause)
		}
		d.ring()
		return
	case turnLeft, turnStay:
		d.setBlocked(k, true)
		if k.listed {
			k.again = true
		} else {
			k.listed = true
			d.reportLeaving(k)
		}
		if t.kind == turnStay {
			d.round.leave(k)
			k.state = stateResting
			d.ring()
			return
		}
	}
	d.pop(k)
	d.next(k)
	d.ring()
}

// pop removes the head of a key and gives its place back. The lock is held.
func (d *Dispatcher[T, W]) pop(k *Key[T]) {
	d.room.held--
	d.room.bytes -= int64(d.table.pop(k))
	k.tries = 0
}

// next decides what a key does that neither runs nor pauses. The lock is held.
func (d *Dispatcher[T, W]) next(k *Key[T]) {
	switch {
	case k.blocked:
		d.round.leave(k)
		k.state = stateResting
	case k.head != nil:
		d.makeReady(k)
	default:
		d.round.leave(k)
		d.table.remove(k)
	}
}

// ring tells who waits for room or for quiet that it may have come. The lock is held.
func (d *Dispatcher[T, W]) ring() {
	d.room.ring()
	select {
	case d.quiet <- struct{}{}:
	default:
	}
}
