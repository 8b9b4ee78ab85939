package keyseq

import (
	"errors"
	"fmt"
	"runtime/debug"
)

var (
	// ErrRunning: Start or Run of a manager that runs.
	ErrRunning = errors.New("keyseq: already running")
	// ErrStopping: Start or Run while an earlier run is still ending, because a task ignores its context or a call has not returned.
	ErrStopping = errors.New("keyseq: an earlier run is still ending")
	// ErrInCallback: Start, Run, Stop or Shutdown was called from a callback of the same manager, which it would wait for.
	// Return StopAll from DoTask, or cancel the context of Run, instead.
	ErrInCallback = errors.New("keyseq: called from inside a callback")
	// ErrStale: the attempt is over; nothing was done.
	ErrStale = errors.New("keyseq: attempt is over")
	// ErrTaskTimeout is the cause of a task's context that ended at TaskTimeout.
	ErrTaskTimeout = errors.New("keyseq: task timed out")
	// ErrDrainTimeout: tasks were cancelled at the drain deadline, or something was not given back by then, or a call to the broker did not
	// return. The error that wraps it names the keys. It is also the cause of those tasks' contexts.
	ErrDrainTimeout = errors.New("keyseq: not drained at the deadline")
)

// errTaskExited is the failure of a task that ended its goroutine.
var errTaskExited = errors.New("keyseq: the task ended its goroutine with runtime.Goexit (t.FailNow does): return an error instead")

// ConfigError is one wrong setting or argument. NewSequenceManager returns all of them at once, joined.
type ConfigError struct {
	Field   string // the argument or the field of Config: "Workers"
	Problem string // what it is and what it must be: "is 0: must be 1 to 10000"
}

func (e *ConfigError) Error() string { return "keyseq: " + e.Field + " " + e.Problem }

// PanicError is a panic in DoTask or in a KeyExtractor, as the error of that attempt.
type PanicError struct {
	Value any    // what panic was called with
	Stack []byte // of the goroutine at that moment
}

func newPanicError(value any) *PanicError { return &PanicError{value, debug.Stack()} }

// Error has the value and the stack, on many lines. For one line take Value.
func (e *PanicError) Error() string { return fmt.Sprintf("keyseq: panic: %v\n\n%s", e.Value, e.Stack) }

// Unwrap gives the panic's value if it was an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
