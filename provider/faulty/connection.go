package faulty

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/keyseq/keyseq/jms"
)

// conn wraps a connection. Its Done is that of the wrapped one, or closed by an injected loss.
type conn struct {
	f     *Factory
	inner jms.Connection
	sub   jms.Subscription
	caps  jms.Capabilities

	over      chan struct{} // closed when the owner has closed it or it was lost: ends what hangs
	done      chan struct{}
	watchOnce sync.Once
	doneOnce  sync.Once

	mu   sync.Mutex
	err  error // it was lost
	shut bool  // over is closed
}

func (c *conn) Capabilities() jms.Capabilities { return c.caps }

// Done watches the wrapped connection from the first call on, until either is over.
func (c *conn) Done() <-chan struct{} {
	inner := c.inner.Done()
	if inner == nil {
		return nil
	}
	c.watchOnce.Do(func() {
		go func() {
			select {
			case <-inner:
				c.closeDone()
			case <-c.over:
			}
		}()
	})
	return c.done
}

func (c *conn) closeDone() { c.doneOnce.Do(func() { close(c.done) }) }

func (c *conn) Err() error {
	if err := c.usable(); err != nil {
		return err
	}
	return c.inner.Err()
}

// usable returns why the connection is lost, if it was lost here.
func (c *conn) usable() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// closing bounds a Close that is done for the owner of a connection or session.
const closing = 30 * time.Second

// lose makes a loss of the connection true: all is given back, then everybody is told.
func (c *conn) lose(ctx context.Context, err error) error {
	c.mu.Lock()
	first := c.err == nil
	if first {
		c.err = err
	}
	c.mu.Unlock()
	if !first {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
	defer cancel()
	closeErr := c.inner.Close(ctx)
	c.closeDone()
	c.end()
	return closeErr
}

// end ends what hangs.
func (c *conn) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.shut {
		c.shut = true
		close(c.over)
	}
}

func (c *conn) event(call Call) Event {
	return Event{Call: call, Queue: c.sub.Queue, Client: c.sub.Client}
}

func (c *conn) closedErr(call Call) error {
	if err := c.usable(); err != nil {
		return err
	}
	return fmt.Errorf("faulty: queue %q: the connection was closed during %v: %w", c.sub.Queue, call, jms.ErrConnectionLost)
}

// call is a call of the connection itself, with the fault that it meets. What it brought is undone by the caller if it fails.
func (c *conn) call(ctx context.Context, call Call, effect func() error) error {
	if err := c.usable(); err != nil {
		return err
	}
	f := c.f.match(c.event(call))
	if f == nil {
		return effect()
	}
	if f.after {
		if err := effect(); err != nil {
			return err
		}
	}
	if !f.happen(c.over) {
		err := c.closedErr(call)
		if f.err != nil {
			f.record(err, NothingLost)
		}
		return err
	}
	switch {
	case f.err != nil && errors.Is(f.err, jms.ErrConnectionLost):
		f.record(f.err, ConnectionLost)
		return join(f.err, c.lose(ctx, f.err))
	case f.err != nil:
		f.record(f.err, NothingLost)
		return f.err
	case f.after:
		return nil
	}
	if err := c.usable(); err != nil {
		return err
	}
	return effect()
}

// join adds to an injected error what went wrong in making it true.
func join(err, cleanup error) error {
	if cleanup == nil {
		return err
	}
	return fmt.Errorf("%w (and then: %w)", err, cleanup)
}

func (c *conn) OpenSession(ctx context.Context) (jms.Session, error) {
	var inner jms.Session
	err := c.call(ctx, OpenSession, func() (err error) {
		inner, err = c.inner.OpenSession(ctx)
		return err
	})
	if err != nil {
		if inner != nil {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
			defer cancel()
			err = join(err, inner.Close(ctx))
		}
		return nil, err
	}
	return &session{c: c, inner: inner}, nil
}

func (c *conn) Close(ctx context.Context) error {
	f := c.f.match(c.event(CloseConnection))
	if f != nil && !f.after {
		f.happen(nil)
	}
	err := c.inner.Close(ctx)
	c.end()
	if f != nil && f.after {
		f.happen(nil)
	}
	if f != nil && f.err != nil {
		f.record(f.err, NothingLost)
		return join(f.err, err)
	}
	return err
}
