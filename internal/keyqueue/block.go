package keyqueue

// Halt stops all starts at once, on every key; what runs goes on.
func (d *Dispatcher[T, W]) Halt() {
	d.mu.Lock()
	d.halted = true
	d.mu.Unlock()
}

// Resume ends a Halt.
func (d *Dispatcher[T, W]) Resume() {
	d.mu.Lock()
	d.halted = d.quit
	w, spawn := d.wakeForReady()
	d.mu.Unlock()
	d.start(w, spawn)
}

func (d *Dispatcher[T, W]) setBlocked(k *Key[T], blocked bool) {
	switch {
	case blocked && !k.blocked:
		d.blocked++
	case !blocked && k.blocked:
		d.blocked--
	}
	k.blocked = blocked
}

// block lets a key start nothing more; what it runs goes on. The lock is held.
func (d *Dispatcher[T, W]) block(k *Key[T]) {
	d.setBlocked(k, true)
	switch k.state {
	case stateReady:
		d.unready(k)
		k.state = stateResting
	case statePaused:
		d.unpause(k)
		k.state = stateResting
	case stateIdle:
		k.state = stateResting
	}
}

// BlockWhere blocks the keys that pick chooses and that are not blocked yet, and returns them. pick is called under the lock; it
// must be short and call nothing of d.
func (d *Dispatcher[T, W]) BlockWhere(pick func(View[T]) bool) (keys []*Key[T]) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.table.all(func(k *Key[T]) {
		if !k.blocked && k.head != nil && pick(d.view(k)) {
			d.block(k)
			k.listed = true
			keys = append(keys, k)
		}
	})
	return keys
}

// Leaving returns the keys that a turn has blocked since the last call.
func (d *Dispatcher[T, W]) Leaving() []*Key[T] {
	d.mu.Lock()
	defer d.mu.Unlock()
	keys := d.leaving
	d.leaving = nil
	return keys
}

// Left is rung when Leaving has one more to return.
func (d *Dispatcher[T, W]) Left() <-chan struct{} { return d.left }

// Release lets a blocked key go on with what it holds; it is forgotten if that is nothing. It returns false, and the key stays
// blocked, if a turn has blocked it once more since it was returned by Leaving or BlockWhere: TakeBack has to be called again.
func (d *Dispatcher[T, W]) Release(k *Key[T]) bool {
	d.mu.Lock()
	if k.again {
		k.again = false
		d.mu.Unlock()
		return false
	}
	k.listed = false
	d.setBlocked(k, false)
	if k.state == stateResting {
		d.next(k)
	}
	w, spawn := d.wakeForReady()
	d.ring()
	d.mu.Unlock()
	d.start(w, spawn)
	return true
}

// TakeBack removes from a blocked key everything that does not run, newest first, and returns it. The places of what it returns stay
// taken until Returned.
func (d *Dispatcher[T, W]) TakeBack(k *Key[T]) []T {
	d.mu.Lock()
	defer d.mu.Unlock()
	items, size := d.takeBack(k)
	d.room.bytes -= size
	return items
}

func (d *Dispatcher[T, W]) takeBack(k *Key[T]) ([]T, int64) {
	keep := 0
	if k.state == stateRunning {
		keep = 1
	} else {
		k.tries = 0
	}
	return d.table.behind(k, keep)
}

// Returned gives up the places of n items that TakeBack returned.
func (d *Dispatcher[T, W]) Returned(n int) {
	d.mu.Lock()
	d.room.held -= n
	d.ring()
	d.mu.Unlock()
}

// DropAll removes from every key everything that does not run and lifts every block: the items are lost to this dispatcher and will come
// again. What runs stays the head of its key until its turn ends. It returns what it dropped.
func (d *Dispatcher[T, W]) DropAll() (items []T) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.table.all(func(k *Key[T]) {
		if !k.blocked {
			d.block(k)
		}
		dropped, size := d.takeBack(k)
		items = append(items, dropped...)
		d.room.held -= len(dropped)
		d.room.bytes -= size
		d.setBlocked(k, false)
		k.listed, k.again = false, false
		if k.state == stateResting {
			d.next(k)
		}
	})
	d.leaving = nil
	d.ring()
	return items
}
