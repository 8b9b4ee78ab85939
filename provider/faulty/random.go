package faulty

import (
	"math/rand/v2"
	"time"

	"github.com/keyseq/keyseq/jms"
)

// Budget says how many faults Random draws, and among which calls.
type Budget struct {
	// Fail is how many calls fail before their effect; LoseReply, how many fail after it; Delay, how many are delayed; Hang, how many hang
	// until Release or the closing of the connection.
	Fail, LoseReply, Delay, Hang int
	// MaxDelay bounds a delay; 0: one second.
	MaxDelay time.Duration
	// Within is among how many calls of each kind the faults are spread, from the first; 0: 100.
	Within int
	// Calls are the kinds that may be broken; nil: Connect, OpenSession, Receive, Commit and Rollback.
	Calls []Call
}

// Random draws rules from a seed: the same seed and budget give the same rules. Each breaks the k-th call of its kind, so what happens does not
// depend on how goroutines interleave. Errors are those that the contract allows for the call, without jms.ErrConfig, which ends a run.
func Random(seed uint64, b Budget) []Rule {
	rnd := rand.New(rand.NewPCG(seed, 0))
	calls := b.Calls
	if len(calls) == 0 {
		calls = []Call{Connect, OpenSession, Receive, Commit, Rollback}
	}
	within, maxDelay := b.Within, b.MaxDelay
	if within <= 0 {
		within = 100
	}
	if maxDelay <= 0 {
		maxDelay = time.Second
	}
	draw := func() Rule { return On(calls[rnd.IntN(len(calls))]).Nth(1 + rnd.IntN(within)) }
	var rules []Rule
	for range b.Fail {
		r := draw()
		rules = append(rules, r.Return(pick(rnd, errorsBefore(r.call))))
	}
	for range b.LoseReply {
		r := draw().After()
		rules = append(rules, r.Return(pick(rnd, errorsAfter(r.call))))
	}
	for range b.Delay {
		r := draw().Delay(1 + time.Duration(rnd.Int64N(int64(maxDelay))))
		r.after = rnd.IntN(2) == 0
		rules = append(rules, r)
	}
	for range b.Hang {
		r := draw().Hang()
		r.after = rnd.IntN(2) == 0
		rules = append(rules, r)
	}
	return rules
}

func pick(rnd *rand.Rand, errs []error) error { return errs[rnd.IntN(len(errs))] }

func errorsBefore(c Call) []error {
	switch c {
	case Connect, OpenSession:
		return []error{jms.ErrConnectionLost, jms.ErrBusy}
	case AwaitActive, CloseConnection:
		return []error{jms.ErrConnectionLost}
	case Receive:
		return []error{jms.ErrConnectionLost, jms.ErrSessionLost, jms.ErrBusy, jms.ErrQuiescing}
	case Commit:
		return []error{jms.ErrConnectionLost, jms.ErrSessionLost, jms.ErrCommitUnknown, jms.ErrRolledBack, jms.ErrBusy}
	}
	return []error{jms.ErrConnectionLost, jms.ErrSessionLost} // Rollback, CloseSession
}

func errorsAfter(c Call) []error {
	switch c {
	case Receive, Rollback, CloseSession:
		return []error{jms.ErrConnectionLost, jms.ErrSessionLost}
	case Commit:
		return []error{jms.ErrCommitUnknown}
	}
	return []error{jms.ErrConnectionLost} // Connect, AwaitActive, OpenSession, CloseConnection
}
