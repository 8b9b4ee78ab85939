package ibmmq

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/keyseq/keyseq/jms"
)

// session is one transacted context with one consumer. Its connection closes it from another goroutine, so each call to IBM's client
// takes the turn; a Receive gives it up between two slices.
type session struct {
	c       *connection
	turn    chan struct{}
	closing chan struct{} // Close has begun
	ended   chan struct{} // Close has finished
	once    sync.Once
	closed  error // the result of Close, valid after ended

	// for who has the turn
	handle  *handle // nil: let go, to connect with another buffer
	buffer  int
	held    bool
	dead    error // the sentinel after which only Close may follow
	unclean bool  // it was lost: what it held may still be locked
	tainted bool  // a message is in the unit of work that must not be committed
	partial int   // how many messages in a row had properties that could not be told
}

// mostRounds bounds how often one Receive begins anew at once, for a reason that should pass by itself.
const mostRounds = 20

// mostUnreadable is how often in a row a session receives a message anew whose properties cannot be told.
const mostUnreadable = 3

var errStuck = errors.New("a closed session still holds a message, because its unit of work cannot be rolled back")

var errHolds = errors.New("ibmmq: the session holds a message: commit it or roll it back before the next Receive")

// enter takes the turn, or says why there is none.
func (s *session) enter(ctx context.Context) error {
	select {
	case <-s.closing:
		return s.over()
	default:
	}
	select {
	case s.turn <- struct{}{}:
	default: // asking for ctx.Done is not free: some contexts make a timer then
		select {
		case s.turn <- struct{}{}:
		case <-s.closing:
			return s.over()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	err := s.dead
	if err == nil {
		if err = s.c.gone(); err == nil {
			err = s.c.confirmRole()
		}
		if err != nil {
			s.end(err)
		}
	}
	if err != nil {
		s.leave()
	}
	return err
}

func (s *session) leave() { <-s.turn }

// over is what calls get once Close has begun.
func (s *session) over() error {
	if err := s.c.gone(); err != nil {
		return err
	}
	return wrap(jms.ErrSessionLost, s.c.sub.Queue, errors.New("the session is closed"))
}

// end remembers an error after which only Close may follow.
func (s *session) end(err error) error {
	if jms.EndsSession(err) {
		s.dead = err
		s.unclean = s.unclean || !errors.Is(err, jms.ErrRolledBack)
	}
	return err
}

// Receive implements jms.Session, in slices on the calling goroutine.
func (s *session) Receive(ctx context.Context) (*jms.Message, error) {
	for rounds := 0; ; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := s.enter(ctx); err != nil {
			return nil, err
		}
		m, again, err := s.slice(ctx)
		s.leave()
		if m != nil || err != nil {
			return m, err
		}
		if !again {
			rounds = 0
		} else if rounds++; rounds == mostRounds {
			return nil, fmt.Errorf("ibmmq: queue %q: Receive began anew %d times in a row", s.c.sub.Queue, rounds)
		}
	}
}

// slice waits for a message once. again: nothing is held, and the next slice follows at once.
func (s *session) slice(ctx context.Context) (m *jms.Message, again bool, err error) {
	if s.held {
		return nil, false, errHolds
	}
	if s.c.stuck.Load() > 0 { // what comes now may be a later message of the same key
		return nil, false, wrap(jms.ErrBusy, s.c.sub.Queue, errStuck)
	}
	if err := s.ready(ctx); err != nil {
		return nil, false, err
	}
	wait := s.c.slice
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(deadline))
	}
	s.handle.seen = nil
	msg, ex := s.handle.consumer.Receive(int32(max(wait.Milliseconds(), 1))) // 0 would wait for ever
	switch {
	case ex != nil:
		again, err = s.receiveFailed(failure("MQGET", s.c.sub.Queue, ex))
		return nil, again, err
	case msg == nil:
		return nil, false, nil
	}
	if m, err = s.message(msg); err == nil {
		s.held, s.partial = true, 0
		return m, false, nil
	}
	var e *ReasonError
	if errors.As(err, &e) {
		switch e.class() {
		case classConnection, classStopping:
			return nil, false, s.end(s.c.lost(e))
		}
	}
	if back := s.back(); back != nil {
		return nil, false, back
	}
	switch {
	case errors.Is(err, errHandle):
		return nil, true, nil
	case e != nil && e.class() == classBusy:
		return nil, false, wrap(jms.ErrBusy, s.c.sub.Queue, err)
	}
	if s.partial++; s.partial <= mostUnreadable {
		return nil, true, nil
	}
	s.partial = 0
	// A task that sees a part of the properties takes the others for absent, and so does the key.
	return nil, false, wrap(jms.ErrConfig, s.c.sub.Queue, fmt.Errorf("the message at the head of the queue, ID %s, cannot be passed over without breaking the order: move it by hand: %w", msg.GetJMSMessageID(), err))
}

// receiveFailed sorts a failed MQGET. Whatever it was but a broken connection, a message may be in the unit of work (a warning
// carries one), so it is rolled back first.
func (s *session) receiveFailed(e *ReasonError) (again bool, err error) {
	switch e.class() {
	case classConnection, classStopping, classUnknown:
		return false, s.end(s.c.lost(e))
	}
	if back := s.back(); back != nil {
		return false, back
	}
	switch e.class() {
	case classEmpty:
		return false, nil
	case classQuiescing:
		return false, wrap(jms.ErrQuiescing, s.c.sub.Queue, e)
	case classBusy:
		return false, wrap(jms.ErrBusy, s.c.sub.Queue, e)
	case classConfig:
		return false, wrap(jms.ErrConfig, s.c.sub.Queue, e)
	case classTooBig:
		return s.grow(e)
	case classReopen:
		return s.reopen()
	case classBackedOut, classHandle:
		return true, nil
	}
	return false, fmt.Errorf("ibmmq: queue %q: %w", s.c.sub.Queue, e)
}

// reopen opens the queue anew on the same connection.
func (s *session) reopen() (again bool, err error) {
	s.handle.consumer.Close()
	jctx := s.handle.ctx
	consumer, ex := jctx.CreateConsumer(jctx.CreateQueue(s.c.sub.Queue))
	if ex == nil {
		s.handle.consumer = consumer
		return true, nil
	}
	e := failure("MQOPEN", s.c.sub.Queue, ex)
	switch e.class() {
	case classConfig, classBusy:
		return false, wrap(e.onConnect(), s.c.sub.Queue, e)
	}
	return false, s.end(s.c.lost(e))
}

// grow connects anew with a bigger buffer, because the message at the head did not fit: nothing behind it may be received before it.
func (s *session) grow(e *ReasonError) (again bool, err error) {
	if s.buffer >= s.c.maxMessage || e.Code != 2080 {
		return false, wrap(jms.ErrConfig, s.c.sub.Queue, fmt.Errorf("the message at the head of the queue is larger than what may be received (Factory.MaxMessageSize is %d bytes): %w", s.c.maxMessage, e))
	}
	bigger := min(4*s.buffer, s.c.maxMessage)
	s.c.sub.Logger.Info("a message is larger than the receive buffer: connecting anew with a bigger one; set Factory.BufferSize if that is usual",
		"queue", s.c.sub.Queue, "buffer", s.buffer, "bigger", bigger)
	s.disconnect()
	s.handle, s.buffer = nil, bigger
	return true, nil
}

// ready connects a session that has let go of its handle to get another buffer. An error leaves nothing held.
func (s *session) ready(ctx context.Context) error {
	if s.handle != nil {
		return nil
	}
	h, err := s.c.openHandle(ctx, s.buffer)
	if err != nil {
		return s.end(err)
	}
	s.handle = h
	return nil
}
