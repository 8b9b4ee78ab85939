package rabbitmq

import (
	"errors"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// socket is a TCP connection with what the client library lacks.
//
// Every write has a deadline: the library has none, holds its locks while it writes, and would wait for ever for a broker that is alive but
// does not read (memory alarm).
//
// It knows how long nothing has come. A process that was frozen, with its machine or by a debugger, goes on where it was, and the
// broker has long given its messages to another. What the broker had sent before that is still to be read, so the library notices
// a moment later; by then a commit would have told a task that all is well.
type socket struct {
	net.Conn
	limit   time.Duration // of a write
	until   atomic.Int64  // the write deadline in force; moved only when it comes near, because each move costs a timer
	silence atomic.Int64  // how long the broker may be silent; 0: during the handshakes, no limit
	heard   atomic.Int64  // when something came last, as Unix nanoseconds

	writing sync.Mutex // held during a write, so that what was kept back stays in its place
	corked  bool
	kept    []byte // what was written since cork
	failed  error  // of the first write that failed: behind a part of a frame nothing may follow
}

var errSilent = errors.New("nothing came from the broker for more than 1.5 heartbeats")

func (s *socket) Write(p []byte) (int, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.corked {
		s.kept = append(s.kept, p...)
		return len(p), nil
	}
	return s.write(p)
}

// cork keeps back what is written from now on, whoever writes it, until uncork. It is for a few frames that are to go out in one piece, since the
// client library makes a system call for each.
func (s *socket) cork() {
	s.writing.Lock()
	s.corked = true
	s.writing.Unlock()
}

// uncork writes what was kept back. Those who wrote it were told that all is well; they find an error with their next write.
func (s *socket) uncork() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.corked = false
	if len(s.kept) == 0 {
		return nil
	}
	_, err := s.write(s.kept)
	s.kept = s.kept[:0]
	return err
}

// SetDeadline sets one for writes that they keep to; without one they set their own. The client library ends the handshakes by the latter and an
// orderly close by the former.
func (s *socket) SetDeadline(t time.Time) error {
	if err := s.Conn.SetDeadline(t); err != nil {
		return err
	}
	s.until.Store(0)
	if !t.IsZero() {
		s.until.Store(math.MaxInt64)
	}
	return nil
}

func (s *socket) write(p []byte) (int, error) {
	if s.failed != nil {
		return 0, s.failed
	}
	now := time.Now()
	if time.Duration(s.until.Load()-now.UnixNano()) < s.limit/2 {
		end := now.Add(s.limit)
		if s.failed = s.SetWriteDeadline(end); s.failed != nil {
			return 0, s.failed
		}
		s.until.Store(end.UnixNano())
	}
	var n int
	n, s.failed = s.Conn.Write(p)
	return n, s.failed
}

// Read does not return what comes too late.
func (s *socket) Read(p []byte) (int, error) {
	began := time.Now()
	n, err := s.Conn.Read(p)
	now := time.Now()
	if limit := s.silence.Load(); limit > 0 && int64(now.Sub(began)) > limit {
		return 0, errSilent
	}
	s.heard.Store(now.UnixNano())
	return n, err
}

// agree sets the limit once the heartbeat is known: the library's own, after which it gives up.
func (s *socket) agree(heartbeat time.Duration) { s.silence.Store(int64(3 * heartbeat / 2)) }

// stale says that the broker has been silent for so long that it may have given up this connection.
func (s *socket) stale() bool {
	limit := s.silence.Load()
	return limit > 0 && time.Now().UnixNano()-s.heard.Load() > limit
}
