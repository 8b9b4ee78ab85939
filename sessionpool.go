package keyseq

import (
	"sync"

	"github.com/keyseq/keyseq/jms"
)

// session is a broker session with the link it belongs to. It holds at most one message; when that is settled it goes back to the pool.
type session struct {
	jms.Session
	link *link
}

// sessionPool keeps the idle sessions of one link, last in first out, so that few are used where few are needed. A
// session is in one of three places: here, with the reader that waits for a message, or with the message it holds.
type sessionPool struct {
	mu   sync.Mutex
	idle []*session
	open int

	// Where sessions are costly: see opening.go.
	opening int            // calls of OpenSession under way
	calls   sync.WaitGroup // the same
	refusal error          // of one of them: not told before the others have ended
	careful bool           // after a failure one is opened at a time, until one succeeds
	waiting bool           // the reader is, for a session or for failed
	failed  error
	bell    chan struct{} // rung for the reader that waits
}

// take gives the idle session that was used last; nil if there is none.
func (p *sessionPool) take() *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pop()
}

// pop is take with the lock held.
func (p *sessionPool) pop() *session {
	last := len(p.idle) - 1
	if last < 0 {
		return nil
	}
	s := p.idle[last]
	p.idle = p.idle[:last]
	return s
}

// add takes a new session into the count.
func (p *sessionPool) add() {
	p.mu.Lock()
	p.open++
	p.mu.Unlock()
}

// put gives a session back that holds nothing.
func (p *sessionPool) put(s *session) {
	p.mu.Lock()
	p.idle = append(p.idle, s)
	p.ring()
	p.mu.Unlock()
}

// ring wakes the reader that waits. The lock is held.
func (p *sessionPool) ring() {
	if !p.waiting {
		return
	}
	select {
	case p.bell <- struct{}{}:
	default:
	}
}

// forget says that a session will not come back: it is broken, and is closed by who had it.
func (p *sessionPool) forget() {
	p.mu.Lock()
	p.open--
	p.mu.Unlock()
}

// size is the number of open sessions.
func (p *sessionPool) size() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open
}
