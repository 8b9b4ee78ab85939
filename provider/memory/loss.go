package memory

import (
	"fmt"
	"slices"
	"time"

	"github.com/keyseq/keyseq/jms"
)

// AtOnce as a time of a Loss says that it is 0, whatever the profile has.
const AtOnce time.Duration = -1

// Loss says when the two ends of a lost connection or session notice. The zero value is what the profile does: the client notices at
// once, the broker a millisecond before Profile.ReturnDelay is over.
type Loss struct {
	// Broker is when the broker notices. Until then what was held stays locked while others go on receiving, a Receive that waited may
	// still take one message, which nobody knows, and a broker that pushes goes on sending. 0: a millisecond less than Profile.ReturnDelay;
	// AtOnce: no time. ReturnDelay and more breaks what Capabilities declare.
	Broker time.Duration
	// Client is when the client notices. Until then its calls do not return, but to their context, and Done stays open. With
	// Broker AtOnce the messages come back before their holder knows. A lost session is noticed by its next call, whatever this is.
	Client time.Duration
}

func (l Loss) broker(p *Profile) time.Duration {
	switch {
	case l.Broker == 0: // not at the very moment at which somebody who has waited for it goes on
		return max(p.ReturnDelay-time.Millisecond, 0)
	case l.Broker < 0:
		return 0
	}
	return l.Broker
}

// lose cuts a connection. It needs the broker's mutex.
func (c *conn) lose(l Loss, err error) {
	if c.cut || c.gone {
		c.tell(err)
		return
	}
	c.cut = true
	if l.Client > 0 && c.err == nil && !c.closed {
		c.notice = make(chan struct{})
		time.AfterFunc(l.Client, func() {
			c.b.mu.Lock()
			defer c.b.mu.Unlock()
			c.tell(err)
		})
	} else {
		c.tell(err)
	}
	if c.b.profile.RoleFirst {
		c.stepDown()
	}
	if d := l.broker(&c.b.profile); d > 0 {
		c.q.dispatch()
		time.AfterFunc(d, func() {
			c.b.mu.Lock()
			defer c.b.mu.Unlock()
			c.depart()
		})
		return
	}
	c.depart()
}

// lose cuts one session; where messages are given back by connections only, its connection. It needs the broker's mutex.
func (s *session) lose(l Loss, err error) {
	c := s.c
	if c.b.profile.Rollback != RollbackInPlace {
		c.lose(l, fmt.Errorf("%w: %w", jms.ErrConnectionLost, err))
		return
	}
	s.end(err)
	if s.cut || s.gone || c.cut { // with a connection that is lost already it comes back when that does
		return
	}
	s.cut = true
	if s.listening {
		s.refuse(err)
	}
	if d := l.broker(&c.b.profile); d > 0 {
		time.AfterFunc(d, func() {
			c.b.mu.Lock()
			defer c.b.mu.Unlock()
			s.depart()
		})
		return
	}
	s.depart()
}

// depart is the broker's end of a lost session.
func (s *session) depart() {
	if s.gone {
		return
	}
	e := s.held
	s.leave()
	s.c.forget()
	if e != nil {
		e.q.giveBack(e)
		e.q.dispatch()
	}
}

// takeBack is a rollback by the broker of which the client does not know.
func (s *session) takeBack() {
	if s.c.b.profile.Rollback != RollbackInPlace {
		s.c.lose(Loss{Broker: AtOnce}, fmt.Errorf("memory: queue %q: the broker has closed the connection to take a message back: %w", s.c.q.Name, jms.ErrConnectionLost))
		return
	}
	e := s.held
	if e == nil {
		return
	}
	s.held, s.undone = nil, true
	e.q.giveBack(e)
	e.q.dispatch()
}

func (q *queue) loseAll(err error) {
	for _, c := range q.conns {
		c.lose(Loss{Broker: AtOnce}, err)
	}
	for _, c := range q.conns { // those lost before, of which the broker learns now
		c.depart()
		for s := range c.sessions {
			s.depart()
		}
	}
}

func (c *conn) broken() error {
	return fmt.Errorf("memory: queue %q: the connection is broken: %w", c.q.Name, jms.ErrConnectionLost)
}

// LoseSession loses the session that holds the message with this ID (as returned by Send). Its next call fails with jms.ErrSessionLost.
// Where messages are given back by connections only, its connection is lost.
func (b *Broker) LoseSession(id string, l Loss) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, err := b.holder(id)
	if err != nil {
		return err
	}
	s.lose(l, fmt.Errorf("memory: queue %q: the session is lost: %w", s.c.q.Name, jms.ErrSessionLost))
	return nil
}

// LoseReceive loses the sessions that wait in Receive on a queue, and returns how many those were. If the broker notices late, each may
// still take a message that nobody knows.
func (b *Broker) LoseReceive(queue string, l Loss) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q, err := b.find(queue)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, c := range q.conns {
		for _, s := range slices.Clone(c.listeners) {
			if s.cut || c.cut { // lost already, and its client has not noticed
				continue
			}
			s.lose(l, fmt.Errorf("memory: queue %q: the session is lost: %w", q.Name, jms.ErrSessionLost))
			n++
		}
	}
	return n, nil
}

// TakeBack rolls back a held message without a word to its holder, as a queue manager does that runs out of log space. The message is on
// the queue again, and the holder's Commit fails with jms.ErrRolledBack. Where messages are given back by connections only, the
// connection is lost.
func (b *Broker) TakeBack(id string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, err := b.holder(id)
	if err != nil {
		return err
	}
	s.takeBack()
	return nil
}

// holder needs the mutex.
func (b *Broker) holder(id string) (*session, error) {
	for _, q := range b.queues {
		for _, c := range q.conns {
			for s := range c.sessions {
				if s.held != nil && s.held.id == id {
					return s, nil
				}
			}
		}
	}
	return nil, fmt.Errorf("memory: no session holds message %q; Held lists those that are held", id)
}

// Restart stops the broker and starts it again: every connection is lost at once on both sides, acknowledgements that were not
// processed are lost, messages that are not persistent are gone (counted as lost in Stats), and with Profile.MarkAll all others are
// marked redelivered. It ends Quiesce.
func (b *Broker) Restart() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	b.quiescing = false
	for _, q := range b.queues {
		q.loseAll(fmt.Errorf("memory: the broker was restarted: %w", jms.ErrConnectionLost))
		q.forgetVolatile()
	}
}
