package orderaudit

import "slices"

// shrinkWork bounds the records that the shrinking of one violation may look at: about a second. A violation that needs
// more is shown larger than it need be.
const shrinkWork = 20_000_000

// shrink finds the shortest piece of a key's run that still shows a violation: no message, attempt or event can be left
// out of it without losing the violation or changing what it says.
//
// Only whole messages and attempts go: dropping a single record, say the outcome of an attempt, would make up a violation
// that did not happen.
func (m *model) shrink(run *keyRun, v Violation) []Record {
	s := shrinker{model: m, violation: v, bySeq: run.bySeq, key: run.key}
	piece := piece{messages: run.messages, attempts: run.attempts, events: m.events.near(run)}
	piece.messages = minimize(piece.messages, func(kept []*message) bool { return s.shows(piece.with(kept)) })
	piece = piece.with(piece.messages)
	piece.attempts = minimize(piece.attempts, func(kept []*attempt) bool {
		p := piece
		p.attempts = kept
		return s.shows(p)
	})
	piece.events = minimize(piece.events, func(kept []int) bool {
		p := piece
		p.events = kept
		return s.shows(p)
	})
	return m.recordsOf(piece)
}

// piece is a part of a key's run.
type piece struct {
	messages []*message
	attempts []*attempt
	events   []int // positions of losses, kills and stops
}

// with is the piece with only some of its messages.
func (p piece) with(messages []*message) piece {
	kept := map[*message]bool{}
	for _, msg := range messages {
		kept[msg] = true
	}
	var attempts []*attempt
	for _, a := range p.attempts {
		if kept[a.msg] {
			attempts = append(attempts, a)
		}
	}
	return piece{messages, attempts, p.events}
}

type shrinker struct {
	model     *model
	violation Violation
	key       string
	bySeq     map[int64]*message
	work      int
}

// shows checks the piece alone.
func (s *shrinker) shows(p piece) bool {
	if s.work += len(p.messages) + len(p.attempts) + len(p.events); s.work > shrinkWork {
		return false
	}
	originals := make([][]*attempt, len(p.messages))
	for i, msg := range p.messages {
		originals[i], msg.attempts = msg.attempts, nil
	}
	for _, a := range p.attempts {
		a.msg.attempts = append(a.msg.attempts, a)
	}
	events := s.model.events.only(p.events)
	c := keyCheck{model: s.model, events: &events, run: &keyRun{key: s.key, messages: p.messages, attempts: p.attempts, bySeq: s.bySeq}}
	c.check()
	for i, msg := range p.messages {
		msg.attempts = originals[i]
	}
	return slices.ContainsFunc(c.findings, func(f Violation) bool {
		return f.Rule == s.violation.Rule && f.Seq == s.violation.Seq && f.Text == s.violation.Text
	})
}

// minimize leaves out as many items as it can while the rest still fails: delta debugging by halves, quarters and so on.
// The result is minimal: it fails no more without any single item of it.
func minimize[T any](items []T, fails func([]T) bool) []T {
	for size := (len(items) + 1) / 2; size > 0; {
		removed := false
		for from := 0; from < len(items); {
			to := min(from+size, len(items))
			rest := slices.Concat(items[:from], items[to:])
			if fails(rest) {
				items, removed = rest, true
			} else {
				from = to
			}
		}
		switch {
		case size > 1:
			size = (size + 1) / 2
		case !removed:
			size = 0
		}
	}
	return items
}

// recordsOf are all records of a piece, in their order.
func (m *model) recordsOf(p piece) []Record {
	positions := slices.Clone(p.events)
	for _, pos := range p.events {
		if i, ok := m.events.lossAt(pos); ok {
			positions = append(positions, m.events.losses[i].to)
		}
	}
	for _, msg := range p.messages {
		positions = append(positions, msg.sent, msg.left)
		positions = append(positions, msg.outputs...)
	}
	for _, a := range p.attempts {
		positions = append(positions, a.start, a.ret, a.end)
		if a.taskEnd != never { // else a kill says how it ended
			positions = append(positions, a.taskEnd)
		}
	}
	slices.Sort(positions)
	positions = slices.Compact(positions)
	var records []Record
	for _, pos := range positions {
		if pos != never {
			records = append(records, m.records[pos])
		}
	}
	return records
}
