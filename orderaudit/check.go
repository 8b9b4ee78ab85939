package orderaudit

import (
	"fmt"
	"time"
)

// Order says which order of a key is the right one.
type Order uint8

const (
	BySeq  Order = iota // ascending sequence numbers
	BySent              // the order of the first Sent or SentDoubtful records, for queues that priorities reorder
)

// Options adjust a check to the run. The zero Options suit a synchronous broker (IBM MQ, the embedded one) whose queue
// was emptied.
type Options struct {
	Order Order
	// Base is the first number of every key. It serves only a history without Sent: then the numbers of a key must
	// have no gap from Base on. (With Sent records any numbers will do.)
	Base int64
	// AckDelay is for brokers with asynchronous acknowledgements: a message that was recorded as settled up to so long
	// before a loss may repeat after it, also behind messages that were settled in the same moment; the key then runs
	// forward in order again. 0: what is recorded as settled must never repeat.
	AckDelay time.Duration
	// Incomplete says that the run was cut short: messages that are not settled are no violation.
	Incomplete bool
	// Expect names the outcome that a message's policy demands (Settled, DeadLettered or Discarded), or Open for any. Nil: any.
	Expect func(key string, seq int64) Outcome
	// Outputs is how many messages the task of a settled message sends. Each must come out exactly once, and none
	// of a message that was not settled, or was dead-lettered or discarded. Nil: outputs are not checked.
	Outputs func(key string, seq int64) int
	// OutputsRepeat is for brokers whose sends are not atomic with the settlement: outputs may come out more than once, and also
	// those of attempts that did not settle.
	OutputsRepeat bool
}

// Check proves the history against G1-G4 or lists what breaks them. An empty history is malformed: it proves nothing.
// A million records take well under a second and about 100 MB beside the history, which it does not change.
func (h *History) Check(opts Options) Verdict {
	m := build(h, opts)
	var v Verdict
	v.Violations = m.malformed
	if h.err != nil {
		v.Violations = append(v.Violations, Violation{Rule: Malformed, Text: "incomplete: " + h.err.Error()})
	}
	if len(m.keys) == 0 {
		v.Violations = append(v.Violations, Violation{Rule: Malformed, Text: "nothing is recorded"})
	}
	var repeats []repeat
	for _, run := range m.keys {
		c := keyCheck{model: m, run: run, events: &m.events}
		c.check()
		for _, f := range c.findings {
			if len(v.Violations) < shown {
				f.Records = m.shrink(run, f)
			}
			v.Violations = append(v.Violations, f)
		}
		repeats = append(repeats, c.repeats...)
		v.Retries += c.retries
		v.Repeats += c.repeated
		v.count(m, run)
	}
	v.Violations = append(v.Violations, m.checkLossBounds(repeats)...)
	v.Keys, v.Losses = len(m.keys), len(m.events.losses)
	return v
}

func (v *Verdict) count(m *model, run *keyRun) {
	v.Messages += len(run.messages)
	v.Attempts += len(run.attempts)
	for _, msg := range run.messages {
		if msg.left != never {
			v.Left++
		}
		switch final(msg, &m.events) {
		case Settled:
			v.Settled++
		case DeadLettered:
			v.DeadLettered++
		case Discarded:
			v.Discarded++
		case Unknown:
			v.Uncertain++
		}
	}
}

// final is what became of a message in the end. What was meant to be settled and met a loss is in doubt.
func final(msg *message, e *events) Outcome {
	if len(msg.attempts) == 0 {
		return Open
	}
	a := msg.attempts[len(msg.attempts)-1]
	o := a.asOf(never - 1)
	if o.settles() && a.end == never {
		if e.lossBetween(a.instance, a.start, never) != nil {
			return Unknown
		}
	}
	return o
}

// keyCheck is the check of one key. It walks the key's attempts in the order of their starts.
type keyCheck struct {
	model    *model
	run      *keyRun
	events   *events
	frontier int        // rank of the first message that is not known to be settled
	running  []*attempt // whose tasks have not ended
	findings []Violation
	repeats  []repeat
	retries  int
	repeated int
}

func (c *keyCheck) check() {
	for i, msg := range c.run.messages {
		msg.rank, msg.last, msg.used = i, nil, 0
	}
	for i, a := range c.run.attempts {
		if !a.noTask {
			c.checkOverlap(a)
			c.checkOrder(a)
			c.checkRepeat(a, i)
			c.running = append(c.running, a)
		}
		a.msg.last = a
	}
	c.checkConservation()
	c.checkOutputs()
}

func (c *keyCheck) fail(rule Rule, msg *message, format string, args ...any) {
	c.findings = append(c.findings, Violation{Rule: rule, Key: c.run.key, Seq: msg.seq, Text: fmt.Sprintf(format, args...)})
}

// tell describes an attempt for a violation's sentence.
func (c *keyCheck) tell(a *attempt) string {
	n := ""
	if a.n > 0 {
		n = fmt.Sprintf(", attempt %d", a.n)
	}
	return fmt.Sprintf("message %d (on %s from +%v%s)", a.msg.seq, a.instance, c.events.at(a.start), n)
}
