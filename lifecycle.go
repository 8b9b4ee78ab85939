package keyseq

import (
	"context"
	"fmt"
	"time"
)

// Run reads until ctx ends, then shuts down within DrainTimeout and returns nil, or ErrDrainTimeout if something had to be cancelled. It connects and
// reconnects for ever. Only a wrong configuration (jms.ErrConfig), StopAll and an ActionStop end it with an error of their own; Stop and
// Shutdown end it with nil. A call to the broker that does not return, and after a failure a task, keeps Run no longer than Stop: see there; the error then
// wraps ErrDrainTimeout too, and Done tells the end. The values of ctx are those of the tasks' contexts, its end is not theirs. ErrRunning, ErrStopping and ErrInCallback
// are returned at once.
func (m *SequenceManager) Run(ctx context.Context) error {
	r, err := m.begin(ctx)
	if err != nil {
		return err
	}
	go r.supervise(m.takeKept(ctx))
	select {
	case <-r.ended:
		return r.result()
	case <-r.stalled:
		return r.result()
	case <-r.overdue:
		return r.result()
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.cfg.DrainTimeout)
	defer cancel()
	if err := m.end(drain, r, wishShutdown); err != nil && r.err() == nil {
		return err
	}
	return r.result()
}

// Start connects, once, and returns when the manager reads or is on standby; it then goes on until Stop, Shutdown or a failure (see Done and
// Err). ctx bounds only Start itself; its values are those of the tasks' contexts. If it fails, nothing is left running.
// ErrRunning, ErrStopping and ErrInCallback are returned at once; jms.ErrConfig says that no second try will help. Stop and Shutdown end it while it
// connects; the error says so.
func (m *SequenceManager) Start(ctx context.Context) error {
	r, err := m.begin(ctx)
	if err != nil {
		return err
	}
	l := m.takeKept(ctx)
	if l == nil {
		connecting, cancel := context.WithCancelCause(ctx)
		unlink := context.AfterFunc(r.wanted, func() { cancel(errEnded) })
		l, err = m.connect(connecting)
		unlink()
		cancel(nil)
		if err != nil {
			if r.want.Load() != wishRead && ctx.Err() == nil {
				err = fmt.Errorf("keyseq: queue %q: start: ended by Stop or Shutdown before it was connected: %w", m.queue, err)
			}
			r.abandon(err)
			return err
		}
		r.watch(l)
	}
	go r.supervise(l)
	select {
	case <-r.up:
		if r.err() == nil {
			return nil
		}
	case <-r.ended:
	case <-ctx.Done():
	}
	select {
	case <-r.ended:
		return r.result()
	case <-ctx.Done():
	}
	r.wish(wishShutdown)
	grace := time.NewTimer(cancelGrace)
	defer grace.Stop()
	select {
	case <-r.ended:
	case <-grace.C: // a call or a callback does not return
	}
	return fmt.Errorf("keyseq: queue %q: start: %w", m.queue, ctx.Err())
}

// begin makes the run that is the present one, unless there is one.
func (m *SequenceManager) begin(ctx context.Context) (*run, error) {
	if m.inCallback() {
		return nil, fmt.Errorf("keyseq: queue %q: start: %w", m.queue, ErrInCallback)
	}
	r := m.newRun(ctx)
	m.mu.Lock()
	if old := m.current.Load(); old != nil {
		m.mu.Unlock()
		if old.want.Load() != wishRead {
			return nil, fmt.Errorf("keyseq: queue %q: %w: wait for Done", m.queue, ErrStopping)
		}
		return nil, fmt.Errorf("keyseq: queue %q: %w", m.queue, ErrRunning)
	}
	m.current.Store(r)
	m.runErr = nil
	m.done = r.ended
	m.mu.Unlock()
	m.setState(StateConnecting, nil)
	return r, nil
}

// Stop receives no more and finishes everything that was received; keys in a retry pause are given back. Then a standby may take over; where the
// broker allows it, the connection and its idle sessions stay open for the next Start. When ctx ends first, what has not begun is
// given back, what runs is cancelled, and ErrDrainTimeout names the keys; a task that does not return then keeps its message and the role
// until it does (Done), and Start returns ErrStopping meanwhile. Tasks are waited for as long as ctx says, with context.Background() for ever; calls to
// the broker are not: once nothing else is left, one that has overrun CallTimeout gets DrainTimeout more, then its connection is closed, and
// ErrDrainTimeout names its key. Stop of a manager that does not run does nothing.
func (m *SequenceManager) Stop(ctx context.Context) error {
	return m.endCurrent(ctx, wishStop)
}

// Shutdown receives no more, finishes what runs, gives back the rest in order and closes everything. When ctx ends first it cancels
// what runs, as Stop does, and as little waits for calls that do not return. Shutdown of a manager that does not run closes what Stop has left open.
func (m *SequenceManager) Shutdown(ctx context.Context) error {
	return m.endCurrent(ctx, wishShutdown)
}

func (m *SequenceManager) endCurrent(ctx context.Context, wish int32) error {
	if m.inCallback() {
		return fmt.Errorf("keyseq: queue %q: %w: return StopAll from DoTask, or end the context of Run", m.queue, ErrInCallback)
	}
	var err error
	if r := m.current.Load(); r != nil {
		err = m.end(ctx, r, wish)
	}
	if wish >= wishShutdown && err == nil {
		if l := m.takeKept(ctx); l != nil {
			err = m.closeKept(ctx, l)
		}
	}
	return err
}

// cancelGrace is how long Stop and Shutdown wait for tasks to notice that they were cancelled, and Start for what it began.
const cancelGrace = time.Second

// end waits for the end of a run; when ctx ends, everything that runs is cancelled.
func (m *SequenceManager) end(ctx context.Context, r *run, wish int32) error {
	r.wish(wish)
	select {
	case <-r.ended:
		return r.orderly()
	case <-r.stalled:
		return r.orderly()
	case <-ctx.Done():
	}
	r.wish(wishAbort)
	grace := time.NewTimer(cancelGrace)
	defer grace.Stop()
	select {
	case <-r.ended:
		return r.orderly()
	case <-r.stalled:
		return r.orderly()
	case <-grace.C:
	}
	if err := r.orderly(); err != nil {
		return err
	}
	return drainError(m.queue, nil)
}

// Done is closed when the present run has ended, and closed while there is none.
func (m *SequenceManager) Done() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.done == nil {
		m.done = make(chan struct{})
		close(m.done)
	}
	return m.done
}

// Err is the failure that ended the last run (jms.ErrConfig, StopAll, an ActionStop), or why Start could not begin one. It is nil while running and
// after an end that was asked for, also one that had to cancel tasks: that is what Run, Stop and Shutdown return.
func (m *SequenceManager) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.runErr
}

// inCallback reports whether the caller is one of the manager's own goroutines.
func (m *SequenceManager) inCallback() bool {
	id := goroutineID()
	if id == m.readerID.Load() || id == m.supervisorID.Load() {
		return true
	}
	if _, calling := m.callers.Load(id); calling {
		return true
	}
	inside := false
	m.d.Workers(func(w *worker, _ keyView, _ uint64) { inside = inside || w.Own.goroutine.Load() == id })
	return inside
}
