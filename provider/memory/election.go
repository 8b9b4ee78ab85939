package memory

import (
	"context"
	"fmt"

	"github.com/keyseq/keyseq/jms"
)

// enlist makes a connection one that takes part: it queues up to become the active one, and a broker that pushes sends to it. It needs
// the broker's mutex.
func (c *conn) enlist() {
	if c.enlisted {
		return
	}
	c.enlisted = true
	if !c.q.SingleActiveConsumer {
		return
	}
	c.q.line = append(c.q.line, c)
	if c.active() {
		close(c.activated)
	}
}

// stepDown takes a connection out of the line; if it was the active one the next takes over. It needs the broker's mutex.
func (c *conn) stepDown() {
	was := c.active()
	c.q.line = remove(c.q.line, c)
	if was && (c.worked || !c.inOrder) { // one that never worked leaves what is known of its own predecessor as it was
		c.q.brokenOff = !c.inOrder
	}
	if was && len(c.q.line) > 0 {
		close(c.q.line[0].activated)
	}
}

// pushConn, pullConn and electorConn add the optional interfaces that a connection really has.
type pushConn struct{ *conn }

type pullConn struct{ pushConn }

type electorConn struct{ pullConn }

// CheckQueue implements jms.QueueChecker. A queue that is full or inhibited for the moment passes.
func (c pushConn) CheckQueue(ctx context.Context, queue string) error {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	if err := c.reach(ctx); err != nil {
		return err
	}
	_, err := c.b.find(queue)
	return err
}

// Backout implements jms.Inquirer.
func (c pullConn) Backout(ctx context.Context) (string, int, error) {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	if err := c.reach(ctx); err != nil {
		return "", 0, err
	}
	return c.q.BackoutQueue, c.q.BackoutThreshold, nil
}

// CleanStart implements jms.CleanStarter: false while the broker still counts a connection or a session whose client has ended.
func (c pullConn) CleanStart(ctx context.Context) (bool, error) {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	if err := c.reach(ctx); err != nil {
		return false, err
	}
	for _, other := range c.q.conns {
		if other != c.conn && (other.cut || other.closed || other.err != nil || other.formerRole) {
			return false, nil
		}
		for s := range other.sessions {
			if s.cut {
				return false, nil
			}
		}
	}
	return true, nil
}

// EndedInOrder implements jms.Predecessor.
func (c electorConn) EndedInOrder(ctx context.Context) (bool, error) {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	if err := c.reach(ctx); err != nil {
		return false, err
	}
	return !c.q.brokenOff, nil
}

// EndsInDisorder implements jms.Predecessor.
func (c electorConn) EndsInDisorder() {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	c.disorder = true
}

// AwaitActive implements jms.Elector.
func (c electorConn) AwaitActive(ctx context.Context) error {
	return c.b.hooked(ctx, c.call(CallAwaitActive), func() error { return c.awaitActive(ctx) }, c.comeTrue)
}

func (c electorConn) awaitActive(ctx context.Context) error {
	c.b.mu.Lock()
	err := c.reach(ctx)
	if err == nil {
		c.enlist()
	}
	c.b.mu.Unlock()
	if err != nil {
		return err
	}
	select {
	case <-c.activated:
	case <-c.done:
	case <-c.over:
	case <-ctx.Done():
	}
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	if err := c.usable(); err != nil {
		return err
	}
	if c.active() {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return fmt.Errorf("memory: queue %q: the role of the active instance was lost: %w", c.q.Name, jms.ErrConnectionLost)
}
