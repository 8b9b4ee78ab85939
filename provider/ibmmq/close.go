package ibmmq

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/keyseq/keyseq/jms"
)

// closeTries is how often Close rolls a unit of work back that does not go at once, closePause the first time between two tries. Afterwards it is
// tried again without an end, with pauses that double up to mostClosePause.
const (
	closeTries     = 3
	closePause     = 50 * time.Millisecond
	mostClosePause = 5 * time.Second
)

// Close implements jms.Session.
func (s *session) Close(ctx context.Context) error {
	s.once.Do(func() {
		close(s.closing)
		go func() {
			defer close(s.ended)
			s.turn <- struct{}{} // kept: nothing follows
			s.c.shutting <- struct{}{}
			leave := sync.OnceFunc(func() { <-s.c.shutting })
			hangs := time.AfterFunc(slotFor, leave)
			held := s.held
			s.closed = s.shut()
			hangs.Stop()
			leave()
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
// while its connection may stand is left open: the queue manager backs it out when this process ends, unless insist can before.
func (s *session) shut() error {
	if s.handle == nil {
		return nil
	}
	var last *ReasonError
	for try := 1; try <= closeTries; try++ {
		ex := s.handle.ctx.Rollback()
		if ex == nil {
			s.disconnect()
			return nil
		}
		if last = failure("MQBACK", s.c.sub.Queue, ex); last.severed() {
			s.disconnect() // frees what IBM's client has of it
			if s.held {
				return wrap(jms.ErrSessionLost, s.c.sub.Queue, last)
			}
			return nil
		}
		if try < closeTries {
			time.Sleep(closePause)
		}
	}
	err := wrap(jms.ErrSessionLost, s.c.sub.Queue, fmt.Errorf("the unit of work cannot be rolled back; the connection is left open, because closing it would commit: %w", last))
	s.c.sub.Logger.Error("a session cannot be closed: what it holds stays locked and nothing more is received, while that is tried again; ending the connection on the queue manager (STOP CONN) or this process gives it back",
		"queue", s.c.sub.Queue, "error", err)
	s.c.stuck.Add(1)
	go s.insist()
	return err
}

// insist rolls back until that works or the connection is gone.
func (s *session) insist() {
	for pause := closePause; ; pause = min(2*pause, mostClosePause) {
		time.Sleep(pause)
		ex := s.handle.ctx.Rollback()
		if ex != nil && !failure("MQBACK", s.c.sub.Queue, ex).severed() {
			continue
		}
		s.disconnect()
		s.c.stuck.Add(-1)
		s.c.sub.Logger.Info("what a session held that could not be closed is given back", "queue", s.c.sub.Queue)
		return
	}
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
