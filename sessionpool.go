package keyseq

import (
	"context"
	"errors"
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
}

// errNoSession says that the broker gives no more sessions now; those that are open will come back.
var errNoSession = errors.New("keyseq: no session to be had")

// take gives an idle session or opens one with open. errNoSession, with the number of open ones, if the broker is at a limit.
func (p *sessionPool) take(ctx context.Context, l *link, open func(context.Context) (jms.Session, error)) (*session, int, error) {
	p.mu.Lock()
	if last := len(p.idle) - 1; last >= 0 {
		s := p.idle[last]
		p.idle = p.idle[:last]
		n := p.open
		p.mu.Unlock()
		return s, n, nil
	}
	n := p.open
	p.mu.Unlock()
	js, err := open(ctx)
	if err != nil {
		if errors.Is(err, jms.ErrBusy) {
			err = errors.Join(errNoSession, err)
		}
		return nil, n, err
	}
	p.mu.Lock()
	p.open++
	n = p.open
	p.mu.Unlock()
	return &session{js, l}, n, nil
}

// put gives a session back that holds nothing.
func (p *sessionPool) put(s *session) {
	p.mu.Lock()
	p.idle = append(p.idle, s)
	p.mu.Unlock()
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
