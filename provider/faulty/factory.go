package faulty

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/keyseq/keyseq/jms"
)

// Factory is a jms.ConnectionFactory whose calls are broken by rules. Make one with New. It is safe for concurrent use.
type Factory struct {
	inner jms.ConnectionFactory

	mu       sync.Mutex
	rules    []*rule
	bad      error // wrong rules, reported by Connect
	calls    [len(callNames)]int
	events   []Event
	notify   func(Event)
	released chan struct{} // closed by Release, and made anew
}

type rule struct {
	Rule
	matched int
}

// New wraps a provider. Of the rules that match a call the first one counts. Wrong rules are reported by Connect, all at once, as jms.ErrConfig.
func New(inner jms.ConnectionFactory, rules ...Rule) *Factory {
	f := &Factory{inner: inner, released: make(chan struct{})}
	f.Add(rules...)
	return f
}

// Add adds rules behind those that are there. Nth and Every of a new rule count from now.
func (f *Factory) Add(rules ...Rule) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range rules {
		f.bad = errors.Join(f.bad, r.check())
		f.rules = append(f.rules, &rule{Rule: r})
	}
}

// Loss is what an event takes with it.
type Loss int

const (
	// NothingLost: all goes on.
	NothingLost Loss = iota
	// SessionLost: the session of the call ends, what it held or sent is in doubt.
	SessionLost
	// ConnectionLost: all sessions of the connection end.
	ConnectionLost
)

// Event is a fault that was done.
type Event struct {
	Time time.Time
	// Rule is the one that did it, in the form of Rule.String.
	Rule string
	// Call is the kind, and Number says that it was the how manieth of its kind, from 1.
	Call   Call
	Number int
	Queue  string
	// Client is that of jms.Subscription.
	Client string
	// Message is what the session held, or has received: nil if nothing. Do not change it.
	Message *jms.Message
	// After says that the call had its effect before.
	After bool
	// Err is what the caller was told; nil: the call was only late.
	Err error
	// Loss is what is lost with it. Messages in flight there may be delivered again from now on.
	Loss Loss
}

// String is one line for a log.
func (e Event) String() string {
	s := fmt.Sprintf("%s %v %d of client %q on queue %q", e.Rule, e.Call, e.Number, e.Client, e.Queue)
	if e.Message != nil && e.Message.ID != "" {
		s += " with message " + e.Message.ID
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Events returns what was done so far, in order.
func (f *Factory) Events() []Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]Event(nil), f.events...)
}

// Notify has fn called for each event from now on, in place of an earlier fn; nil ends it. It runs on the caller's goroutine, before what is
// lost is given back, so a record of the loss comes before any redelivery; if the fault only delays or hangs, before that begins. It
// must not call the connection.
func (f *Factory) Notify(fn func(Event)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notify = fn
}

// Release lets all calls that hang or are delayed go on. Later calls can hang again.
func (f *Factory) Release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.released)
	f.released = make(chan struct{})
}

// fault is a rule that matched a call.
type fault struct {
	Rule
	f     *Factory
	event Event
}

// match counts a call and returns the fault that it meets; nil if none.
func (f *Factory) match(e Event) *fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[e.Call]++
	var hit *rule
	for _, r := range f.rules { // all of them count
		if r.call != e.Call || r.where != nil && !r.where(e) {
			continue
		}
		r.matched++
		if hit == nil && (r.nth == 0 || r.matched == r.nth) && (r.every == 0 || r.matched%r.every == 0) {
			hit = r
		}
	}
	if hit == nil {
		return nil
	}
	e.Number, e.Rule, e.After = f.calls[e.Call], hit.String(), hit.after
	return &fault{Rule: hit.Rule, f: f, event: e}
}

// record notes the fault with what it comes to.
func (f *fault) record(err error, loss Loss) {
	e := f.event
	e.Time, e.Err, e.Loss = time.Now(), err, loss
	f.f.mu.Lock()
	f.f.events = append(f.f.events, e)
	notify := f.f.notify
	f.f.mu.Unlock()
	if notify != nil {
		notify(e)
	}
}

// happen waits as the rule says. It returns false if that was ended by the closing of the connection. A fault that is only
// late is recorded here, before it waits; one that fails is recorded by who makes its error true.
func (f *fault) happen(closed <-chan struct{}) bool {
	if f.err == nil {
		f.record(nil, NothingLost)
	}
	return f.wait(closed)
}

func (f *fault) wait(closed <-chan struct{}) bool {
	if f.delay <= 0 && !f.hang {
		return true
	}
	f.f.mu.Lock()
	released := f.f.released
	f.f.mu.Unlock()
	var over <-chan time.Time
	if f.delay > 0 {
		timer := time.NewTimer(f.delay)
		defer timer.Stop()
		over = timer.C
	}
	if f.hang && over != nil { // first the one, then the other, so that the end of the delay does not end the hanging
		select {
		case <-over:
			over = nil
		case <-released:
			return true
		case <-closed:
			return false
		}
	}
	select {
	case <-over:
	case <-released:
	case <-closed:
		return false
	}
	return true
}

// Connect implements jms.ConnectionFactory.
func (f *Factory) Connect(ctx context.Context, sub jms.Subscription) (jms.Connection, error) {
	f.mu.Lock()
	err := f.bad
	f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	fault := f.match(Event{Call: Connect, Queue: sub.Queue, Client: sub.Client})
	if fault != nil && !fault.after {
		fault.happen(nil)
		if fault.err != nil {
			fault.record(fault.err, NothingLost)
			return nil, fault.err
		}
	}
	inner, err := f.inner.Connect(ctx, sub)
	if err != nil {
		return nil, err
	}
	if fault != nil && fault.after {
		fault.happen(nil)
		if fault.err != nil {
			fault.record(fault.err, NothingLost)
			return nil, errors.Join(fault.err, inner.Close(context.WithoutCancel(ctx)))
		}
	}
	return wrap(f, inner, sub), nil
}
