package orderaudit

import (
	"errors"
	"fmt"
	"strings"
)

// Rule names the guarantee that a violation breaks.
type Rule string

const (
	G1 Rule = "G1" // order: the task of message n+1 does not start before message n is settled
	G2 Rule = "G2" // never two: two tasks of one key do not run at the same time
	G3 Rule = "G3" // no loss: what was sent is settled, once and as its policy says, and nothing else is
	G4 Rule = "G4" // duplicates: only what was in flight at a loss repeats, and the key runs forward from there
	// Malformed: the history contradicts itself, for example an end without a start, or could not be read or written whole.
	Malformed Rule = "malformed history"
)

// ErrViolated is wrapped by the error of a Verdict that is not OK.
var ErrViolated = errors.New("orderaudit: guarantee violated")

// Violation is one breach of one rule.
type Violation struct {
	Rule Rule
	Key  string
	Seq  int64  // the message at fault; 0 with an empty Key when it is no single message
	Text string // one sentence
	// Records is the shortest piece of the history that still shows this violation. The first ten of a verdict have it.
	// Draw it with History.WriteTimeline.
	Records []Record
}

// String is the sentence, and below it the offending records, a line each.
func (v Violation) String() string {
	var b strings.Builder
	b.WriteString(string(v.Rule))
	if v.Key != "" || v.Seq != 0 {
		fmt.Fprintf(&b, " key %q", v.Key)
	}
	b.WriteString(": " + v.Text)
	for _, r := range v.Records {
		b.WriteString("\n    " + r.String())
	}
	return b.String()
}

// Verdict is the result of a check.
type Verdict struct {
	Violations []Violation // none: the history keeps G1-G4

	Keys, Messages, Attempts int
	Settled                  int // messages whose task succeeded
	DeadLettered, Discarded  int
	Left                     int // found on the queue after the run
	Uncertain                int // whose last settlement is in doubt
	Retries                  int // attempts after a failed one, in place
	Repeats                  int // attempts that a loss or a give-back made necessary
	Losses                   int // kills included
}

// OK reports that no rule is violated.
func (v Verdict) OK() bool { return len(v.Violations) == 0 }

// Err is nil when the verdict is OK, else an error that wraps ErrViolated and says what String says.
func (v Verdict) Err() error {
	if v.OK() {
		return nil
	}
	return fmt.Errorf("%w\n%s", ErrViolated, v)
}

// shown is how many violations are shrunk and printed: the first few tell the story, shrinking takes time.
const shown = 10

func counted(n int, one, many string) string {
	if n == 1 {
		many = one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// String is one line with the counts, "ok: " or the number of violations in front, and then the first ten violations.
func (v Verdict) String() string {
	var b strings.Builder
	if v.OK() {
		b.WriteString("ok: ")
	} else {
		b.WriteString(counted(len(v.Violations), "violation", "violations") + ": ")
	}
	b.WriteString(counted(v.Keys, "key", "keys") + ", " + counted(v.Messages, "message", "messages") + ", " + counted(v.Attempts, "attempt", "attempts"))
	for _, c := range []struct {
		n         int
		one, many string
	}{
		{v.Retries, "retry", "retries"}, {v.Repeats, "repeat", "repeats"}, {v.Losses, "loss", "losses"},
		{v.DeadLettered, "dead-lettered", "dead-lettered"}, {v.Discarded, "discarded", "discarded"},
		{v.Left, "left on the queue", "left on the queue"}, {v.Uncertain, "in doubt", "in doubt"},
	} {
		if c.n > 0 {
			b.WriteString(", " + counted(c.n, c.one, c.many))
		}
	}
	for i, violation := range v.Violations {
		if i == shown {
			fmt.Fprintf(&b, "\n  and %d more", len(v.Violations)-shown)
			break
		}
		b.WriteString("\n  " + violation.String())
	}
	return b.String()
}
