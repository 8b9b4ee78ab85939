package orderaudit

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// never is the position of a record that does not exist: later than all.
const never = math.MaxInt

// attempt is one attempt. Positions are indexes into the history's records: they order events even where times are equal.
type attempt struct {
	msg             *message
	instance        string
	n               int
	id              uint64
	start, ret, end int
	intent, outcome Outcome // of ret and end
	taskEnd         int     // where the task has surely ended: ret, else end, else the kill of its process
	noTask          bool    // settled by a policy alone
}

// asOf is what was known of the attempt's outcome at position pos.
func (a *attempt) asOf(pos int) Outcome {
	switch {
	case a.end <= pos:
		return a.outcome
	case a.ret <= pos:
		return a.intent
	}
	return Open
}

// message is one number of one key.
type message struct {
	seq      int64
	sent     int  // position of its first sent or doubtful record, else never
	copies   int  // how many may be on the queue
	known    bool // at least one is on the queue for certain
	pending  bool // the latest doubtful record awaits its confirmation
	left     int
	outputs  []int // position of each output
	attempts []*attempt

	rank int // place in the key's order, set by each check
	last *attempt
	used int // copies that have been seen, beyond the first
}

// keyRun is everything recorded about one key.
type keyRun struct {
	key      string
	messages []*message // in the key's order
	attempts []*attempt // in the order of their starts
	bySeq    map[int64]*message
}

func (k *keyRun) message(seq int64) *message {
	m := k.bySeq[seq]
	if m == nil {
		m = &message{seq: seq, sent: never, left: never}
		k.bySeq[seq] = m
		k.messages = append(k.messages, m)
	}
	return m
}

// model is a history sorted by key, with the events that concern all keys apart.
type model struct {
	records   []Record
	opts      Options
	keys      []*keyRun
	events    events
	anySent   bool
	returns   map[string]bool // by instance: whether it records returns
	malformed []Violation
}

func build(h *History, opts Options) *model {
	m := &model{records: h.Records, opts: opts, events: newEvents(h.Records), returns: map[string]bool{}}
	byKey := map[string]*keyRun{}
	for pos := range h.Records {
		r := &h.Records[pos]
		switch r.Kind {
		case KindLoss, KindLossDone, KindKilled, KindStarted, KindStopping, KindTakeover:
			if !m.events.add(pos, r) {
				m.malform(r, pos, "the end of a loss that has not begun")
			}
			continue
		case KindSent, KindDoubtful, KindStart, KindReturn, KindEnd, KindOutput, KindLeft:
		default:
			m.malform(r, pos, "unknown kind of record")
			continue
		}
		run := byKey[r.Key]
		if run == nil {
			run = &keyRun{key: r.Key, bySeq: map[int64]*message{}}
			byKey[r.Key] = run
			m.keys = append(m.keys, run)
		}
		m.add(run, pos, r)
	}
	for _, run := range m.keys {
		run.sort(opts.Order)
		for _, a := range run.attempts {
			a.taskEnd = a.ret
			if !m.returns[a.instance] { // only outcomes are recorded there: they end the task
				a.taskEnd = a.end
			}
			a.taskEnd = min(a.taskEnd, m.events.killAfter(a.instance, a.start))
		}
	}
	return m
}

func (m *model) add(run *keyRun, pos int, r *Record) {
	msg := run.message(r.Seq)
	switch r.Kind {
	case KindSent, KindDoubtful:
		m.anySent = true
		msg.sent = min(msg.sent, pos)
		if r.Kind == KindDoubtful || !msg.pending {
			msg.copies++
		}
		msg.known = msg.known || r.Kind == KindSent
		msg.pending = r.Kind == KindDoubtful
	case KindLeft:
		msg.left = pos
	case KindOutput:
		msg.outputs = append(msg.outputs, pos)
	case KindStart:
		a := &attempt{msg: msg, instance: r.Instance, n: r.N, id: r.ID, start: pos, ret: never, end: never}
		msg.attempts = append(msg.attempts, a)
		run.attempts = append(run.attempts, a)
	case KindReturn, KindEnd:
		m.finish(run, msg, pos, r)
	}
}

// finish notes how an attempt ended.
func (m *model) finish(run *keyRun, msg *message, pos int, r *Record) {
	var a *attempt
	for _, c := range slices.Backward(msg.attempts) {
		if c.instance == r.Instance && (r.ID == c.id || r.ID == 0) {
			a = c
			break
		}
	}
	switch {
	case r.Kind == KindEnd && r.ID == 0 && r.Outcome == GivenBack && (a == nil || a.end != never && m.mayComeAgain(a.outcome)):
		// A message that was received and given back before its task began: there is no attempt to end.
	case a == nil && r.Kind == KindEnd && r.ID == 0:
		a = &attempt{msg: msg, instance: r.Instance, start: pos, ret: pos, end: pos, intent: r.Outcome, outcome: r.Outcome, noTask: true}
		msg.attempts = append(msg.attempts, a)
		run.attempts = append(run.attempts, a)
	case a == nil:
		m.malform(r, pos, fmt.Sprintf("%v of an attempt that has no start before it", r.Kind))
	case r.Outcome == Open || int(r.Outcome) >= len(outcomeNames):
		m.malform(r, pos, fmt.Sprintf("%v with the outcome %v, which is none", r.Kind, r.Outcome))
	case r.Kind == KindReturn && a.ret != never:
		m.malform(r, pos, "one attempt returns twice")
	case r.Kind == KindReturn:
		m.returns[r.Instance] = true
		a.ret, a.intent = pos, r.Outcome
	case a.end != never && a.outcome != Unknown && a.outcome != Failed:
		m.malform(r, pos, fmt.Sprintf("one attempt ends twice, first %v, then %v", a.outcome, r.Outcome))
	default: // what was in doubt has become known, or what had failed is given up
		a.end, a.outcome = pos, r.Outcome
	}
}

// mayComeAgain reports whether the broker may deliver a message again whose attempt ended so.
func (m *model) mayComeAgain(o Outcome) bool {
	return o == GivenBack || o.settles() && m.opts.AckDelay > 0
}

func (m *model) malform(r *Record, pos int, text string) {
	m.malformed = append(m.malformed, Violation{Rule: Malformed, Key: r.Key, Seq: r.Seq,
		Text: fmt.Sprintf("record %d: %s", pos, text), Records: []Record{*r}})
}

// sort puts the messages into the order in which the key must handle them.
func (k *keyRun) sort(order Order) {
	slices.SortFunc(k.messages, func(a, b *message) int {
		if order == BySent {
			if c := cmp.Compare(a.sent, b.sent); c != 0 {
				return c
			}
		}
		return cmp.Compare(a.seq, b.seq)
	})
}
