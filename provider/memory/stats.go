package memory

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/keyseq/keyseq/jms"
)

type counters struct {
	sent, received, redelivered, settled, returned, expired, lost uint64
	maxUnsettled, maxReceives                                     int
}

// Stats are the numbers of a queue.
type Stats struct {
	// Depth is all messages: Ready, Delayed and Unsettled.
	Depth int
	// Ready can be received now.
	Ready int
	// Delayed are not visible yet.
	Delayed int
	// Unsettled were sent to a client and are neither settled nor back, prefetched ones and those of dead clients included.
	Unsettled int
	// Connections the broker counts, dead ones that it has not noticed included.
	Connections int

	// Sent, Received (by sessions), Redelivered (of Received, not for the first time), Settled (removed by a commit), Returned (given
	// back, by whom ever), Expired and Lost (not persistent, dropped by Restart) count messages since the queue was declared.
	Sent, Received, Redelivered, Settled, Returned, Expired, Lost uint64
	// MaxUnsettled is the most that ever were unsettled at once.
	MaxUnsettled int
	// MaxReceives is the most calls of Receive that ever ran at once on one connection; the manager never has more than one.
	MaxReceives int
}

// Stats returns the numbers of a queue. An unknown queue is jms.ErrConfig.
func (b *Broker) Stats(queue string) (Stats, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q, err := b.find(queue)
	if err != nil {
		return Stats{}, err
	}
	q.sweep()
	n := q.counters
	return Stats{
		Depth: q.depth, Ready: q.depth - q.unsettled - len(q.delayed), Delayed: len(q.delayed), Unsettled: q.unsettled,
		Connections: len(q.conns),
		Sent:        n.sent, Received: n.received, Redelivered: n.redelivered, Settled: n.settled, Returned: n.returned,
		Expired: n.expired, Lost: n.lost, MaxUnsettled: n.maxUnsettled, MaxReceives: n.maxReceives,
	}, nil
}

// Depth returns how many messages a queue has, unsettled and delayed ones included: 0 when all is done. -1: there is no such queue.
func (b *Broker) Depth(queue string) int {
	s, err := b.Stats(queue)
	if err != nil {
		return -1
	}
	return s.Depth
}

// Browse returns copies of the messages that can be received now, in the order in which they would be. ID is set whatever the profile,
// DeliveryCount is how often each was delivered so far. Body and Properties must not be changed. An unknown queue is jms.ErrConfig.
func (b *Broker) Browse(queue string) ([]jms.Message, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q, err := b.find(queue)
	if err != nil {
		return nil, err
	}
	q.sweep()
	return views(q.ready.all()), nil
}

// Held returns copies of the unsettled messages, in the order of the queue; otherwise it is like Browse.
func (b *Broker) Held(queue string) ([]jms.Message, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q, err := b.find(queue)
	if err != nil {
		return nil, err
	}
	var es []*entry
	for _, c := range q.conns {
		es = append(append(es, c.ahead...), c.acks.written...)
		for s := range c.sessions {
			if s.held != nil {
				es = append(es, s.held)
			}
		}
	}
	slices.SortFunc(es, func(a, b *entry) int { return cmp.Compare(a.seq, b.seq) })
	return views(es), nil
}

func views(es []*entry) []jms.Message {
	ms := make([]jms.Message, len(es))
	for i, e := range es {
		ms[i] = e.msg
		ms[i].ID, ms[i].DeliveryCount, ms[i].Redelivered = e.id, e.sent, e.sent > 1 || e.marked
	}
	return ms
}

// forgetVolatile is what a restart does to the messages of a queue; none is unsettled then. It needs the mutex.
func (q *queue) forgetVolatile() {
	gone := func(e *entry) bool {
		if e.msg.Persistent {
			e.marked = e.marked || q.b.profile.MarkAll
			return false
		}
		q.depth--
		q.counters.lost++
		if !e.msg.Expiration.IsZero() {
			q.expiring--
		}
		return true
	}
	q.ready.keep(func(e *entry) bool { return !gone(e) })
	q.delayed = slices.DeleteFunc(q.delayed, gone)
	heap.Init(&q.delayed)
}
