package keyseq

import "time"

// Events are told what happens, on the goroutine where it happens and before the manager goes on: they must return fast and must not call
// Start, Run, Stop or Shutdown. Any may be nil. A panic in one is logged.
type Events struct {
	// Received: a message has been read and its key is known; it joins its key's queue when all have been told. Not for one without a key.
	Received func(MessageEvent)
	// Started: an attempt begins.
	Started func(MessageEvent)
	// Retrying: an attempt, or a settlement, failed and will be repeated at Next.
	Retrying func(MessageEvent)
	// Committed: the message is settled, its task done.
	Committed func(MessageEvent)
	// RolledBack: the message has left unsettled and comes again, or may come again (Err wraps jms.ErrCommitUnknown).
	RolledBack func(MessageEvent)
	// DeadLettered and Discarded: the message is settled without its task; Err is the reason.
	DeadLettered, Discarded func(MessageEvent)
	// State: the manager's state has changed; err is why it left a better one, if something went wrong. Told one at a time, in order: from is what to was
	// before.
	State func(from, to State, err error)
	// Blocked: what is held fills the window and no key can move, or every worker sits in an old task (30 s, or half of TaskTimeout if that is
	// less) while keys wait. Told once a second while it lasts, the first time within a second or two, with the up to 20 keys held longest.
	Blocked func([]KeyReport)
	// Stuck: a call to the broker has overrun CallTimeout. After a commit its key waits until the call returns; its worker does not. A Receive, which
	// has no key, and a Rollback cost their connection: all that it holds comes again.
	Stuck func(KeyReport)
}

// MessageEvent is what happened to a message.
type MessageEvent struct {
	// Delivery of the attempt; for events outside an attempt one that is over, with the number of attempts so far.
	Delivery *Delivery
	// Wait is the time in the key's queue before the attempt, Task the time in DoTask.
	Wait, Task time.Duration
	// Next is when the next attempt is due (Retrying).
	Next time.Time
	// Err is what went wrong, if anything.
	Err error
}

// tell calls one func of every Events that has it. Callers look at m.observed first, so that an event that nobody wants costs nothing.
func (m *SequenceManager) tell(pick func(*Events) func(MessageEvent), e MessageEvent) {
	for i := range m.cfg.Events {
		if f := pick(&m.cfg.Events[i]); f != nil {
			m.guard("event func", func() { f(e) })
		}
	}
}

// guard runs user code that has no way to return an error.
func (m *SequenceManager) guard(what string, call func()) {
	defer func() {
		if v := recover(); v != nil {
			m.log.Error("panic in "+what+": mend it; the manager goes on", "queue", m.queue, "error", newPanicError(v))
		}
	}()
	call()
}

// rareCallback runs user code on a goroutine of its own and waits for it: whatever that does to its goroutine, the caller's goes on. It is noted that
// this one is inside a callback.
func (m *SequenceManager) rareCallback(call func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		id := goroutineID()
		m.callers.Store(id, true)
		defer m.callers.Delete(id)
		m.guard("callback", call)
	}()
	<-done
}
