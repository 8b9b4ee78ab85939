package orderaudit

import "fmt"

// Outcome is what became of one attempt. The zero value is Open.
type Outcome uint8

const (
	// Open: no outcome is recorded. The task still runs, or its process was killed.
	Open Outcome = iota
	// Settled: the task returned nil and the message was committed (acknowledged).
	Settled
	// Failed: the attempt failed and the message is retried in place; its key waits.
	Failed
	// DeadLettered: the message left the queue for the dead-letter queue.
	DeadLettered
	// Discarded: the message left the queue because a policy or the task said so.
	Discarded
	// GivenBack: the message went back to the queue (a rollback, a cancelled task, a stop). It is expected to come again.
	GivenBack
	// Unknown: the settlement is in doubt. The message is gone, or it comes again; both are right.
	Unknown
)

var outcomeNames = [...]string{"open", "settled", "failed", "dead-lettered", "discarded", "given back", "unknown"}

// String returns the name that saved histories use: open, settled, failed, dead-lettered, discarded, given back, unknown.
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return fmt.Sprintf("Outcome(%d)", uint8(o))
}

// settles reports whether the message leaves its queue for good.
func (o Outcome) settles() bool { return o == Settled || o == DeadLettered || o == Discarded }

// frees reports whether the next message of the key may start after this outcome.
func (o Outcome) frees() bool { return o.settles() || o == Unknown }

func parseOutcome(s string) (Outcome, error) {
	for i, name := range outcomeNames {
		if name == s {
			return Outcome(i), nil
		}
	}
	return 0, fmt.Errorf("unknown outcome %q", s)
}
