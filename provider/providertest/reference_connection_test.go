package providertest_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/keyseq/keyseq/jms"
)

type refConn struct {
	b        *refBroker
	q        *refQueue
	single   bool
	done     chan struct{}
	err      error // not nil when lost
	closed   bool
	sessions map[*refSession]bool
}

func (c *refConn) Capabilities() jms.Capabilities { return c.b.caps }
func (c *refConn) Done() <-chan struct{}          { return c.done }

func (c *refConn) Err() error {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	return c.err
}

// alive says why nothing can be done any more; b.mu is held.
func (c *refConn) alive() error {
	if c.err != nil {
		return c.err
	}
	if c.closed {
		return fmt.Errorf("reference: closed: %w", jms.ErrConnectionLost)
	}
	return nil
}

func (c *refConn) active() bool { return !c.single || len(c.q.line) > 0 && c.q.line[0] == c }

// end gives everything back, the active role last; b.mu is held.
func (c *refConn) end() {
	for s := range c.sessions {
		s.end()
	}
	c.q.line = slices.DeleteFunc(c.q.line, func(o *refConn) bool { return o == c })
	c.b.changed()
}

func (c *refConn) Close(context.Context) error {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	c.closed = true
	c.end()
	return nil
}

// Break loses the connection, or its active role.
func (c *refConn) Break() {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	if c.err == nil && !c.closed {
		c.err = fmt.Errorf("reference: cut: %w", jms.ErrConnectionLost)
		close(c.done)
		c.end()
	}
}

// await waits until ok says so; ok runs with b.mu held.
func (c *refConn) await(ctx context.Context, ok func() bool) error {
	for {
		c.b.mu.Lock()
		if err := c.alive(); err != nil {
			c.b.mu.Unlock()
			return err
		}
		if c.active() && ok() {
			c.b.mu.Unlock()
			return nil
		}
		wake := c.b.wake
		c.b.mu.Unlock()
		select {
		case <-wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (c *refConn) AwaitActive(ctx context.Context) error {
	return c.await(ctx, func() bool { return true })
}
func (c *refConn) CleanStart(context.Context) (bool, error) { return true, nil }
func (c *refConn) Backout(context.Context) (string, int, error) {
	for name, q := range c.b.queues {
		if q != c.q {
			return name, 5, nil
		}
	}
	return "", 0, nil
}

func (c *refConn) CheckQueue(_ context.Context, queue string) error {
	if c.b.queues[queue] == nil {
		return fmt.Errorf("reference: no queue %q: %w", queue, jms.ErrConfig)
	}
	return nil
}

func (c *refConn) OpenSession(context.Context) (jms.Session, error) {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	if err := c.alive(); err != nil {
		return nil, err
	}
	s := &refSession{c: c}
	c.sessions[s] = true
	return s, nil
}
