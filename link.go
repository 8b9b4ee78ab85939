package keyseq

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/keyseq/keyseq/jms"
)

// link is one connection to the broker with its sessions. It is replaced as a whole when the connection is lost.
type link struct {
	conn  jms.Connection
	caps  jms.Capabilities
	epoch uint64
	pool  sessionPool

	returnDelay time.Duration // how long a message may stay locked after a loss
	maxHold     time.Duration
	maxInFlight int
	backout     string // the queue's own dead-letter queue

	lost   atomic.Bool   // nothing of it is good any more
	gone   chan struct{} // closed when it is lost
	mu     sync.Mutex
	err    error         // why it was lost
	closed chan struct{} // closed when it is being closed
	once   sync.Once
	since  time.Time
	served atomic.Bool // it has delivered a message
}

// lose marks the link; true for the first caller. halt is called before anybody can see the mark: a halt that came later could hit what the
// next link has started, and nobody would lift it.
func (l *link) lose(err error, halt func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost.Load() {
		return false
	}
	halt()
	l.err = err
	l.lost.Store(true)
	close(l.gone)
	return true
}

func (l *link) cause() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// connect makes a link: one try. What no retry will mend is jms.ErrConfig.
func (m *SequenceManager) connect(ctx context.Context) (*link, error) {
	sub := jms.Subscription{Queue: m.queue, MaxInFlight: m.cfg.MaxInFlight, SingleActiveConsumer: m.cfg.SingleActiveConsumer, Client: m.cfg.ClientName, Logger: m.log}
	conn, err := bounded(ctx, m.cfg.CallTimeout, func(ctx context.Context) (jms.Connection, error) {
		return m.factory.Connect(ctx, sub)
	}, func(late jms.Connection) { m.closeLate("connection", late) })
	if err != nil {
		return nil, fmt.Errorf("keyseq: queue %q: connect: %w", m.queue, err)
	}
	l := &link{conn: conn, caps: conn.Capabilities(), gone: make(chan struct{}), closed: make(chan struct{}), since: time.Now()}
	l.pool.bell = make(chan struct{}, 1)
	if err := m.agree(ctx, l); err != nil {
		_ = m.closeKept(ctx, l) // the one to be told is why
		return nil, err
	}
	return l, nil
}

// agree works out what the broker's capabilities mean for the settings, and checks what only a connection can tell.
func (m *SequenceManager) agree(ctx context.Context, l *link) error {
	if l.caps.Push {
		// What was pushed and not received yet comes behind a message that is given back alone: only closing returns both in order.
		l.caps.RollbackInPlace = false
	}
	l.returnDelay = l.caps.Returns()
	if m.cfg.ReturnDelay > 0 {
		l.returnDelay = m.cfg.ReturnDelay
	}
	l.maxHold = l.caps.MaxHold
	if m.cfg.MaxHold > 0 {
		l.maxHold = m.cfg.MaxHold
	}
	l.maxInFlight = m.cfg.MaxInFlight
	if l.maxInFlight == 0 || l.caps.MaxInFlight > 0 && l.maxInFlight > l.caps.MaxInFlight {
		l.maxInFlight = l.caps.MaxInFlight
		if l.maxInFlight == 0 {
			l.maxInFlight = defaultInFlight
		}
		if m.cfg.MaxInFlight > l.maxInFlight {
			m.log.Warn("MaxInFlight is more than this broker allows: using the broker's limit", "queue", m.queue, "MaxInFlight", m.cfg.MaxInFlight, "limit", l.maxInFlight)
		}
	}
	if m.cfg.MaxDeliveries > 0 && (l.caps.Push || !l.caps.StableIDs) && l.caps.DeliveryCount {
		// Every loss counts for all that was sent ahead, and nothing tells one message from another: innocents would be given up.
		return fmt.Errorf("keyseq: queue %q: %w", m.queue, configFailure([]error{&ConfigError{"MaxDeliveries", fmt.Sprintf("is %d, but %s counts deliveries of messages that were only sent ahead: leave it 0", m.cfg.MaxDeliveries, l.caps.Broker)}}))
	}
	if m.cfg.MaxDeliveries > 0 && !l.caps.DeliveryCount {
		m.log.Warn("MaxDeliveries has no effect: this broker does not count deliveries", "queue", m.queue, "broker", l.caps.Broker)
	}
	if inquirer, ok := l.conn.(jms.Inquirer); ok && m.cfg.DeadLetterQueue == "" {
		type rule struct {
			queue      string
			deliveries int
		}
		backout, err := bounded(ctx, m.cfg.CallTimeout, func(ctx context.Context) (b rule, err error) {
			b.queue, b.deliveries, err = inquirer.Backout(ctx)
			return b, err
		}, nil)
		if err != nil {
			return fmt.Errorf("keyseq: queue %q: asking for its backout queue: %w", m.queue, err)
		}
		l.backout = backout.queue
		if backout.deliveries > 0 {
			m.log.Info("the queue's backout threshold is not applied, for it counts whatever came back: Retry.MaxRetries counts failed attempts",
				"queue", m.queue, "backout_threshold", backout.deliveries, "max_retries", m.cfg.Retry.MaxRetries, "backout_queue", backout.queue)
		}
	}
	dead := m.deadLetterQueue(l)
	if field, needed := m.cfg.deadLettering(); needed && dead == "" {
		return fmt.Errorf("keyseq: queue %q: %w", m.queue, configFailure([]error{&ConfigError{field, "is ActionDeadLetter, but no dead-letter queue is known: set DeadLetterQueue, or a backout queue at the broker"}}))
	}
	if err := m.checkHold(l); err != nil {
		return fmt.Errorf("keyseq: queue %q: %w", m.queue, err)
	}
	if checker, ok := l.conn.(jms.QueueChecker); ok && dead != "" {
		if err := boundedErr(ctx, m.cfg.CallTimeout, func(ctx context.Context) error { return checker.CheckQueue(ctx, dead) }); err != nil {
			return fmt.Errorf("keyseq: queue %q: dead-letter queue %q cannot be used: %w", m.queue, dead, err)
		}
	}
	return nil
}

// checkHold refuses settings that hold a message longer than a link allows. What has passed once does again: the luck of a Backoff with jitter must not
// end a run at a reconnect.
func (m *SequenceManager) checkHold(l *link) error {
	m.mu.Lock()
	passed := m.passedHold
	m.mu.Unlock()
	if l.maxHold == passed { // 0: no limit
		return nil
	}
	errs := m.cfg.checkHold(l.maxHold)
	held := m.cfg.Retry.OnExhausted == ActionHold || m.cfg.Retry.OnExhausted == ActionAuto && m.deadLetterQueue(l) == ""
	if len(errs) == 0 && !l.caps.StableIDs && !held {
		errs = m.checkRetries(l.maxHold)
	}
	if len(errs) == 0 {
		m.mu.Lock()
		m.passedHold = l.maxHold
		m.mu.Unlock()
	}
	return configFailure(errs)
}

func (m *SequenceManager) deadLetterQueue(l *link) string {
	if m.cfg.DeadLetterQueue != "" {
		return m.cfg.DeadLetterQueue
	}
	return l.backout
}

// watch tells the run when the broker's client notices that the connection is gone.
func (r *run) watch(l *link) {
	done := l.conn.Done()
	if done == nil {
		return
	}
	go func() {
		select {
		case <-done:
			err := l.conn.Err()
			switch {
			case err == nil:
				err = jms.ErrConnectionLost
			case !errors.Is(err, jms.ErrConnectionLost):
				err = fmt.Errorf("%w: %w", jms.ErrConnectionLost, err)
			}
			r.linkLost(l, err)
		case <-l.closed:
		}
	}()
}

// closeLink gives back everything that the link holds. An error means that the broker may not know yet.
func (m *SequenceManager) closeLink(l *link) error {
	l.once.Do(func() { close(l.closed) })
	defer l.pool.calls.Wait() // they were told to end before, or end with the connection
	return boundedErr(context.Background(), m.cfg.CallTimeout, l.conn.Close)
}

// closeLate closes what a call brought that had been given up.
func (m *SequenceManager) closeLate(what string, c interface{ Close(context.Context) error }) {
	if err := boundedErr(context.Background(), m.cfg.CallTimeout, c.Close); err != nil {
		m.log.Warn("closing what a late call brought failed; the broker will notice", "queue", m.queue, "what", what, "error", err)
	}
}
