package keyqueue

import (
	"container/heap"
	"math"
	"time"
)

// pauseHeap holds the keys whose head waits for its next attempt: one heap and one timer for all of them, no goroutine and
// no timer per key. The dispatcher's lock guards it.
type pauseHeap[T any] struct {
	keys  []*Key[T]
	base  time.Time
	timer *time.Timer
}

func (h *pauseHeap[T]) Len() int           { return len(h.keys) }
func (h *pauseHeap[T]) Less(i, j int) bool { return h.keys[i].due < h.keys[j].due }
func (h *pauseHeap[T]) Swap(i, j int) {
	h.keys[i], h.keys[j] = h.keys[j], h.keys[i]
	h.keys[i].place, h.keys[j].place = int32(i), int32(j)
}
func (h *pauseHeap[T]) Push(x any) {
	k := x.(*Key[T])
	k.place = int32(len(h.keys))
	h.keys = append(h.keys, k)
}
func (h *pauseHeap[T]) Pop() any {
	last := len(h.keys) - 1
	k := h.keys[last]
	h.keys[last] = nil
	h.keys = h.keys[:last]
	return k
}

func (h *pauseHeap[T]) now() int64 { return int64(time.Since(h.base)) }

func (h *pauseHeap[T]) stop() {
	if h.timer != nil {
		h.timer.Stop()
	}
}

// pause puts a key to wait. The lock is held.
func (d *Dispatcher[T, W]) pause(k *Key[T], length time.Duration) {
	h := &d.pauses
	k.state = statePaused
	now := h.now()
	k.due = now + min(int64(max(length, 0)), math.MaxInt64-now) // "for ever" is not "at once"
	heap.Push(h, k)
	if h.keys[0] == k {
		d.arm()
	}
}

// arm sets the timer for the earliest pause. The lock is held.
func (d *Dispatcher[T, W]) arm() {
	h := &d.pauses
	wait := time.Duration(max(h.keys[0].due-h.now(), 0))
	if h.timer == nil {
		h.timer = time.AfterFunc(wait, d.wakePaused)
	} else {
		h.timer.Reset(wait)
	}
}

// wakePaused makes the keys ready whose pause is over.
func (d *Dispatcher[T, W]) wakePaused() {
	d.mu.Lock()
	h := &d.pauses
	now := h.now()
	for len(h.keys) > 0 && h.keys[0].due <= now {
		d.makeReady(heap.Pop(h).(*Key[T]))
	}
	if len(h.keys) > 0 && !d.quit {
		d.arm()
	}
	w, spawn := d.wakeForReady()
	d.mu.Unlock()
	d.start(w, spawn)
}

// unpause takes a key out of the heap. The lock is held.
func (d *Dispatcher[T, W]) unpause(k *Key[T]) {
	heap.Remove(&d.pauses, int(k.place))
}

// wakeForReady summons a worker if a key is ready. The lock is held.
func (d *Dispatcher[T, W]) wakeForReady() (*Worker[T, W], bool) {
	if d.round.ready == 0 {
		return nil, false
	}
	return d.summon()
}
