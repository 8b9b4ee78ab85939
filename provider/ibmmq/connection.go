package ibmmq

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/keyseq/keyseq/jms"
)

const (
	// probeEvery is how often the queue manager is asked for a sign of life, and with it how soon the loss of the active role is noticed.
	probeEvery = time.Second
	// staleAfter is how old the last sign of life may be when an active instance receives or commits; otherwise it asks first. A process
	// that was frozen would else go on with sessions that outlived its role.
	staleAfter = 3 * probeEvery
	// mostProbe is how long an answer may take. It must stay below what the queue manager needs to notice a dead client.
	mostProbe = 10 * time.Second
	// closeAtOnce bounds those that are rolled back and disconnected side by side: each is a thread in IBM's client.
	closeAtOnce = 16
	// slotFor is how long a session may be closing before the next one begins all the same: one that hangs must not hold up those that do not.
	slotFor = 500 * time.Millisecond
	// roleTimeout is how long an instance whose sessions hang keeps the role at the least; else it does for ReturnDelay.
	roleTimeout = 5 * time.Second
	// closeTimeout bounds a Close whose context has no end.
	closeTimeout = 30 * time.Second
)

// connection is the sessions that read one queue, and the control handle beside them.
type connection struct {
	*settings
	control      *control
	capabilities jms.Capabilities
	opening      chan struct{}
	shutting     chan struct{}
	targets      sync.Map                  // names of queues that can be sent to
	refused      sync.Map                  // names of queues -> refusal
	stuck        atomic.Int64              // closed sessions whose unit of work is not rolled back
	lastSign     atomic.Pointer[time.Time] // when the last sign of life was asked for

	mu       sync.Mutex
	sessions map[*session]struct{}
	loss     error
	unclean  bool // something may not have ended in order: no token is left
	role     bool // active by the lock queue
	orderly  bool // the active instance before this one ended in order
	worked   bool // a session was opened

	done    chan struct{} // lost
	closing chan struct{} // Close has begun
	ended   chan struct{} // Close has finished
	closed  error         // its result, valid after ended
	once    sync.Once
}

var (
	_ jms.Connection   = (*connection)(nil)
	_ jms.Elector      = (*connection)(nil)
	_ jms.Predecessor  = (*connection)(nil)
	_ jms.CleanStarter = (*connection)(nil)
	_ jms.Inquirer     = (*connection)(nil)
	_ jms.QueueChecker = (*connection)(nil)
)

func connect(ctx context.Context, s *settings) (*connection, error) {
	began := time.Now()
	k, err := dial(ctx, s)
	if err != nil {
		return nil, err
	}
	c := &connection{
		settings: s, control: k, opening: make(chan struct{}, openAtOnce), shutting: make(chan struct{}, closeAtOnce), sessions: map[*session]struct{}{},
		done: make(chan struct{}), closing: make(chan struct{}), ended: make(chan struct{}),
		capabilities: jms.Capabilities{
			Broker: "IBM MQ", MaxInFlight: s.maxSessions, AtomicSends: true, RollbackInPlace: true, ReturnDelay: s.returnDelay(),
			StableIDs: true, DeliveryCount: true,
		},
	}
	c.lastSign.Store(&began)
	go c.watch()
	return c, nil
}

func (c *connection) Capabilities() jms.Capabilities { return c.capabilities }

func (c *connection) Done() <-chan struct{} { return c.done }

func (c *connection) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.loss
}

// gone says why the connection can no longer be used; nil if it can.
func (c *connection) gone() error {
	select {
	case <-c.done:
		return c.Err()
	case <-c.closing:
		return wrap(jms.ErrConnectionLost, c.sub.Queue, errors.New("the connection was closed by this side"))
	default:
		return nil
	}
}

// lose ends the connection for good. What its sessions hold is given back by Close.
func (c *connection) lose(why error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.loss == nil {
		c.loss = wrap(jms.ErrConnectionLost, c.sub.Queue, why)
		c.unclean = true
		close(c.done)
	}
	return c.loss
}

// probeLimit is how long a sign of life may take: less than the queue manager needs to notice that this side is dead.
func (c *connection) probeLimit() time.Duration { return min(mostProbe, c.heartbeat) }

// watch notices a loss while no call waits, and the loss of the role, which lives as long as the control handle.
func (c *connection) watch() {
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			c.alive()
		case <-c.done:
			return
		case <-c.closing:
			return
		}
	}
}

// alive asks the queue manager for a sign of life; without one the connection is lost.
func (c *connection) alive() bool {
	if c.gone() != nil {
		return false
	}
	asked := time.Now() // an answer may lie in the socket for as long as this process is frozen
	err := c.control.probe(context.Background(), c.probeLimit())
	if err == nil {
		c.lastSign.Store(&asked)
		return true
	}
	if c.gone() == nil {
		c.lose(fmt.Errorf("no sign of life on the control connection: %w", err))
	}
	return false
}

// confirmRole says why this is not the active instance any more, if it was one. It asks only if the last sign of life is old.
func (c *connection) confirmRole() error {
	if c.lockQueue == "" || between(*c.lastSign.Load(), time.Now()) < staleAfter || c.alive() {
		return nil
	}
	return c.gone()
}

// between is the time from then to now by the clock that has gone further: the monotonic one stands still while a Linux machine sleeps, the wall clock
// may while a virtual one is paused, and may be set back. One that is put forward costs a probe.
func between(then, now time.Time) time.Duration {
	return max(now.Sub(then), now.Round(0).Sub(then.Round(0)))
}

// OpenSession implements jms.Connection: one more transacted context.
func (c *connection) OpenSession(ctx context.Context) (jms.Session, error) {
	if err := c.gone(); err != nil {
		return nil, err
	}
	h, err := c.openHandle(ctx, c.buffer)
	if err != nil {
		return nil, err
	}
	s := &session{c: c, turn: make(chan struct{}, 1), ended: make(chan struct{}), closing: make(chan struct{}), buffer: c.buffer, handle: h}
	c.mu.Lock()
	late := isClosed(c.closing)
	if !late {
		c.sessions[s], c.worked = struct{}{}, true
	}
	c.mu.Unlock()
	if late {
		_ = s.Close(ctx)
		return nil, c.gone()
	}
	return s, nil
}

// lost says what the failure of a call on one session means for the others.
func (c *connection) lost(e *ReasonError) error {
	if e.class() == classStopping {
		return c.lose(e)
	}
	if !c.alive() {
		return c.gone()
	}
	return wrap(jms.ErrSessionLost, c.sub.Queue, e)
}

func (c *connection) forget(s *session, clean bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.sessions, s)
	c.unclean = c.unclean || !clean
}

// Close implements jms.Connection: the sessions first, which gives back what they hold, then the role.
func (c *connection) Close(ctx context.Context) error {
	c.once.Do(func() {
		c.mu.Lock()
		close(c.closing)
		c.mu.Unlock()
		go c.close()
	})
	timer := time.NewTimer(closeTimeout)
	defer timer.Stop()
	err := errSlow
	select {
	case <-c.ended:
		return c.closed
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
	}
	return wrap(jms.ErrConnectionLost, c.sub.Queue, fmt.Errorf("close: %w; the queue manager gives back what is held when it notices that the connections are gone", err))
}

func (c *connection) close() {
	defer close(c.ended)
	c.mu.Lock()
	all := make([]*session, 0, len(c.sessions))
	for s := range c.sessions {
		all = append(all, s)
	}
	c.mu.Unlock()
	// A call that hangs must not keep the role for ever. When ReturnDelay is over the queue manager has given back what a dead connection held; whoever
	// is active next finds no token and the queue open, and waits for its own.
	ctx, cancel := context.WithTimeout(context.Background(), max(c.capabilities.ReturnDelay, roleTimeout))
	defer cancel()
	errs := make(chan error, len(all))
	for _, s := range all { // all at once: one whose call hangs must not keep another from giving back
		go func() { errs <- s.Close(ctx) }()
	}
	var failed []error
	for range all {
		if err := <-errs; err != nil && len(failed) < 3 {
			failed = append(failed, err)
		}
	}
	c.mu.Lock()
	// One that opened no session may have left while it waited for its predecessor's tasks: it passes on how that ended.
	orderly := c.role && !c.unclean && len(failed) == 0 && (c.worked || c.orderly)
	c.mu.Unlock()
	err := c.control.end(orderly, closeTimeout)
	if err != nil && c.Err() == nil {
		c.sub.Logger.Warn("the active role was not released in order; the next instance waits for its takeover delay", "queue", c.sub.Queue, "error", err)
	}
	c.closed = errors.Join(failed...)
}
