package keyseq

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/keyseq/keyseq/jms"
)

// reader is the serial read loop on one link: room first, then a session, then Receive. It runs in a goroutine of its own, and is stopped and
// started again whenever something has to be given back.
type reader struct {
	r      *run
	l      *link
	opener *opener
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{} // closed when no Receive is outstanding
	why    error         // why it ended by itself; valid when done is closed
	lost   bool          // it ended with a Receive lost: whatever that brought is unknown
	calls  atomic.Uint64 // odd while a Receive is under way
}

func (r *run) startReader(l *link, o *opener) *reader {
	rd := &reader{r: r, l: l, opener: o, done: make(chan struct{})}
	rd.ctx, rd.cancel = context.WithCancel(r.values)
	go rd.read()
	return rd
}

// stop ends the reader and waits until the outstanding Receive has returned and what it brought is with its key. False: it did not within
// CallTimeout.
func (rd *reader) stop() bool {
	rd.cancel()
	limit := time.NewTimer(rd.r.m.cfg.CallTimeout)
	defer limit.Stop()
	select {
	case <-rd.done:
		return true
	case <-limit.C:
		return false
	}
}

// abandoned marks, in calls, a Receive that was given up.
const abandoned = 1 << 63

// abandon gives up a Receive that does not return, and its place in the window: the next reader may need it.
func (rd *reader) abandon() {
	if n := rd.calls.Load(); n%2 == 1 && rd.calls.CompareAndSwap(n, n|abandoned) {
		rd.r.m.d.Cancel()
	}
}

func (rd *reader) read() {
	defer close(rd.done)
	defer rd.r.ring()
	m := rd.r.m
	id := goroutineID()
	m.readerID.Store(id)
	defer m.readerID.CompareAndSwap(id, 0) // a later reader may have taken the place of one that did not return
	failures := 0
	for rd.ctx.Err() == nil {
		if rd.r.pulse != nil && rd.r.pulse.frozen(time.Now()) {
			rd.thaw()
			continue
		}
		if !m.d.Reserve() {
			select {
			case <-m.d.Room():
			case <-rd.ctx.Done():
			}
			continue
		}
		s, err := rd.opener.take(rd.ctx)
		if err != nil {
			m.d.Cancel()
			if !rd.noSession(err, &failures) {
				return
			}
			continue
		}
		rd.calls.Add(1)
		msg, err := s.Receive(rd.ctx)
		if rd.calls.Add(1)&abandoned != 0 {
			return // long after its link was lost: what it brought comes again
		}
		if err == nil && msg == nil {
			err = errNothing
		}
		if err == nil {
			failures, rd.r.lostReceives = 0, 0
			if !rd.admit(s, msg) {
				return
			}
			continue
		}
		m.d.Cancel()
		if !rd.failed(s, err, &failures) {
			return
		}
	}
}

// thaw waits until tasks start again, and those that were put off are ready: what is read meanwhile would find no worker, and fill the window.
func (rd *reader) thaw() {
	for sleep(rd.ctx, beatEvery) && rd.r.pulse.frozen(time.Now()) {
	}
	sleep(rd.ctx, beatEvery)
}

// noSession handles that there is no session to receive with; false ends the reader.
func (rd *reader) noSession(err error, failures *int) bool {
	switch {
	case rd.ctx.Err() != nil:
		return false
	case errors.Is(err, errNoSession): // the window is smaller now
		return true
	}
	return rd.again(err, err, failures)
}

// failed handles an error of Receive; false ends the reader.
func (rd *reader) failed(s *session, err error, failures *int) bool {
	m := rd.r.m
	switch {
	case rd.ctx.Err() != nil && !jms.EndsSession(err):
		rd.l.pool.put(s) // nothing is held
		return false
	case jms.EndsSession(err):
		// The Receive is lost: whether it took a message nobody knows.
		rd.lost = true
		rd.why = fmt.Errorf("keyseq: queue %q: receive: %w", m.queue, err)
		if errors.Is(err, jms.ErrConnectionLost) || rd.l.lost.Load() {
			rd.r.linkLost(rd.l, err)
			return false
		}
		m.log.Warn("a receive was lost with its session; reading waits until the broker has what it may have taken", "queue", m.queue, "return_delay", rd.l.returnDelay, "error", err)
		rd.r.lostReceives++
		rd.r.discard(s, true, rd.r.calm(rd.r.lostReceives))
		return false
	}
	rd.l.pool.put(s)
	return rd.again(fmt.Errorf("keyseq: queue %q: receive: %w", m.queue, err), err, failures)
}

// errNothing is a fault of the provider: package jms says how a Receive ends that holds nothing.
var errNothing = errors.New("keyseq: the provider returned neither a message nor an error: mend its Session.Receive")

// mostReadFailures in a row, none of which ends a session, are taken for a lost connection.
const mostReadFailures = 10

// again waits before another try, or says why there is none.
func (rd *reader) again(wrapped, err error, failures *int) bool {
	switch {
	case errors.Is(err, jms.ErrConfig), errors.Is(err, jms.ErrQuiescing):
		rd.why = wrapped
		return false
	case errors.Is(err, jms.ErrConnectionLost), errors.Is(err, jms.ErrSessionLost):
		rd.r.linkLost(rd.l, err)
		return false
	}
	*failures++
	if !errors.Is(err, jms.ErrBusy) && *failures >= mostReadFailures {
		rd.r.linkLost(rd.l, fmt.Errorf("%w: reading failed %d times in a row: %w", jms.ErrConnectionLost, *failures, err))
		return false
	}
	pause := rd.r.m.pause(rd.r.m.cfg.Reconnect, *failures)
	rd.r.m.log.Warn("reading failed; trying again", "queue", rd.r.m.queue, "retry_in", pause, "error", err)
	return sleep(rd.ctx, pause)
}

// sleep waits; false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
