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

	stalled   chan struct{} // closed when nothing is left but calls that do not return, on a link that is closed
	stallOnce sync.Once
	overdue   chan struct{} // closed when it has failed, and tasks run on that were cancelled

	lastRound atomic.Int64 // when supervise last came round, for Live

	pulse    *pulse      // nil where there is no other instance
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
	rereads      int // in a row
	lostReceives int // the same, with nothing but their session
}

func (m *SequenceManager) newRun(values context.Context) *run {
	r := &run{m: m, values: context.WithoutCancel(values), bell: make(chan struct{}, 1), up: make(chan struct{}), ended: make(chan struct{}), stalled: make(chan struct{}), overdue: make(chan struct{})}
	if m.cfg.SingleActiveConsumer {
		r.pulse = &pulse{}
	}
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

// cancelAttempts ends the contexts of the attempts of a link, or of all for nil.
func (m *SequenceManager) cancelAttempts(l *link, cause error) {
	var running []*attempt
	m.d.Workers(func(w *worker, v keyView, _ uint64) {
		if a := w.Own.attempt.Load(); a != nil && (l == nil || v.Head.session.link == l) {
			running = append(running, a)
		}
	})
	for _, a := range running {
		a.ctx.end(cause)
	}
}

// supervise is the run's goroutine.
func (r *run) supervise(l *link) {
	m := r.m
	m.supervisorID.Store(goroutineID())
	stopPulse := r.keepPulse()
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
	stopPulse()
	<-m.d.Close()
	m.supervisorID.Store(0)
	r.finish()
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
