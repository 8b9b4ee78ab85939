package keyqueue

// Limits bound what is held at once.
type Limits struct {
	Items int   // most items, reserved places included
	Bytes int64 // no place is given while so many bytes are held
	// Fresh bounds the keys that run or are ready with an item that has not failed yet; 0: no bound. Where a held item is costly, more of them than
	// workers can take up only cost: with a bound a little above the number of workers the window sizes itself, 101 items where every
	// one has its own key, 1,200 where 24 of a key come in a row (see docs/tuning.md). Keys that are being retried do not count, or
	// a few that fail fast would starve all others.
	Fresh int
}

// room is the admission of items. The dispatcher's lock guards it.
type room struct {
	limits Limits
	held   int // items, and places reserved
	bytes  int64
	fresh  int
	wanted bool // somebody waits for the bell
	bell   chan struct{}
}

func (r *room) full() bool {
	l := &r.limits
	return r.held >= l.Items || r.bytes >= l.Bytes || l.Fresh > 0 && r.fresh >= l.Fresh
}

func (r *room) ring() {
	if r.wanted && !r.full() {
		r.wanted = false
		select {
		case r.bell <- struct{}{}:
		default:
		}
	}
}

// SetLimits changes the limits; what is held already stays.
func (d *Dispatcher[T, W]) SetLimits(l Limits) {
	d.mu.Lock()
	d.room.limits = l
	d.room.ring()
	d.mu.Unlock()
}

// Reserve takes a place for one item, to be used by Add or given back by Cancel. If there is none it returns false, and Room will be rung
// when one may have come. One goroutine at a time may reserve.
func (d *Dispatcher[T, W]) Reserve() bool {
	d.mu.Lock()
	ok := !d.room.full()
	if ok {
		d.room.held++
	}
	d.room.wanted = !ok
	d.mu.Unlock()
	return ok
}

// Room is rung after a failed Reserve when there may be a place.
func (d *Dispatcher[T, W]) Room() <-chan struct{} { return d.room.bell }

// Cancel gives a reserved place back.
func (d *Dispatcher[T, W]) Cancel() {
	d.mu.Lock()
	d.room.held--
	d.ring()
	d.mu.Unlock()
}
