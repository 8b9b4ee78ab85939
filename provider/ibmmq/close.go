package ibmmq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/keyseq/keyseq/jms"
)

// closeTries is how often a unit of work is rolled back that does not go at once, closePause the time between two tries.
const (
	closeTries = 3
	closePause = 50 * time.Millisecond
)

// Close implements jms.Session.
func (s *session) Close(ctx context.Context) error {
	s.once.Do(func() {
		close(s.closing)
		go func() {
			defer close(s.ended)
			s.turn <- struct{}{} // kept: nothing follows
			s.c.shutting <- struct{}{}
			held := s.held
			s.closed = s.shut()
			<-s.c.shutting
			s.c.forget(s, !s.unclean && s.closed == nil && !(held && isClosed(s.c.closing)))
		}()
	})
	select {
	case <-s.ended:
		return s.closed
	case <-ctx.Done():
		return wrap(jms.ErrSessionLost, s.c.sub.Queue, fmt.Errorf("close: %w; what the session holds comes back when the call to IBM's client returns", ctx.Err()))
	}
}

// shut gives back what is held and disconnects. MQDISC commits an open unit of work, so a handle whose unit of work could not be rolled back
// while its connection may stand is left alone: the queue manager backs it out when this process ends.
func (s *session) shut() error {
	if s.handle == nil {
		return nil
	}
	for try := 1; try <= closeTries; try++ {
		ex := s.handle.ctx.Rollback()
		if ex == nil {
			s.disconnect()
			return nil
		}
		if e := failure("MQBACK", s.c.sub.Queue, ex); e.severed() {
			s.disconnect() // frees what IBM's client has of it
			if s.held {
				return wrap(jms.ErrSessionLost, s.c.sub.Queue, e)
			}
			return nil
		}
		if try < closeTries {
			time.Sleep(closePause)
		}
	}
	s.handle.unwatch()
	err := wrap(jms.ErrSessionLost, s.c.sub.Queue, errors.New("the unit of work cannot be rolled back; the connection is left open, because closing it would commit"))
	s.c.sub.Logger.Error("a session cannot be closed", "queue", s.c.sub.Queue, "error", err)
	return err
}

func (s *session) disconnect() {
	s.handle.unwatch()
	s.handle.ctx.Close()
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
