package rabbitmq

import (
	"runtime"
	"sync"
	"time"
)

// acks are acknowledgements under way. Commits that come together are written together: the first one leads, those that come while it is
// about to write, or while an earlier batch is being written, wait for the result. Each of them returns when its own acknowledgement
// has been written, as if it had written it alone.
type acks struct {
	mu      sync.Mutex
	next    *ackBatch // what is to be written; nil: nothing
	leading bool      // somebody writes, or is about to
}

// ackBatch is what one leader writes.
type ackBatch struct {
	tags []uint64
	wake chan bool // true: lead; closed: err is there; nil while nobody waits
	err  error
}

// add has write called with the tag, alone or with others, and returns its result. One write is made at a time.
func (a *acks) add(tag uint64, write func(tags []uint64) error) error {
	a.mu.Lock()
	b := a.next
	if b == nil {
		b = &ackBatch{}
		a.next = b
	}
	b.tags = append(b.tags, tag)
	if a.leading {
		if b.wake == nil {
			b.wake = make(chan bool, 1)
		}
		a.mu.Unlock()
		if !<-b.wake {
			return b.err
		}
	} else {
		a.leading = true
		a.mu.Unlock()
	}
	// Whoever is about to commit gets the chance to join. With empty tasks a batch is sixteen acknowledgements by that, and one without.
	runtime.Gosched()
	a.mu.Lock()
	a.next = nil
	a.mu.Unlock()
	b.err = write(b.tags)
	a.mu.Lock()
	if b.wake != nil {
		close(b.wake)
	}
	if a.next == nil {
		a.leading = false
	} else {
		a.next.wake <- true // to one of those who wait: a leader has its own work to return to
	}
	a.mu.Unlock()
	return b.err
}

// acknowledge writes the acknowledgement of one delivery. When it returns nil the acknowledgement is on its way before anything that the caller does
// next; the broker does not answer it.
func (c *connection) acknowledge(tag uint64) error { return c.acks.add(tag, c.writeAcks) }

// writeAcks writes the acknowledgements of a batch, in one go. It is called by one goroutine at a time.
func (c *connection) writeAcks(tags []uint64) error {
	c.settling.RLock()
	defer c.settling.RUnlock()
	if err := c.present(); err != nil {
		return err
	}
	if err := c.send(c.settled.add(tags)); err != nil {
		return c.broken(err)
	}
	if c.queue.buffersAcks() {
		c.lastAck.Store(time.Now().UnixNano())
	}
	return nil
}

// send hands acknowledgements to the kernel, in one piece.
func (c *connection) send(acks []ack) (err error) {
	if len(acks) > 1 {
		c.link.socket.cork()
		defer func() {
			if failed := c.link.socket.uncork(); err == nil {
				err = failed
			}
		}()
	}
	for _, a := range acks {
		if err := c.channel.Ack(a.tag, a.multiple); err != nil {
			return err
		}
	}
	return nil
}
