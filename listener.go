package keyseq

import (
	"context"

	"github.com/keyseq/keyseq/jms"
)

type (
	// Message is a received message: jms.Message, so that most programs import only keyseq and a provider.
	Message = jms.Message
	// Outgoing is a message to send: jms.Outgoing.
	Outgoing = jms.Outgoing
)

// Listener is the user's code. Calls for one key never overlap, calls for different keys do: what it shares between keys it must
// guard itself.
type Listener interface {
	// DoTask is one attempt at a message, on a worker's goroutine. nil settles the message together with what d.Send staged. An error is
	// a failed attempt: the same message is tried again under Config.Retry, while its key waits; DeadLetter, Discard, RetryAfter
	// and StopAll say something else. A panic is a failed attempt with a *PanicError.
	//
	// It must return only when the work is done: what goes on in another goroutine is not protected by the order of the key. ctx ends at
	// TaskTimeout (cause ErrTaskTimeout: a failed attempt), when the connection or the active role is lost (cause
	// jms.ErrConnectionLost), and at a drain deadline (cause ErrDrainTimeout). After the last two an error is no attempt: nothing is counted
	// and the message goes back; nil still tries to settle. A task that ignores ctx keeps its key and its worker until it returns.
	//
	// It must not call Start, Run, Stop or Shutdown of its own manager: they return ErrInCallback.
	DoTask(ctx context.Context, d *Delivery) error
	// OnMessageError hears of each failed attempt before the message leaves the head of its key, usually on the worker's goroutine.
	// taskPerformed is true exactly when DoTask returned nil and the settlement did not succeed; err then is jms.ErrRolledBack (it comes
	// again: undo what was recorded) or jms.ErrCommitUnknown (it may come again: keep the record and expect a repeat). A settlement
	// that was refused, since a queue to send to is missing, is told as rolled back too: the message is tried again in place. ctx is alive also when the
	// task's has ended, and carries the values of the context given to Start or Run. A panic is logged.
	OnMessageError(ctx context.Context, d *Delivery, err error, taskPerformed bool)
}

// ListenerFuncs makes a Listener of two functions. Task is required, Error may be nil.
type ListenerFuncs struct {
	Task  func(ctx context.Context, d *Delivery) error
	Error func(ctx context.Context, d *Delivery, err error, taskPerformed bool)
}

// DoTask calls Task.
func (f ListenerFuncs) DoTask(ctx context.Context, d *Delivery) error { return f.Task(ctx, d) }

// OnMessageError calls Error, if there is one.
func (f ListenerFuncs) OnMessageError(ctx context.Context, d *Delivery, err error, taskPerformed bool) {
	if f.Error != nil {
		f.Error(ctx, d, err, taskPerformed)
	}
}
