package jms

import "errors"

// Meanings of a failure, wrapped with %w beside the cause. The manager looks at them with errors.Is only.
var (
	// ErrConfig: wrong configuration or no authority. No retry will mend it; it ends the run and is returned by Run.
	ErrConfig = errors.New("jms: wrong configuration or no authority")
	// ErrConnectionLost: every session of the connection is gone; what they held comes again. The manager reconnects.
	ErrConnectionLost = errors.New("jms: connection lost")
	// ErrSessionLost: this session is gone, the others are not; its message comes again, perhaps late.
	ErrSessionLost = errors.New("jms: session lost")
	// ErrCommitUnknown: the commit was sent and its outcome is not known; the message may or may not come again.
	ErrCommitUnknown = errors.New("jms: commit outcome unknown")
	// ErrRolledBack: the broker undid the unit of work and says so; the message comes again.
	ErrRolledBack = errors.New("jms: rolled back")
	// ErrBusy: full, inhibited, or at a limit. Nothing was done and the same call may be repeated later.
	ErrBusy = errors.New("jms: try again later")
	// ErrQuiescing: the broker is about to stop. What is held can still be settled; nothing more is received, then reconnect.
	ErrQuiescing = errors.New("jms: broker is quiescing")
	// ErrUnreadable: a part of a message is there but could not be read. It is the value of that property in Message.Properties.
	ErrUnreadable = errors.New("jms: message part could not be read")
)

// EndsSession reports whether err is one of the four after which only Close may follow on a session: ErrConnectionLost,
// ErrSessionLost, ErrCommitUnknown, ErrRolledBack.
func EndsSession(err error) bool {
	return errors.Is(err, ErrConnectionLost) || errors.Is(err, ErrSessionLost) ||
		errors.Is(err, ErrCommitUnknown) || errors.Is(err, ErrRolledBack)
}
