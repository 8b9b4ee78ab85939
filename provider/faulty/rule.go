package faulty

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/keyseq/keyseq/jms"
)

// Call is a kind of call of the contract.
type Call int

// The calls that can be broken.
const (
	Connect Call = iota
	AwaitActive
	OpenSession
	Receive
	Commit
	Rollback
	CloseSession
	CloseConnection
)

var callNames = [...]string{"Connect", "AwaitActive", "OpenSession", "Receive", "Commit", "Rollback", "CloseSession", "CloseConnection"}

// String returns the name of the constant.
func (c Call) String() string {
	if c < 0 || int(c) >= len(callNames) {
		return fmt.Sprintf("Call(%d)", int(c))
	}
	return callNames[c]
}

// Rule says which calls are broken, and how. It is a value: each method returns a changed copy. A rule without Delay, Hang and
// Return changes nothing.
type Rule struct {
	call     Call
	nth      int
	every    int
	after    bool
	delay    time.Duration
	hang     bool
	err      error
	where    func(Event) bool
	hasWhere bool
}

// On makes a rule for all calls of a kind.
func On(c Call) Rule { return Rule{call: c} }

// Nth makes it the k-th call only, counted from 1 over all connections of the Factory; with Where, of those that match.
func (r Rule) Nth(k int) Rule { r.nth, r.every = k, 0; return r }

// Every makes it each k-th call: k, 2k, 3k and so on.
func (r Rule) Every(k int) Rule { r.every, r.nth = k, 0; return r }

// Where makes it the calls for which match returns true. It gets the event without its number and outcome, on the caller's goroutine, under a
// lock of the Factory: it must not call anything of the Factory.
func (r Rule) Where(match func(Event) bool) Rule { r.where, r.hasWhere = match, true; return r }

// After makes it happen after the effect of the call; without it, before. If the call fails by itself nothing is added.
func (r Rule) After() Rule { r.after = true; return r }

// Delay makes the call wait, without regard to its context. Closing the connection, and Release, end it.
func (r Rule) Delay(d time.Duration) Rule { r.delay = d; return r }

// Hang makes the call wait, without regard to its context, until Release or until its connection is closed (Connect and CloseConnection:
// until Release only). Released, it goes on: before the effect it still has it, late; after the effect it returns what it brought.
func (r Rule) Hang() Rule { r.hang = true; return r }

// Return makes the call fail, after Delay and Hang. The package's documentation says what becomes true with which error. CloseSession and
// CloseConnection have their effect all the same, since who is told of a failed Close cannot do more.
func (r Rule) Return(err error) Rule { r.err = err; return r }

// String is the Go expression that makes the rule. An error that is no sentinel of package jms, and a condition, cannot be written out.
func (r Rule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "faulty.On(faulty.%v)", r.call)
	if r.hasWhere {
		b.WriteString(".Where(...)")
	}
	if r.nth != 0 {
		fmt.Fprintf(&b, ".Nth(%d)", r.nth)
	}
	if r.every != 0 {
		fmt.Fprintf(&b, ".Every(%d)", r.every)
	}
	if r.after {
		b.WriteString(".After()")
	}
	if r.delay != 0 {
		fmt.Fprintf(&b, ".Delay(%d) /* %v */", int64(r.delay), r.delay)
	}
	if r.hang {
		b.WriteString(".Hang()")
	}
	if r.err != nil {
		fmt.Fprintf(&b, ".Return(%s)", errorExpr(r.err))
	}
	return b.String()
}

func errorExpr(err error) string {
	for _, s := range []struct {
		err  error
		name string
	}{
		{jms.ErrConfig, "ErrConfig"}, {jms.ErrConnectionLost, "ErrConnectionLost"}, {jms.ErrSessionLost, "ErrSessionLost"},
		{jms.ErrCommitUnknown, "ErrCommitUnknown"}, {jms.ErrRolledBack, "ErrRolledBack"}, {jms.ErrBusy, "ErrBusy"}, {jms.ErrQuiescing, "ErrQuiescing"},
	} {
		if err == s.err {
			return "jms." + s.name
		}
	}
	return fmt.Sprintf("errors.New(%q)", err)
}

// problems of a rule, as jms.ErrConfig.
func (r Rule) check() error {
	var errs []error
	wrong := func(text string) {
		errs = append(errs, fmt.Errorf("faulty: %v: %s: %w", r, text, jms.ErrConfig))
	}
	if r.call < Connect || r.call > CloseConnection {
		wrong("use one of the constants for the call")
	}
	if r.nth < 0 || r.every < 0 {
		wrong("calls are counted from 1")
	}
	if r.delay < 0 {
		wrong("the delay is negative; use 0 for none")
	}
	if r.hasWhere && r.where == nil {
		wrong("the condition is nil")
	}
	return errors.Join(errs...)
}
