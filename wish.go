package keyseq

import (
	"cmp"
	"fmt"
	"time"
)

// What is wanted of a run, in rising order.
const (
	wishRead     = iota
	wishStop     // finish everything received
	wishShutdown // finish what runs, give back the rest
	wishAbort    // cancel what runs
)

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
		r.late = time.AfterFunc(r.m.cfg.DrainTimeout, r.abortFailed)
	}
	r.mu.Unlock()
	r.wish(wishShutdown)
}

// abortFailed cancels what runs when a run that has failed does not end. A task that is deaf to it must not keep Run from telling why.
func (r *run) abortFailed() {
	r.wish(wishAbort)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.late = time.AfterFunc(cancelGrace, func() {
		if len(r.runningKeys()) > 0 {
			close(r.overdue)
		}
	})
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
	if r.failure != nil && r.undone != nil {
		return fmt.Errorf("%w; %w", r.failure, r.undone)
	}
	return cmp.Or(r.failure, r.undone)
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
