package keyqueue

// round is the order in which keys take turns: that of their becoming ready, but a key that began its last turn before another one also goes
// before it, if both have more to come.
//
// In the plain order of becoming ready, tasks of one length end in any order, and a key that ends late a few times falls turns
// behind: 160 keys with 8 items each then take 100 workers 14 task times, and 13 in this order, the least possible. So when the first of those that
// run is ready again, those that began before it get their places before it. A worker that looks for a ready key takes out on the way
// what still runs; such a key has been passed, and goes to the front when it is ready. Each of these steps is done once a turn at
// most, so that a turn costs the same however many keys there are; and who comes new waits for nobody who began after it came.
type round[T any] struct {
	line  keyList[T] // ready, or running with a place kept
	runs  keyList[T] // running, in the order in which they began
	ready int
}

// spot is where a key stands in the round.
type spot uint8

const (
	spotNone   spot = iota
	spotLine        // in line
	spotRuns        // in runs
	spotPassed      // in neither: it runs, and workers have looked past its place
)

// enter makes a key one that workers may take.
func (r *round[T]) enter(k *Key[T]) {
	switch k.spot {
	case spotNone:
		r.line.push(k)
	case spotRuns:
		for k.spot == spotRuns {
			older := r.runs.first
			r.runs.unlink(older)
			r.line.push(older)
			older.spot = spotLine
		}
	case spotPassed:
		r.line.pushFront(k)
	}
	k.spot = spotLine
	k.state = stateReady
	r.ready++
}

// take gives the next ready key, which runs from now on; nil if there is none.
func (r *round[T]) take() *Key[T] {
	if r.ready == 0 {
		return nil
	}
	k := r.line.first
	for k.state != stateReady {
		r.line.unlink(k)
		k.spot = spotPassed
		k = r.line.first
	}
	r.line.unlink(k)
	r.runs.push(k)
	k.spot = spotRuns
	k.state = stateRunning
	r.ready--
	return k
}

// leave takes out a key that does not go on. Its state is changed afterwards, by the caller.
func (r *round[T]) leave(k *Key[T]) {
	switch k.spot {
	case spotLine:
		r.line.unlink(k)
	case spotRuns:
		r.runs.unlink(k)
	}
	if k.state == stateReady {
		r.ready--
	}
	k.spot = spotNone
}

// keyList is a list of keys linked through the keys themselves; a key is in one at most.
type keyList[T any] struct {
	first, last *Key[T]
}

func (l *keyList[T]) push(k *Key[T]) {
	k.after, k.ahead = nil, l.last
	if l.last == nil {
		l.first = k
	} else {
		l.last.after = k
	}
	l.last = k
}

func (l *keyList[T]) pushFront(k *Key[T]) {
	k.after, k.ahead = l.first, nil
	if l.first == nil {
		l.last = k
	} else {
		l.first.ahead = k
	}
	l.first = k
}

func (l *keyList[T]) unlink(k *Key[T]) {
	if k.ahead == nil {
		l.first = k.after
	} else {
		k.ahead.after = k.after
	}
	if k.after == nil {
		l.last = k.ahead
	} else {
		k.after.ahead = k.ahead
	}
	k.after, k.ahead = nil, nil
}
