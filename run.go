package keyseq

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/keyseq/keyseq/jms"
)

// run is one life of the manager between Start and the end. Its goroutine, supervise, owns the link and the reader and is the only one that gives
// back; workers and the reader tell it what happened by setting something and ringing.
type run struct {
	m      *SequenceManager
	values context.Context // the values of the context that started it; never ends

	bell   chan struct{}
	want   atomic.Int32  // a wish
	up     chan struct{} // closed when it reads, is on standby, or has ended
	upOnce sync.Once
	ended  chan struct{}

	lastRound atomic.Int64 // when supervise last came round, for Live

	draining atomic.Bool // a failed attempt goes back instead of waiting for its retry

	mu      sync.Mutex
	wanted  context.Context // ends when a wish was made: for what waits outside of the loop
	wake    context.CancelFunc
	failure error // why the run ends, if not by Stop or Shutdown
	late    *time.Timer
	undone  error // why the end was not orderly
	few     int   // the broker's limit of sessions; 0: none known
	fewAt   time.Time
	reading *link // the one whose limits are set

	// owned by supervise
	leaving   []*keyQueue // blocked, to be given back
	attempts  int         // to connect, since a link was good
	lastSweep time.Time

	// owned by the reader
	rereads int // in a row
}

// What is wanted of a run, in rising order.
const (
	wishRead     = iota
	wishStop     // finish everything received
	wishShutdown // finish what runs, give back the rest
	wishAbort    // cancel what runs
)

func (m *SequenceManager) newRun(values context.Context) *run {
	r := &run{m: m, values: context.WithoutCancel(values), bell: make(chan struct{}, 1), up: make(chan struct{}), ended: make(chan struct{})}
	r.wanted, r.wake = context.WithCancel(r.values)
	return r
}

// ring wakes supervise.
func (r *run) ring() {
	select {
	case r.bell <- struct{}{}:
	default:
	}
}

// wish asks for an end; a stronger wish overrules a weaker one, and the end all of them: see over.
func (r *run) wish(w int32) {
	r.mu.Lock()
	if r.want.Load() >= w {
		r.mu.Unlock()
		return
	}
	if w >= wishShutdown {
		r.m.d.Halt() // nothing starts while the outstanding Receive comes to its end; drain decides what may go on
	}
	r.want.Store(w)
	r.mu.Unlock()
	r.wake()
	r.ring()
}

// over is called when the run has ended: a wish whose goroutine was held up must not halt what the next run starts.
func (r *run) over() {
	r.mu.Lock()
	r.want.Store(wishAbort)
	r.mu.Unlock()
	r.wake()
}

// fail ends the run with an error, as Shutdown within DrainTimeout.
func (r *run) fail(err error) {
	r.mu.Lock()
	if r.failure == nil {
		r.failure = err
		r.late = time.AfterFunc(r.m.cfg.DrainTimeout, func() { r.wish(wishAbort) })
	}
	r.mu.Unlock()
	r.wish(wishShutdown)
}

func (r *run) err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failure
}

// result is what Run returns at the end.
func (r *run) result() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failure != nil {
		return r.failure
	}
	return r.undone
}

// orderly says what was not settled or given back in time.
func (r *run) orderly() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.undone
}

// abandon ends a run that never began.
func (r *run) abandon(err error) {
	m := r.m
	r.over()
	m.mu.Lock()
	m.runErr = err
	m.mu.Unlock()
	m.setState(StateStopped, err)
	m.current.Store(nil)
	close(r.ended)
}

// linkLost is told by whoever notices first. Nothing starts from here on; supervise does the rest.
func (r *run) linkLost(l *link, err error) {
	if errors.Is(err, jms.ErrCommitUnknown) || errors.Is(err, jms.ErrRolledBack) {
		err = fmt.Errorf("%w: %v", jms.ErrConnectionLost, err) // the outcome is that of one message and says nothing of the others
	}
	if !l.lose(err, r.m.d.Halt) {
		return
	}
	r.m.cancelAttempts(l, fmt.Errorf("keyseq: queue %q: %w", r.m.queue, err))
	r.m.log.Warn("connection lost: everything held comes again; reconnecting", "queue", r.m.queue, "error", err)
	if now := r.m.current.Load(); now != nil { // a link kept by Stop may be used by a later run
		now.ring()
	}
}

// supervise is the run's goroutine.
func (r *run) supervise(l *link) {
	m := r.m
	m.supervisorID.Store(goroutineID())
	stopWatching := r.oversee()
	for r.want.Load() == wishRead {
		var err error
		if l == nil {
			l, err = r.reconnect()
		}
		if l != nil {
			if err = r.activate(l); err == nil {
				err = r.serve(l)
			}
		}
		if errors.Is(err, jms.ErrConfig) {
			r.fail(err)
		}
		if r.want.Load() == wishRead {
			r.dropLink(l, err)
			m.setState(StateConnecting, err)
			l = nil
		}
	}
	r.drain(l)
	stopWatching()
	<-m.d.Close()
	m.supervisorID.Store(0)
	r.finish()
}

// serve reads from a link until it is lost, has to be given up, or an end is wanted. Reading has stopped when it returns.
func (r *run) serve(l *link) error {
	m := r.m
	var rd *reader
	// After a lost connection or a lost Receive, and when an earlier run has left a deadline, nothing of the queue is read before it.
	wholeQueue := true
	var calls uint64 // of the reader, when that last changed
	var since time.Time
	for {
		r.lastRound.Store(time.Now().UnixNano())
		r.collect()
		r.sweepOld(l.maxHold)
		readable, wait := m.readable()
		wholeQueue = wholeQueue && !readable
		switch {
		case rd != nil && rd.ended():
			if errors.Is(rd.why, jms.ErrConfig) {
				return rd.why
			}
			if errors.Is(rd.why, jms.ErrQuiescing) {
				return r.giveUp(l, rd.why)
			}
			wholeQueue = wholeQueue || rd.lost
			rd = nil
			continue
		case l.lost.Load():
			r.stopReading(l, rd)
			return l.cause()
		case r.want.Load() != wishRead:
			r.stopReading(l, rd)
			return nil
		case len(r.leaving) > 0 && !l.caps.RollbackInPlace:
			r.stopReading(l, rd)
			return r.giveUp(l, errGiveBack)
		case len(r.leaving) > 0 && (readable || wholeQueue):
			if rd == nil {
				r.giveBack()
				continue
			}
			// While reading comes to a stop a key may be lost that has to wait for its deadline: look again before anything is given back.
			if !r.stopReading(l, rd) {
				rd = nil
			}
			continue // with what it brought, or lost
		case rd == nil && !wholeQueue:
			m.setState(r.readingState(l), nil) // before the first message can confirm it
			m.d.Resume()
			rd = r.startReader(l)
			calls = 0
		case rd != nil && (rd.calls.Load() != calls || calls%2 == 0):
			calls, since = rd.calls.Load(), time.Now()
		case rd != nil && time.Since(since) >= m.cfg.CallTimeout:
			// A Receive may wait as long as it likes, but not be dead: it must be able to end.
			if !r.stopReading(l, rd) {
				rd = nil
			}
			continue // with what it brought, or lost
		}
		r.wait(wait, rd)
	}
}

// stopReading returns when no Receive is outstanding. One that does not return takes the link with it: nothing can be read beside it. False: it
// did not return.
func (r *run) stopReading(l *link, rd *reader) bool {
	if rd == nil || rd.stop() {
		return true
	}
	r.stuck("", "receive")
	rd.abandon()
	r.linkLost(l, fmt.Errorf("%w: receive did not return within CallTimeout", jms.ErrConnectionLost))
	return false
}

// errGiveBack is why a connection is closed whose broker gives back in no other way.
var errGiveBack = errors.New("keyseq: a message left unsettled: closing the connection gives back what is held, in order")

func (rd *reader) ended() bool {
	select {
	case <-rd.done:
		return true
	default:
		return false
	}
}

// wait waits for news, at most for a deadline if there is one.
func (r *run) wait(deadline time.Duration, rd *reader) {
	var timer <-chan time.Time
	if deadline > 0 {
		t := time.NewTimer(deadline)
		defer t.Stop()
		timer = t.C
	}
	var done <-chan struct{}
	if rd != nil {
		done = rd.done
	}
	select {
	case <-r.bell:
	case <-r.m.d.Left():
	case <-timer:
	case <-done:
	}
}

// readingState is what State says while a link is read.
func (r *run) readingState(l *link) State {
	if _, elected := l.conn.(jms.Elector); !elected && r.m.cfg.SingleActiveConsumer && !l.served.Load() {
		return StateUnconfirmed
	}
	return StateActive
}

// finish ends the run, when nothing of it is left but calls that do not return.
func (r *run) finish() {
	m := r.m
	r.over()
	r.mu.Lock()
	err := r.failure
	if r.late != nil {
		r.late.Stop()
	}
	r.mu.Unlock()
	m.d.Reopen()
	m.mu.Lock()
	m.runErr = err
	m.mu.Unlock()
	// The state first: from the moment that there is no run another may begin, and its states must come after this one.
	if err != nil {
		m.setState(StateFailed, err)
	} else {
		m.setState(StateStopped, nil)
	}
	m.current.Store(nil)
	close(r.ended)
}
