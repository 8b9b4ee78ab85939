package keyseq

import (
	"errors"
	"fmt"
	"time"
)

// DeadLetter says that no retry will help: the message goes to the dead-letter queue in the same unit of work in which it
// leaves its queue, and its key goes on. err is the reason and may be nil. If no dead-letter queue is known the key is held instead, and
// the task is run again after each pause (as with ActionHold).
func DeadLetter(err error) error { return &verdict{kind: verdictDeadLetter, reason: err} }

// Discard says that the message is not wanted: it is removed as if handled, without what the attempt staged, and counted. err is the
// reason and may be nil.
func Discard(err error) error { return &verdict{kind: verdictDiscard, reason: err} }

// RetryAfter says when to try again, instead of Config.Retry.Backoff; it counts as a retry. d below 0 means at once. err is the
// reason and may be nil.
func RetryAfter(d time.Duration, err error) error {
	return &verdict{kind: verdictRetryAfter, after: max(d, 0), reason: err}
}

// StopAll ends the run: the message goes back to its queue, the manager shuts down within DrainTimeout, and Run returns an error
// that wraps err.
func StopAll(err error) error { return &verdict{kind: verdictStopAll, reason: err} }

type verdictKind int

const (
	verdictRetry verdictKind = iota // a plain error
	verdictRetryAfter
	verdictDeadLetter
	verdictDiscard
	verdictStopAll
)

func (k verdictKind) String() string {
	switch k {
	case verdictRetryAfter:
		return "retry after"
	case verdictDeadLetter:
		return "dead letter"
	case verdictDiscard:
		return "discard"
	case verdictStopAll:
		return "stop all"
	}
	return "retry"
}

// verdict is an error that says what is to become of a message. It survives wrapping: the outermost one counts.
type verdict struct {
	kind   verdictKind
	after  time.Duration
	reason error
}

func (v *verdict) Error() string {
	text := v.kind.String()
	if v.kind == verdictRetryAfter {
		text = fmt.Sprintf("retry after %v", v.after)
	}
	if v.reason != nil {
		text += ": " + fmt.Sprint(v.reason)
	}
	return text
}

func (v *verdict) Unwrap() error { return v.reason }

// verdictOf reads a task's error.
func verdictOf(err error) verdict {
	if v, ok := errors.AsType[*verdict](err); ok {
		return *v
	}
	return verdict{kind: verdictRetry, reason: err}
}
