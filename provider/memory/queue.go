package memory

import (
	"cmp"
	"container/heap"
	"slices"
	"time"
)

// The methods of queue need the broker's mutex.

// put makes a message visible, or sets it aside until it is due. The caller calls dispatch after the last one.
func (q *queue) put(e *entry) {
	e.q = q
	q.depth++
	if !e.msg.Expiration.IsZero() {
		q.expiring++
	}
	q.lastSeq++
	e.seq = q.lastSeq
	q.counters.sent++
	if !e.due.IsZero() {
		heap.Push(&q.delayed, e)
		q.armDelay()
		return
	}
	q.ready.push(e)
}

// armDelay makes the timer fire when the next delayed message is due.
func (q *queue) armDelay() {
	d := time.Until(q.delayed[0].due)
	if q.delayTime != nil {
		q.delayTime.Stop()
	}
	q.delayTime = time.AfterFunc(d, func() {
		q.b.mu.Lock()
		defer q.b.mu.Unlock()
		q.promote(time.Now())
		q.dispatch()
		if len(q.delayed) > 0 && !q.b.closed {
			q.armDelay()
		}
	})
}

// promote makes visible what has become due; its place in the queue is that of its becoming visible.
func (q *queue) promote(now time.Time) {
	for len(q.delayed) > 0 && !q.delayed[0].due.After(now) {
		e := heap.Pop(&q.delayed).(*entry)
		q.lastSeq++
		e.seq = q.lastSeq
		q.ready.push(e)
	}
}

// take removes the next message from the ready ones; nil if there is none.
func (q *queue) take() *entry {
	var now time.Time
	if len(q.delayed) > 0 || q.expiring > 0 {
		now = time.Now()
		q.promote(now)
	}
	for {
		e := q.ready.pop()
		if e == nil {
			return nil
		}
		if q.expiring > 0 && e.expired(now) {
			q.forgetExpired(1)
			continue
		}
		e.sent++
		q.unsettled++
		q.counters.maxUnsettled = max(q.counters.maxUnsettled, q.unsettled)
		return e
	}
}

func (q *queue) forgetExpired(n int) {
	q.depth -= n
	q.expiring -= n
	q.counters.expired += uint64(n)
}

// sweep drops all expired messages that are ready or delayed. They are otherwise found when their turn comes.
func (q *queue) sweep() {
	if len(q.delayed) == 0 && q.expiring == 0 {
		return
	}
	now := time.Now()
	q.promote(now)
	if q.expiring == 0 {
		return
	}
	q.forgetExpired(q.ready.keep(func(e *entry) bool { return !e.expired(now) }))
	waiting := len(q.delayed)
	q.delayed = slices.DeleteFunc(q.delayed, func(e *entry) bool { return e.expired(now) })
	heap.Init(&q.delayed)
	q.forgetExpired(waiting - len(q.delayed))
}

// settle removes a message that was sent to a client.
func (q *queue) settle(e *entry) {
	q.depth--
	q.unsettled--
	if !e.msg.Expiration.IsZero() {
		q.expiring--
	}
	q.counters.settled++
}

// giveBack puts back messages that were sent to a client, in the order of the queue. The caller calls dispatch when all is back.
func (q *queue) giveBack(es ...*entry) {
	if len(es) > 1 {
		slices.SortFunc(es, func(a, b *entry) int { return cmp.Compare(a.seq, b.seq) })
	}
	for _, e := range es {
		q.unsettled--
		q.counters.returned++
		if q.b.profile.ReturnOrder {
			q.lastReturn++
			e.rank = q.lastReturn
		} else {
			e.rank = e.seq
		}
		q.ready.giveBack(e)
	}
}

// giveBackToTail puts one message behind all others.
func (q *queue) giveBackToTail(e *entry) {
	q.unsettled--
	q.counters.returned++
	q.lastSeq++
	e.seq = q.lastSeq
	q.ready.push(e)
}

// dispatch hands ready messages to those who wait for them. It is called after each change that may matter to them.
func (q *queue) dispatch() {
	if q.b.profile.Prefetch > 0 {
		q.push()
		return
	}
	for q.waiting > 0 && (q.ready.used != 0 || len(q.delayed) > 0) {
		c := q.next(func(c *conn) bool { return c.waiters.first != nil && c.mayTake() })
		if c == nil {
			return
		}
		e := q.take()
		if e == nil {
			return
		}
		c.waiters.first.hand(e)
	}
}

// next returns the next connection, in turn, for which cond holds; nil if there is none.
func (q *queue) next(cond func(*conn) bool) *conn {
	for range q.conns {
		q.turn++
		if q.turn >= len(q.conns) {
			q.turn = 0
		}
		if c := q.conns[q.turn]; cond(c) {
			return c
		}
	}
	return nil
}

// endReceives ends all waiting Receives that can be reached with an error.
func (q *queue) endReceives(err error) {
	for _, c := range q.conns {
		if c.cut {
			continue
		}
		for s := c.waiters.first; s != nil; {
			next := s.next
			if !s.cut {
				s.refuse(err)
			}
			s = next
		}
	}
}
