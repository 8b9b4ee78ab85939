package memory

import "time"

// push sends ready messages ahead to the connections that have room for them, and hands them to the sessions that wait. It needs the
// broker's mutex, like all of this file.
func (q *queue) push() {
	for q.ready.used != 0 || len(q.delayed) > 0 {
		c := q.next(func(c *conn) bool { return c.enlisted && c.unacked < c.prefetch && c.mayTake() })
		if c == nil {
			break
		}
		e := q.take()
		if e == nil {
			break
		}
		c.unacked++
		c.ahead = append(c.ahead, e)
		c.handAhead()
	}
	for _, c := range q.conns {
		c.handAhead()
	}
}

func (c *conn) handAhead() {
	for !c.cut && c.waiters.first != nil {
		e := c.takeAhead()
		if e == nil {
			return
		}
		c.waiters.first.hand(e)
	}
}

// takeAhead takes the next message out of the client's own buffer.
func (c *conn) takeAhead() *entry {
	if len(c.ahead) == 0 {
		return nil
	}
	e := c.ahead[0]
	c.ahead[0] = nil
	c.ahead = c.ahead[1:]
	return e
}

// acks are acknowledgements that the client has written and the broker has not processed.
type acks struct {
	written []*entry
	timer   *time.Timer
}

func (a *acks) take() []*entry {
	es := a.written
	a.written = nil
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
	return es
}

// ack writes an acknowledgement. Over a dead link it is never processed.
func (c *conn) ack(e *entry) {
	c.acks.written = append(c.acks.written, e)
	switch {
	case c.cut:
	case c.b.profile.AckDelay == 0:
		c.processAcks()
		c.q.dispatch()
	case c.acks.timer == nil:
		c.acks.timer = time.AfterFunc(c.b.profile.AckDelay, func() {
			c.b.mu.Lock()
			defer c.b.mu.Unlock()
			if !c.cut && !c.gone {
				c.processAcks()
				c.q.dispatch()
			}
		})
	}
}

// processAcks settles in the order in which the acknowledgements were written.
func (c *conn) processAcks() {
	for _, e := range c.acks.take() {
		c.unacked--
		e.q.settle(e)
	}
}

// returned notes that a single message went back.
func (c *conn) returned() {
	if c.prefetch > 0 {
		c.unacked--
	}
}
