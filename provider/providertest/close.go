package providertest

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/keyseq/keyseq/jms"
)

var closeCases = []testCase{
	{8, "SessionGivesBack", "Close of a session gives back the message it holds", sessionGivesBack},
	{8, "ConnectionGivesBack", "Close of a connection gives back what its sessions hold, each at its place", connectionGivesBack},
	{8, "Twice", "Close of a session and of a connection is idempotent, in any order", closeTwice},
	{8, "DuringCalls", "Close of a connection may come during any call: all of them end, nothing is lost, and what was committed stays so",
		closeDuringCalls},
	{8, "NothingLeftRunning", "after Close of a connection none of its goroutines is left", nothingLeftRunning},
}

func sessionGivesBack(c *kase) {
	c.numbers(0, 3)
	l := c.connect()
	c.rollsBack(l)
	sessions := c.openUpTo(l, 2)
	c.takeBody(sessions[0], "0")
	c.must("Close of a session that holds a message", func() error { return sessions[0].Close(c.ctx) })
	c.takeBody(sessions[1], "0")
	c.commit(sessions[1])
	c.must("Close of a session that holds nothing", func() error { return sessions[1].Close(c.ctx) })
	c.close(l)
	c.remaining(c.b.Queue, "message 0 was committed after the session that first held it was closed", bodies(1, 3))
}

func connectionGivesBack(c *kase) {
	const n = 6
	c.numbers(0, n)
	l := c.connect()
	c.hold(l, n-2)
	c.close(l)
	c.remaining(c.b.Queue, "the connection that held the first ones was closed", bodies(0, n))
}

func closeTwice(c *kase) {
	c.numbers(0, 1)
	l := c.connect()
	sessions := c.openUpTo(l, 2)
	c.takeBody(sessions[0], "0")
	for range 2 {
		c.must("Close of a session, twice", func() error { return sessions[1].Close(c.ctx) })
	}
	for range 2 {
		c.must("Close of a connection, twice", func() error { return l.Close(c.ctx) })
	}
	for _, s := range sessions {
		c.must("Close of a session after its connection", func() error { return s.Close(c.ctx) })
	}
	c.remaining(c.b.Queue, "its session and connection were closed, more than once", bodies(0, 1))
}

// ledger notes what became of each message, by body.
type ledger struct {
	mu        sync.Mutex
	committed map[string]int   // how often Commit returned nil
	failed    map[string]error // what Commit returned otherwise, ErrCommitUnknown above all
}

func (b *ledger) settle(body string, err error) (settled int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		b.committed[body]++
	} else if !errors.Is(b.failed[body], jms.ErrCommitUnknown) {
		b.failed[body] = err
	}
	return len(b.committed)
}

// closeDuringCalls closes connections in the middle of receives, commits, rollbacks and opens until the queue is empty.
func closeDuringCalls(c *kase) {
	const n = 60
	c.numbers(0, n)
	book := &ledger{committed: map[string]int{}, failed: map[string]error{}}
	for round := 0; round < 8 && len(book.committed) < n; round++ {
		c.closeAfter(book, min(len(book.committed)+1+rand.IntN(10), n))
	}
	least := n - len(book.committed)
	for _, err := range book.failed {
		if errors.Is(err, jms.ErrCommitUnknown) {
			least--
		}
	}
	left := c.drain(c.b.Queue, least)
	for _, body := range bodies(0, n) {
		times := book.committed[body]
		if slices.Contains(left, body) {
			times++
		}
		if err := book.failed[body]; times == 0 && !errors.Is(err, jms.ErrCommitUnknown) {
			c.broken("message %s was never committed (the last Commit of it returned: %v) and has not come again", body, err)
		}
		if times > 1 {
			c.broken("message %s was committed %d times: it came again after a commit that had succeeded", body, times)
		}
	}
}

// closeAfter works on the queue over one connection and closes it when so many messages have been committed.
func (c *kase) closeAfter(book *ledger, enough int) {
	c.Helper()
	l := c.connect()
	free := make(chan jms.Session, 16)
	for _, s := range c.openUpTo(l, 8) {
		free <- s
	}
	var calls sync.WaitGroup
	trigger := make(chan struct{})
	var once sync.Once
	reach := func() { once.Do(func() { close(trigger) }) }
	ctx, cancel := context.WithTimeout(c.ctx, c.h.Quiet+c.h.Latency) // ends the reader when the queue is empty
	defer cancel()
	calls.Go(func() { // the one reader
		defer reach()
		for i := 0; ; i++ {
			s := <-free
			m, err := s.Receive(ctx)
			if err != nil {
				return
			}
			calls.Go(func() {
				defer func() { free <- s }()
				if i%5 == 4 && l.caps.RollbackInPlace {
					s.Rollback(c.ctx)
				} else if book.settle(string(m.Body), s.Commit(c.ctx)) >= enough {
					reach()
				}
			})
		}
	})
	calls.Go(func() { // sessions come and go
		for {
			select {
			case <-trigger:
				return
			case <-time.After(time.Millisecond):
			}
			if s, err := l.OpenSession(c.ctx); err == nil {
				s.Close(c.ctx)
			}
		}
	})
	select {
	case <-trigger:
	case <-time.After(c.h.Patience):
	}
	c.do("Close of a connection during calls", func() error { l.Close(c.ctx); return nil })
	c.must("the calls that were under way when the connection was closed", func() error { calls.Wait(); return nil })
}

func nothingLeftRunning(c *kase) {
	c.numbers(0, 3)
	before := goroutines()
	l := c.connect()
	sessions := c.openUpTo(l, 3)
	for i, s := range sessions {
		c.takeBody(s, strconv.Itoa(i))
	}
	c.commit(sessions[0], c.text("done"))
	c.close(l)
	var left map[string]string
	for end := time.Now().Add(c.h.Patience); ; c.pause(c.h.Quiet / 10) {
		left = goroutines()
		for id := range before {
			delete(left, id)
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			break
		}
	}
	for _, stack := range left {
		c.broken("%d goroutines are left %v after Close of the connection; one is\n%s", len(left), c.h.Patience, stack)
	}
}
