package keyseq

import (
	"sync/atomic"
	"time"
)

// pulse tells a worker that its process stood still: it was stopped as a whole (SIGSTOP, a debugger), or its machine slept or was paused. Such a process
// goes on where it was, its broker has long given its messages to the next active instance, and its client needs a moment to notice. Until then no task may
// start: a timer of a retry that came due meanwhile would else start one beside its successor's. What was running cannot be helped.
//
// A goroutine stores the time, again and again. Where the last one is too old the process stood still; it stays so until the client has had its moment.
type pulse struct {
	last atomic.Pointer[time.Time]
}

const (
	beatEvery = 500 * time.Millisecond
	// stoodStill is how old a beat must be. No broker gives up a client sooner: two heartbeats have to be missed, of a second at the least. A process that
	// only gets little of its processor is not meant; it would lose no more than afterThaw.
	stoodStill = 2 * time.Second
	// afterThaw is how long the client may take to notice that its connection is gone: what reads a socket finds out at once, who asks each second (IBM MQ)
	// has the answer within two or, where nothing answers, not at all.
	afterThaw = 3 * time.Second
)

func (p *pulse) beat(now time.Time) { p.last.Store(&now) }

// frozen says whether the process stood still a moment ago. It is asked before each task.
func (p *pulse) frozen(now time.Time) bool { return between(*p.last.Load(), now) >= stoodStill }

// between is the time from then to now by the clock that has gone further: the monotonic one stands still while a Linux machine sleeps, the wall clock may
// while a virtual one is paused, and may be set back.
func between(then, now time.Time) time.Duration {
	return max(now.Sub(then), now.Round(0).Sub(then.Round(0)))
}

// keep beats until quit. After a freeze it holds the beat back for afterThaw, and once more if there is another meanwhile. told is called for each.
func (p *pulse) keep(quit <-chan struct{}, told func(stood time.Duration)) {
	timer := time.NewTimer(beatEvery)
	defer timer.Stop()
	var thawed time.Time // when that was noticed; zero: the pulse is regular
	for {
		select {
		case <-timer.C:
		case <-quit:
			return
		}
		now := time.Now()
		stood := between(*p.last.Load(), now)
		if !thawed.IsZero() {
			stood = between(thawed, now) - afterThaw
		}
		if stood >= stoodStill {
			told(stood)
			thawed = now
			timer.Reset(afterThaw)
			continue
		}
		thawed = time.Time{}
		p.beat(now)
		timer.Reset(beatEvery)
	}
}

// keepPulse begins to look for freezes where they matter: another instance may take over. It returns a function that ends it.
func (r *run) keepPulse() (stop func()) {
	m := r.m
	if r.pulse == nil {
		return func() {}
	}
	r.pulse.beat(time.Now())
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		r.pulse.keep(quit, func(stood time.Duration) {
			m.log.Warn("this process stood still: no task starts until the broker's client has had time to notice whether another instance has taken over",
				"queue", m.queue, "stood_still", stood, "wait", afterThaw)
		})
	}()
	return func() { close(quit); <-done }
}
