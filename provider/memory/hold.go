package memory

import (
	"fmt"
	"time"

	"github.com/keyseq/keyseq/jms"
)

// The methods of this file need the broker's mutex.

// watchHold notes when a message was sent to a client, and makes the timer look at it when its time is over.
func (q *queue) watchHold(e *entry) {
	limit := q.b.profile.HoldTimeout
	if limit <= 0 {
		return
	}
	e.since = time.Now()
	if q.holdTime == nil {
		q.armHold(limit)
	}
}

func (q *queue) armHold(d time.Duration) {
	q.holdTime = time.AfterFunc(d, func() {
		q.b.mu.Lock()
		defer q.b.mu.Unlock()
		q.holdTime = nil
		if q.b.closed {
			return
		}
		q.takeOverdue()
		if oldest, any := q.oldestHold(); any && q.holdTime == nil {
			q.armHold(time.Until(oldest.Add(q.b.profile.HoldTimeout)))
		}
	})
}

// takeOverdue takes away what has been held too long: a pulled message in silence, of a broker that pushes with its whole connection.
func (q *queue) takeOverdue() {
	var overdue []*session
	for _, c := range q.conns {
		for s := range c.sessions {
			if s.held != nil && !s.cut && !c.cut && time.Since(s.held.since) >= q.b.profile.HoldTimeout {
				overdue = append(overdue, s)
			}
		}
	}
	for _, s := range overdue {
		if s.held == nil { // gone with the connection of another one
			continue
		}
		if s.c.prefetch > 0 {
			s.c.lose(Loss{Broker: AtOnce}, fmt.Errorf("memory: queue %q: a message was held for more than %v, so the broker has closed the connection: %w",
				q.Name, q.b.profile.HoldTimeout, jms.ErrConnectionLost))
			continue
		}
		s.takeBack()
	}
}

func (q *queue) oldestHold() (oldest time.Time, any bool) {
	for _, c := range q.conns {
		for s := range c.sessions {
			if s.held != nil && !s.cut && !c.cut && (!any || s.held.since.Before(oldest)) {
				oldest, any = s.held.since, true
			}
		}
	}
	return oldest, any
}
