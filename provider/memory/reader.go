package memory

import (
	"fmt"
	"time"

	"github.com/keyseq/keyseq/jms"
)

// Break loses all connections that read a queue and returns how many those were. See Readers for a single one.
func (b *Broker) Break(queue string, l Loss) (int, error) {
	readers, err := b.Readers(queue)
	n := 0
	for _, r := range readers {
		if r.Break(l) {
			n++
		}
	}
	return n, err
}

// Reader is a connection as the broker sees it.
type Reader struct{ c *conn }

// Readers returns the connections that the broker counts for a queue, oldest first: also those of dead clients that it has not
// noticed. An unknown queue is jms.ErrConfig.
func (b *Broker) Readers(queue string) ([]*Reader, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q, err := b.find(queue)
	if err != nil {
		return nil, err
	}
	rs := make([]*Reader, len(q.conns))
	for i, c := range q.conns {
		rs[i] = &Reader{c}
	}
	return rs, nil
}

// Client is the name given in jms.Subscription.
func (r *Reader) Client() string { return r.c.client }

// Active reports whether the broker gives messages to this connection: always, but with a single active consumer.
func (r *Reader) Active() bool {
	r.c.b.mu.Lock()
	defer r.c.b.mu.Unlock()
	return !r.c.gone && (!r.c.q.SingleActiveConsumer || r.c.active())
}

// Alive reports whether the link to the client works.
func (r *Reader) Alive() bool {
	r.c.b.mu.Lock()
	defer r.c.b.mu.Unlock()
	return !r.c.gone && !r.c.cut
}

// Break loses the connection; false if it was lost or closed already.
func (r *Reader) Break(l Loss) bool {
	r.c.b.mu.Lock()
	defer r.c.b.mu.Unlock()
	if r.c.cut || r.c.gone {
		return false
	}
	r.c.lose(l, r.c.broken())
	return true
}

// LoseRole takes the role of the active instance away, and the next one takes over; the client learns of it after notice (0 or less: at
// once). With Profile.RoleFirst the sessions live on until their client closes them, and until it notices they receive and
// commit beside the new active instance. Otherwise the messages go back first, as with Break.
func (r *Reader) LoseRole(notice time.Duration) {
	c := r.c
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	if c.gone || c.cut || !c.active() {
		return
	}
	err := fmt.Errorf("memory: queue %q: the role of the active instance was lost: %w", c.q.Name, jms.ErrConnectionLost)
	if !c.b.profile.RoleFirst {
		c.lose(Loss{Broker: AtOnce, Client: notice}, err)
		return
	}
	c.formerRole = true
	c.stepDown()
	c.q.dispatch()
	if notice <= 0 {
		c.tell(err)
		return
	}
	time.AfterFunc(notice, func() {
		c.b.mu.Lock()
		defer c.b.mu.Unlock()
		c.tell(err)
	})
}
