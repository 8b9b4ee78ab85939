package memory

import (
	"context"
	"errors"
	"fmt"

	"github.com/keyseq/keyseq/jms"
)

// CallKind is a method of the contract.
type CallKind int

// The calls that a Hook sees.
const (
	CallConnect CallKind = iota
	CallAwaitActive
	CallOpenSession
	CallReceive
	CallCommit
	CallRollback
	CallCloseSession
	CallCloseConnection
)

// String returns the name of the method.
func (k CallKind) String() string {
	names := [...]string{"Connect", "AwaitActive", "OpenSession", "Receive", "Commit", "Rollback", "Session.Close", "Connection.Close"}
	if k < 0 || int(k) >= len(names) {
		return fmt.Sprintf("CallKind(%d)", int(k))
	}
	return names[k]
}

// Call is one call of a client, before or after its effect.
type Call struct {
	Kind          CallKind
	Queue, Client string
	// After is false before the effect and true after it; a call that failed by itself is not seen again.
	After bool
	// Message is what the session holds: before and after Commit, Rollback and Session.Close what it held before, after Receive what
	// was received. It may be nil. Do not change it.
	Message *jms.Message
}

// Hook sees every call, on the caller's goroutine, with no lock held. It may wait: that delays the call, and where it waits
// for ctx it hangs until its caller gives up (never, if the profile's calls are deaf). What it returns is the outcome of the call, nil lets the call go on.
//
// The broker makes the error true. jms.ErrConnectionLost loses the connection, jms.ErrSessionLost and jms.ErrCommitUnknown the session, in
// the way of the profile; jms.ErrRolledBack gives back what is held; other errors leave the session as it was before the call. After the
// effect, a message was taken that its client never sees, or a commit is done and its reply is lost: no error may say that its
// message comes again, so it wraps jms.ErrCommitUnknown too.
type Hook func(ctx context.Context, c Call) error

// SetHook installs the hook, in place of an earlier one; nil removes it. Rules such as "the third commit fails" are in package faulty,
// for every provider.
func (b *Broker) SetHook(h Hook) {
	if h == nil {
		b.hook.Store(nil)
		return
	}
	b.hook.Store(&h)
}

// hooked runs a call with the hook around it. comeTrue makes what the hook returned true.
func (b *Broker) hooked(ctx context.Context, c *Call, do func() error, comeTrue func(c Call, err error) error) error {
	h := b.hook.Load()
	if h == nil {
		return do()
	}
	hookCtx := ctx
	if b.profile.Deaf > 0 {
		hookCtx = context.WithoutCancel(ctx)
	}
	if comeTrue == nil {
		comeTrue = func(_ Call, err error) error { return err }
	}
	if err := (*h)(hookCtx, *c); err != nil {
		return comeTrue(*c, err)
	}
	if err := do(); err != nil {
		return err
	}
	c.After = true
	if err := (*h)(hookCtx, *c); err != nil {
		return comeTrue(*c, err)
	}
	return nil
}

func (c *conn) comeTrue(_ Call, err error) error {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	if errors.Is(err, jms.ErrConnectionLost) {
		c.lose(Loss{}, err)
	}
	return err
}

func (s *session) comeTrue(call Call, err error) error {
	s.c.b.mu.Lock()
	defer s.c.b.mu.Unlock()
	if call.After && call.Kind == CallCommit && !errors.Is(err, jms.ErrCommitUnknown) {
		err = fmt.Errorf("%w: %w", jms.ErrCommitUnknown, err)
	}
	switch {
	case errors.Is(err, jms.ErrConnectionLost):
		s.c.lose(Loss{}, err)
	case errors.Is(err, jms.ErrSessionLost), errors.Is(err, jms.ErrCommitUnknown):
		s.lose(Loss{}, err)
	case errors.Is(err, jms.ErrRolledBack):
		s.takeBack()
		s.end(err)
	case call.After && call.Kind == CallReceive:
		if back := s.giveBack(); back != nil {
			return fmt.Errorf("%w: %w", err, back)
		}
	}
	return err
}
