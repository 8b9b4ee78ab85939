package keyqueue

// Worker is one goroutine that runs turns. Own belongs to the owner of the dispatcher.
type Worker[T, W any] struct {
	Own W
	// Exit is the turn to take if run does not return because the callback ended its goroutine (runtime.Goexit); Again(0) if run
	// did not set it.
	Exit     Turn
	wake     chan struct{}
	next     *Worker[T, W]
	key      *Key[T] // what it runs
	turns    uint64  // grows with every turn
	detached bool    // it no longer counts as a worker: see Detach
}

// summon decides, with the lock held, who is to be woken for a ready key: a parked worker, a new one, or nobody because one is
// already on its way or all are busy. start does it after the lock has been given back.
func (d *Dispatcher[T, W]) summon() (w *Worker[T, W], spawn bool) {
	if d.waking || d.halted {
		return nil, false
	}
	if w = d.idle; w != nil {
		d.idle = w.next
		d.waking = true
		return w, false
	}
	if len(d.all)-d.loose < d.maxWorkers && !d.quit {
		w = &Worker[T, W]{wake: make(chan struct{}, 1)}
		d.all = append(d.all, w)
		d.waking = true
		return w, true
	}
	return nil, false
}

func (d *Dispatcher[T, W]) start(w *Worker[T, W], spawn bool) {
	switch {
	case spawn:
		go d.work(w)
	case w != nil:
		w.wake <- struct{}{}
	}
}

// work is a worker's life. A worker that is woken finds, in the order of the round, what there is to do, and
// parks when there is nothing.
func (d *Dispatcher[T, W]) work(w *Worker[T, W]) {
	onItsWay := true
	d.mu.Lock()
	for {
		if onItsWay {
			d.waking, onItsWay = false, false
		}
		var k *Key[T]
		if !d.halted {
			k = d.round.take() // a first attempt stays counted as fresh until its turn ends
		}
		if k == nil {
			if d.quit {
				d.leave(w)
				d.mu.Unlock()
				return
			}
			w.next = d.idle
			d.idle = w
			d.mu.Unlock()
			<-w.wake
			onItsWay = true
			d.mu.Lock()
			continue
		}
		w.key = k
		w.turns++
		item := &k.head.item
		d.running++
		var other *Worker[T, W]
		var spawn bool
		if d.round.ready > 0 {
			other, spawn = d.summon()
		}
		d.mu.Unlock()
		d.start(other, spawn)

		turn := d.turn(w, k, item)

		d.mu.Lock()
		d.endTurn(w, k, turn)
		if w.detached {
			d.leave(w)
			other, spawn = d.wakeForReady()
			d.mu.Unlock()
			d.start(other, spawn)
			return
		}
	}
}

// endTurn takes the key from the worker and applies the turn. The lock is held.
func (d *Dispatcher[T, W]) endTurn(w *Worker[T, W], k *Key[T], t Turn) {
	w.key = nil
	if w.detached {
		d.loose--
	} else {
		d.running--
	}
	d.finish(k, t)
}

// turn runs one item. A callback that ends its goroutine takes the worker with it, but not the key.
func (d *Dispatcher[T, W]) turn(w *Worker[T, W], k *Key[T], item *T) Turn {
	returned := false
	defer func() {
		if returned {
			return
		}
		t := w.Exit
		if t.kind == turnNone {
			t = Again(0)
		}
		d.mu.Lock()
		d.endTurn(w, k, t)
		d.leave(w)
		other, spawn := d.wakeForReady()
		d.mu.Unlock()
		d.start(other, spawn)
	}()
	t := d.run(w, k, item)
	returned = true
	return t
}

// leave forgets a worker that ends. The lock is held.
func (d *Dispatcher[T, W]) leave(w *Worker[T, W]) {
	for i, x := range d.all {
		if x == w {
			last := len(d.all) - 1
			d.all[i], d.all[last] = d.all[last], nil
			d.all = d.all[:last]
			break
		}
	}
	if d.quit && len(d.all) == 0 && d.ended != nil {
		close(d.ended)
		d.ended = nil
	}
}

// Detach lets another worker take the place of one whose turn is stuck in a call. Its key stays where it is; when the call
// comes back the turn ends as usual and the goroutine with it. turn is what Workers showed; false if the worker has moved on.
func (d *Dispatcher[T, W]) Detach(w *Worker[T, W], turn uint64) bool {
	d.mu.Lock()
	ok := w.key != nil && w.turns == turn && !w.detached
	var other *Worker[T, W]
	var spawn bool
	if ok {
		w.detached = true
		d.running--
		d.loose++
		if w.key.tries == 0 { // what is stuck needs no worker: it must not keep others out of the window
			w.key.tries = 1
			d.room.fresh--
		}
		other, spawn = d.wakeForReady()
		d.ring()
	}
	d.mu.Unlock()
	d.start(other, spawn)
	return ok
}

// Workers visits the workers that run something, each with the head of its key and the number of its turn. visit is called
// under the lock: it must be short and call nothing of d.
func (d *Dispatcher[T, W]) Workers(visit func(w *Worker[T, W], v View[T], turn uint64)) {
	d.mu.Lock()
	for _, w := range d.all {
		if w.key != nil {
			visit(w, d.view(w.key), w.turns)
		}
	}
	d.mu.Unlock()
}

// Close ends the workers: idle ones now, the others when their turn ends. The channel it returns is closed when none is left. Nothing may be
// added any more until Reopen.
func (d *Dispatcher[T, W]) Close() <-chan struct{} {
	ended := make(chan struct{})
	d.mu.Lock()
	d.quit = true
	d.halted = true
	d.pauses.stop()
	w := d.idle
	d.idle = nil
	if len(d.all) == 0 {
		close(ended)
	} else {
		d.ended = ended
	}
	d.mu.Unlock()
	for w != nil {
		next := w.next
		w.wake <- struct{}{}
		w = next
	}
	return ended
}

// Reopen undoes Close, once its channel is closed. What was left goes on.
func (d *Dispatcher[T, W]) Reopen() {
	d.mu.Lock()
	d.quit, d.halted, d.waking = false, false, false
	if len(d.pauses.keys) > 0 {
		d.arm()
	}
	w, spawn := d.wakeForReady()
	d.mu.Unlock()
	d.start(w, spawn)
}
