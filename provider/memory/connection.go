package memory

import (
	"context"
	"fmt"

	"github.com/keyseq/keyseq/jms"
)

var _ jms.ConnectionFactory = (*Broker)(nil)

// Connect implements jms.ConnectionFactory. It refuses with jms.ErrConfig an unknown queue, a second connection to a queue that is
// neither Shared nor SingleActiveConsumer, and a wish for a single active consumer on a queue that is not declared so.
//
// The connection implements jms.QueueChecker. Unless the profile pushes it also implements jms.Inquirer and jms.CleanStarter, and on a
// queue with SingleActiveConsumer jms.Elector and jms.Predecessor; a broker that pushes does not tell who is active, and a standby's Receive just waits.
func (b *Broker) Connect(ctx context.Context, sub jms.Subscription) (jms.Connection, error) {
	call := &Call{Kind: CallConnect, Queue: sub.Queue, Client: sub.Client}
	var c *conn
	err := b.hooked(ctx, call, func() (err error) {
		if err := ctx.Err(); err != nil {
			return err
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		c, err = b.connect(sub)
		return err
	}, nil)
	if err != nil {
		if c != nil { // made, and its owner does not know
			_ = c.close()
		}
		return nil, err
	}
	switch {
	case b.profile.Prefetch > 0:
		return pushConn{c}, nil
	case c.q.SingleActiveConsumer:
		return electorConn{pullConn{pushConn{c}}}, nil
	}
	return pullConn{pushConn{c}}, nil
}

func (b *Broker) connect(sub jms.Subscription) (*conn, error) {
	q, err := b.find(sub.Queue)
	if err != nil {
		return nil, err
	}
	if b.quiescing {
		return nil, fmt.Errorf("memory: the broker is about to stop and takes no connection: %w", jms.ErrConnectionLost)
	}
	if sub.MaxInFlight < 0 {
		return nil, fmt.Errorf("memory: queue %q: MaxInFlight is %d; use 0 for the provider's choice: %w", q.Name, sub.MaxInFlight, jms.ErrConfig)
	}
	if sub.SingleActiveConsumer && !q.SingleActiveConsumer {
		return nil, fmt.Errorf("memory: queue %q has no single active consumer; declare it with Queue.SingleActiveConsumer: %w", q.Name, jms.ErrConfig)
	}
	if !q.SingleActiveConsumer && !q.Shared {
		for _, other := range q.conns {
			if other.err == nil && !other.closed && other.closing {
				return nil, fmt.Errorf("memory: queue %q: its reader (client %q) is being closed; connect again when that is done: %w", q.Name, other.client, jms.ErrBusy)
			}
			if other.err == nil && !other.closed {
				return nil, fmt.Errorf("memory: queue %q is already read by another connection (client %q), and two readers break the order of a key; "+
					"close the other one, or declare the queue with SingleActiveConsumer (one works, the others stand by) or Shared: %w",
					q.Name, other.client, jms.ErrConfig)
			}
		}
	}
	b.lastID++
	c := &conn{b: b, q: q, id: b.lastID, client: sub.Client, done: make(chan struct{}), over: make(chan struct{}),
		activated: make(chan struct{}), sessions: make(map[*session]struct{})}
	if b.profile.Prefetch > 0 {
		c.prefetch = b.profile.Prefetch
		if sub.MaxInFlight > 0 {
			c.prefetch = sub.MaxInFlight
		}
	}
	q.conns = append(q.conns, c)
	return c, nil
}

// conn is a connection. Its two ends can disagree: err and closed are what the client knows, gone is what the broker knows, and cut says
// that nothing passes between them any more. All is guarded by the broker's mutex.
type conn struct {
	b      *Broker
	q      *queue
	id     uint64
	client string

	done    chan struct{} // closed when err is set
	err     error         // why every call of the client fails
	closing bool          // Close was called
	closed  bool          // by the client
	cut     bool          // no call reaches the broker
	gone    bool          // the broker has taken everything back
	notice  chan struct{} // cut and not noticed by the client: closed when it notices
	over    chan struct{} // closed by Close

	activated  chan struct{} // closed when active
	enlisted   bool
	formerRole bool // has lost the role and does not know
	worked     bool // has opened a session
	disorder   bool // its client's tasks outlive it
	inOrder    bool // was closed by its client while it held nothing

	sessions  map[*session]struct{} // as the broker sees them
	waiters   waiters               // as the broker sees them
	listeners []*session            // as the client sees them

	prefetch int      // push: how much the broker sends ahead
	unacked  int      // push: sent and not acknowledged
	ahead    []*entry // push: sent and not yet received by a session
	acks     acks     // push: written by the client, not processed by the broker
}

// mayTake reports whether the broker would give this connection a message.
func (c *conn) mayTake() bool {
	return !c.q.noGet && !c.b.quiescing && (!c.q.SingleActiveConsumer || c.formerRole || c.active())
}

func (c *conn) active() bool { return len(c.q.line) > 0 && c.q.line[0] == c }

// usable returns the error with which a call of the client fails before it reaches the broker.
func (c *conn) usable() error {
	if c.closed {
		return fmt.Errorf("memory: queue %q: the connection is closed: %w", c.q.Name, jms.ErrConnectionLost)
	}
	return c.err
}

// reach waits while the link is dead and the client does not know, and then returns why; nil if the broker can be reached. It is called
// with the mutex and returns with it.
func (c *conn) reach(ctx context.Context) error {
	if err := c.usable(); err != nil || c.notice == nil {
		return err
	}
	noticed := c.notice
	c.b.mu.Unlock()
	select {
	case <-noticed:
	case <-c.b.interrupt(ctx):
	}
	c.b.mu.Lock()
	c.tell(fmt.Errorf("memory: queue %q: no answer from the broker: %w", c.q.Name, jms.ErrConnectionLost))
	return c.usable()
}

// interrupt returns what ends a call's waiting: nothing, where calls are deaf to their context.
func (b *Broker) interrupt(ctx context.Context) <-chan struct{} {
	if b.profile.Deaf > 0 {
		return nil
	}
	return ctx.Done()
}

func (c *conn) OpenSession(ctx context.Context) (jms.Session, error) {
	var s *session
	err := c.b.hooked(ctx, c.call(CallOpenSession), func() (err error) {
		if err := ctx.Err(); err != nil {
			return err
		}
		c.b.mu.Lock()
		defer c.b.mu.Unlock()
		if err := c.reach(ctx); err != nil {
			return err
		}
		if limit := c.b.profile.MaxSessions; limit > 0 && c.b.sessions >= limit {
			return fmt.Errorf("memory: queue %q: the broker allows %d sessions; close some, or raise Profile.MaxSessions: %w", c.q.Name, limit, jms.ErrBusy)
		}
		s = &session{c: c, wake: make(chan struct{}, 1)}
		c.sessions[s] = struct{}{}
		c.worked = true
		c.b.sessions++
		c.enlist()
		c.q.dispatch()
		return nil
	}, c.comeTrue)
	if err != nil {
		if s != nil {
			_ = s.close()
		}
		return nil, err
	}
	return s, nil
}

func (c *conn) call(kind CallKind) *Call { return &Call{Kind: kind, Queue: c.q.Name, Client: c.client} }

func (c *conn) Capabilities() jms.Capabilities { return c.b.profile.capabilities(c) }

func (c *conn) Done() <-chan struct{} { return c.done }

func (c *conn) Err() error {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	return c.err
}

func (c *conn) Close(ctx context.Context) error {
	c.b.mu.Lock()
	c.closing = true
	c.b.mu.Unlock()
	return c.b.hooked(ctx, c.call(CallCloseConnection), c.close, nil)
}

func (c *conn) close() error {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	close(c.over)
	c.see()
	c.endListening(fmt.Errorf("memory: queue %q: the connection was closed: %w", c.q.Name, jms.ErrConnectionLost))
	if c.cut {
		if c.gone {
			return nil
		}
		return fmt.Errorf("memory: queue %q: the link is broken, the broker will give back what is held later: %w", c.q.Name, jms.ErrConnectionLost)
	}
	c.processAcks()
	c.inOrder = !c.holds() && !c.disorder
	c.depart()
	if len(c.sessions) > 0 {
		return fmt.Errorf("memory: queue %q: a session was lost before, the broker will give back what it held later: %w", c.q.Name, jms.ErrSessionLost)
	}
	return nil
}

func (c *conn) holds() bool {
	for s := range c.sessions {
		if s.held != nil {
			return true
		}
	}
	return len(c.ahead) > 0
}

// depart is the broker's end of a connection: everything unsettled goes back in one act, then the role goes to the next. A session that was
// lost alone before has a link of its own, of whose end the broker hears later.
func (c *conn) depart() {
	if c.gone {
		return
	}
	c.gone = true
	back := append(c.ahead, c.acks.take()...)
	for s := range c.sessions {
		if s.cut {
			continue
		}
		if s.held != nil {
			back = append(back, s.held)
		}
		s.leave()
	}
	c.ahead, c.enlisted = nil, false
	c.q.giveBack(back...)
	c.forget()
	c.stepDown()
	c.q.dispatch()
}

// forget takes a connection off the books when nothing of it is left.
func (c *conn) forget() {
	if c.gone && len(c.sessions) == 0 {
		c.q.conns = remove(c.q.conns, c)
	}
}

// tell makes the client know that the connection is lost. The first reason stays.
func (c *conn) tell(err error) {
	if c.err != nil || c.closed {
		return
	}
	c.err = err
	close(c.done)
	c.see()
	c.endListening(err)
}

// see ends the waiting of calls that went into a dead link.
func (c *conn) see() {
	if c.notice != nil {
		close(c.notice)
		c.notice = nil
	}
}

// endListening ends the Receives that wait at the client's end.
func (c *conn) endListening(err error) {
	for len(c.listeners) > 0 {
		c.listeners[0].refuse(err)
	}
}

func remove[T comparable](all []T, one T) []T {
	for i, x := range all {
		if x == one {
			return append(all[:i:i], all[i+1:]...)
		}
	}
	return all
}
