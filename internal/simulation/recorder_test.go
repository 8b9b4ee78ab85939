package simulation

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/internal/model"
	"github.com/keyseq/keyseq/jms"
)

// recorder writes down what a manager does as observations of the model: from the calls it makes (recordedConn, recordedSession), from its
// listener and its events, and from what it logs where nothing else tells.
type recorder struct {
	mu   sync.Mutex
	seen []model.Observation
	held map[*jms.Message]*copyOf // received and not ended
	conn *recordedConn            // the latest
	kept int                      // keys given back because of MaxHold
}

// copyOf is one delivery of a message.
type copyOf struct {
	msg  uint8
	conn *recordedConn
	now  standing
}

type standing int

const (
	waiting standing = iota
	running
	paused
	returning // its Rollback is under way
	hung      // its commit has overrun CallTimeout: in the model it ends with its connection
)

func (r *recorder) add(kind model.ObservationKind, msg uint8) {
	r.seen = append(r.seen, model.Observation{Kind: kind, Msg: msg})
}

// recordedFactory wraps the broker. The optional interfaces of its connections are not passed on: nothing here needs them.
type recordedFactory struct {
	jms.ConnectionFactory
	r *recorder
}

func (f recordedFactory) Connect(ctx context.Context, sub jms.Subscription) (jms.Connection, error) {
	c, err := f.ConnectionFactory.Connect(ctx, sub)
	if err != nil {
		return nil, err
	}
	f.r.mu.Lock()
	defer f.r.mu.Unlock()
	f.r.conn = &recordedConn{Connection: c, r: f.r}
	return f.r.conn, nil
}

type recordedConn struct {
	jms.Connection
	r    *recorder
	over bool // lost or closed, as the manager knows
}

func (c *recordedConn) OpenSession(ctx context.Context) (jms.Session, error) {
	s, err := c.Connection.OpenSession(ctx)
	if err != nil {
		return nil, err
	}
	return &recordedSession{Session: s, c: c}, nil
}

// Close is seen where it gives something back: the manager closes in that way what it could not keep otherwise.
func (c *recordedConn) Close(ctx context.Context) error {
	r := c.r
	r.mu.Lock()
	if !c.over && r.holds(c) {
		r.add(model.ObsConnectionClosed, 0)
		r.forgetIdle(c)
	}
	c.over = true
	r.mu.Unlock()
	return c.Connection.Close(ctx)
}

func (r *recorder) holds(c *recordedConn) bool {
	for _, h := range r.held {
		if h.conn == c {
			return true
		}
	}
	return false
}

// forgetIdle: with its connection everything is gone that does not run.
func (r *recorder) forgetIdle(c *recordedConn) {
	for m, h := range r.held {
		if h.conn == c && h.now != running {
			delete(r.held, m)
		}
	}
}

// lost is told from the log, at the moment from which the manager knows.
func (r *recorder) lost() {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.conn
	if c == nil || c.over {
		return
	}
	c.over = true
	r.add(model.ObsConnectionLost, 0)
	r.forgetIdle(c)
}

type recordedSession struct {
	jms.Session
	c    *recordedConn
	held *jms.Message
}

func (s *recordedSession) Receive(ctx context.Context) (*jms.Message, error) {
	r := s.c.r
	r.mu.Lock()
	known := !s.c.over // a Receive over a connection that is known lost does nothing
	if known {
		r.add(model.ObsReceiveIssued, 0)
	}
	r.mu.Unlock()
	m, err := s.Session.Receive(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.c.over { // lost meanwhile: the Receive went with it, the manager drops what it brings
		return m, err
	}
	switch {
	case err == nil:
		n := uint8(seqOf(m))
		s.held = m
		r.held[m] = &copyOf{msg: n, conn: s.c}
		r.add(model.ObsReceiveReturned, n)
	case errors.Is(err, jms.ErrConnectionLost): // the log tells
	case jms.EndsSession(err):
		r.add(model.ObsReceiveLost, 0)
	default:
		r.add(model.ObsReceiveEmpty, 0)
	}
	return m, err
}

func (s *recordedSession) Commit(ctx context.Context, out ...jms.Outgoing) error {
	r := s.c.r
	r.mu.Lock()
	h := r.held[s.held]
	if h != nil && h.now == paused { // a dead letter that is sent again: the model knows that as another attempt
		h.now = running
		r.add(model.ObsTaskStarted, h.msg)
	}
	r.mu.Unlock()
	err := s.Session.Commit(ctx, out...)
	r.mu.Lock()
	defer r.mu.Unlock()
	if h == nil || s.c.over { // a zombie, which its event ends
		return err
	}
	letter := len(out) > 0 && out[0].Queue == deadQueue
	end := func(kind model.ObservationKind) {
		r.add(kind, h.msg)
		delete(r.held, s.held)
	}
	switch {
	case err == nil && letter:
		end(model.ObsDeadLettered)
	case err == nil:
		end(model.ObsCommitDone)
	case errors.Is(err, jms.ErrConnectionLost): // the log tells
	case errors.Is(err, jms.ErrRolledBack) && !errors.Is(err, jms.ErrCommitUnknown):
		end(model.ObsCommitRolledBack)
	case jms.EndsSession(err):
		end(model.ObsCommitLost)
	case letter:
		r.add(model.ObsDeadLetterRefused, h.msg)
		h.now = paused
	}
	return err
}

func (s *recordedSession) Rollback(ctx context.Context) error {
	r := s.c.r
	r.mu.Lock()
	h := r.held[s.held]
	if h != nil {
		h.now = returning
	}
	r.mu.Unlock()
	err := s.Session.Rollback(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if h == nil || s.c.over {
		return err
	}
	switch {
	case err == nil, errors.Is(err, jms.ErrRolledBack):
		r.add(model.ObsGivenBack, h.msg)
		delete(r.held, s.held)
	case errors.Is(err, jms.ErrConnectionLost):
	default:
		r.add(model.ObsRollbackFailed, h.msg)
		delete(r.held, s.held)
	}
	return err
}

// starts and ends are told by the listener.
func (r *recorder) starts(m *jms.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h := r.held[m]; h != nil {
		h.now = running
		r.add(model.ObsTaskStarted, h.msg)
	}
}

func (r *recorder) fails(m *jms.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h := r.held[m]; h != nil && !h.conn.over {
		h.now = paused
		r.add(model.ObsTaskFailed, h.msg)
	}
}

// left is the event that a message has left unsettled. Of a lost connection only zombies are still known here.
func (r *recorder) left(e keyseq.MessageEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h := r.held[e.Delivery.Message]; h != nil && h.conn.over {
		if h.now == running {
			r.add(model.ObsZombieEnded, h.msg)
		}
		delete(r.held, e.Delivery.Message)
	}
}

// stuck is the event that a commit has overrun its time: its worker is free.
func (r *recorder) stuck(k keyseq.KeyReport) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for m, h := range r.held {
		if h.now != running || m.Properties["key"] != k.Key {
			continue
		}
		if h.conn.over {
			r.add(model.ObsZombieEnded, h.msg)
		}
		h.now = hung
	}
}

// Handle implements slog.Handler.
func (r *recorder) Handle(_ context.Context, rec slog.Record) error {
	switch {
	case strings.HasPrefix(rec.Message, "connection lost"):
		r.lost()
	case strings.HasPrefix(rec.Message, "messages were held as long as allowed"):
		r.mu.Lock()
		defer r.mu.Unlock()
		rec.Attrs(func(a slog.Attr) bool {
			if a.Key == "keys" {
				r.kept += int(a.Value.Int64())
			}
			return true
		})
	}
	return nil
}

func (r *recorder) Enabled(context.Context, slog.Level) bool { return true }
func (r *recorder) WithAttrs([]slog.Attr) slog.Handler       { return r }
func (r *recorder) WithGroup(string) slog.Handler            { return r }
