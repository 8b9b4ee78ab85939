package keyseq

import (
	"context"
	"sync"
	"time"
)

// callContext is the context of one attempt or of one call to the broker. It becomes a real one only when somebody asks for
// more than a value: most broker clients and many tasks never do, and context.WithTimeout costs 353 ns and 4 allocations against none. Its
// base gives the values and never ends.
type callContext struct {
	base    context.Context
	limit   time.Duration // 0: none
	overrun error         // cause at the deadline

	mu       sync.Mutex
	deadline time.Time // start and limit; for a call, from when it is first asked for
	real     context.Context
	cancel   context.CancelCauseFunc
	stop     context.CancelFunc
	over     error // cause of an end that came before anybody looked
}

var _ context.Context = (*callContext)(nil)

// materialize makes the real context. Children of this one are linked to it, so that context.Cause works and no goroutine is needed.
func (c *callContext) materialize() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.real == nil {
		c.real, c.cancel = context.WithCancelCause(c.base)
		if c.limit > 0 {
			c.real, c.stop = context.WithDeadlineCause(c.real, c.ends(), c.overrun)
		}
		if c.over != nil {
			c.cancel(c.over)
		}
	}
	return c.real
}

// ends is the deadline. The lock is held.
func (c *callContext) ends() time.Time {
	if c.deadline.IsZero() {
		c.deadline = time.Now().Add(c.limit)
	}
	return c.deadline
}

// end ends the context. The first cause wins; it is returned if it is an earlier one.
func (c *callContext) end(cause error) (earlier error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	earlier = c.over
	if earlier == nil {
		c.over = cause
	}
	if c.real != nil {
		c.cancel(cause)
		if c.stop != nil {
			c.stop()
		}
	}
	return earlier
}

// Deadline implements context.Context.
func (c *callContext) Deadline() (time.Time, bool) {
	if c.limit <= 0 {
		return time.Time{}, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ends(), true
}

// Done implements context.Context.
func (c *callContext) Done() <-chan struct{} { return c.materialize().Done() }

// Err implements context.Context.
func (c *callContext) Err() error {
	c.mu.Lock()
	alive := c.real == nil && c.over == nil && !c.late()
	c.mu.Unlock()
	if alive {
		return nil
	}
	return c.materialize().Err()
}

// late says whether the deadline has passed. The lock is held. The clock is read once, also to set the deadline: brokers ask at each commit.
func (c *callContext) late() bool {
	if c.limit <= 0 {
		return false
	}
	now := time.Now()
	if c.deadline.IsZero() {
		c.deadline = now.Add(c.limit)
	}
	return !now.Before(c.deadline)
}

// Value implements context.Context. The real context is asked, for package context looks for its own kind there.
func (c *callContext) Value(key any) any { return c.materialize().Value(key) }
