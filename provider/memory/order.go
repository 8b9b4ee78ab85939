package memory

import (
	"container/heap"
	"math/bits"
	"time"

	"github.com/keyseq/keyseq/jms"
)

// entry is one message on a queue. It is in exactly one place: on a level (ready), in the delayed heap, in a connection's
// prefetch buffer, held by a session, or in a connection's unprocessed acknowledgements.
type entry struct {
	msg    jms.Message // handed out as it is at the first delivery; later deliveries get a copy
	id     string
	q      *queue
	seq    uint64 // place in the queue, kept for life
	rank   uint64 // place among the returned ones
	next   *entry
	sent   int  // how often it was sent to a client
	marked bool // redelivered without ever having been sent
	due    time.Time
	since  time.Time // held since, with Profile.HoldTimeout
}

func (e *entry) expired(now time.Time) bool {
	return !e.msg.Expiration.IsZero() && !now.Before(e.msg.Expiration)
}

// level holds the ready messages of one priority. What was never delivered is a list in the order of arrival. What came back is a heap by
// rank in front of it: a message comes back only after it was at the list's head, so it always precedes what is still on the list.
// That makes taking and settling O(1), and giving back O(log of what is back at that moment).
type level struct {
	head, tail *entry
	back       ranked
}

func (l *level) empty() bool { return l.head == nil && len(l.back) == 0 }

func (l *level) push(e *entry) {
	e.next = nil
	if l.tail == nil {
		l.head = e
	} else {
		l.tail.next = e
	}
	l.tail = e
}

func (l *level) pop() *entry {
	if len(l.back) > 0 {
		return heap.Pop(&l.back).(*entry)
	}
	e := l.head
	l.head = e.next
	if l.head == nil {
		l.tail = nil
	}
	e.next = nil
	return e
}

// keep drops what the condition is false for, and returns how many that were.
func (l *level) keep(cond func(*entry) bool) (dropped int) {
	fresh := l.head
	l.head, l.tail = nil, nil
	for e := fresh; e != nil; {
		next := e.next
		if cond(e) {
			l.push(e)
		} else {
			dropped++
		}
		e = next
	}
	back := l.back[:0]
	for _, e := range l.back {
		if cond(e) {
			back = append(back, e)
		} else {
			dropped++
		}
	}
	clear(l.back[len(back):])
	l.back = back
	heap.Init(&l.back)
	return dropped
}

// levels are the ready messages of a queue: the highest priority first, then the order of arrival.
type levels struct {
	used uint16 // bit p: level p is not empty
	at   [10]level
}

func (ls *levels) push(e *entry) {
	ls.used |= 1 << e.msg.Priority
	ls.at[e.msg.Priority].push(e)
}

func (ls *levels) giveBack(e *entry) {
	ls.used |= 1 << e.msg.Priority
	heap.Push(&ls.at[e.msg.Priority].back, e)
}

func (ls *levels) pop() *entry {
	if ls.used == 0 {
		return nil
	}
	p := bits.Len16(ls.used) - 1
	l := &ls.at[p]
	e := l.pop()
	if l.empty() {
		ls.used &^= 1 << p
	}
	return e
}

func (ls *levels) keep(cond func(*entry) bool) (dropped int) {
	for p := range ls.at {
		l := &ls.at[p]
		dropped += l.keep(cond)
		if l.empty() {
			ls.used &^= 1 << p
		}
	}
	return dropped
}

// all returns the ready messages in the order in which they would be delivered.
func (ls *levels) all() []*entry {
	var es []*entry
	for p := len(ls.at) - 1; p >= 0; p-- {
		back := append(ranked(nil), ls.at[p].back...)
		for len(back) > 0 {
			es = append(es, heap.Pop(&back).(*entry))
		}
		for e := ls.at[p].head; e != nil; e = e.next {
			es = append(es, e)
		}
	}
	return es
}

// ranked is a heap of entries by rank.
type ranked []*entry

func (h ranked) Len() int           { return len(h) }
func (h ranked) Less(i, j int) bool { return h[i].rank < h[j].rank }
func (h ranked) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *ranked) Push(x any)        { *h = append(*h, x.(*entry)) }
func (h *ranked) Pop() any          { return popLast((*[]*entry)(h)) }

// delayed is a heap of entries by the time when they become visible, then by the order in which they were sent.
type delayed []*entry

func (h delayed) Len() int { return len(h) }
func (h delayed) Less(i, j int) bool {
	if h[i].due.Equal(h[j].due) {
		return h[i].seq < h[j].seq
	}
	return h[i].due.Before(h[j].due)
}
func (h delayed) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *delayed) Push(x any)   { *h = append(*h, x.(*entry)) }
func (h *delayed) Pop() any     { return popLast((*[]*entry)(h)) }

func popLast(h *[]*entry) *entry {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return e
}
