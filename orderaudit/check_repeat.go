package orderaudit

import (
	"cmp"
	"fmt"
	"slices"
)

// repeat is a start that losses explain: it counts against their bounds.
type repeat struct {
	key         string
	prev, again *attempt
	losses      []*loss // each of which had prev in flight
}

// checkRepeat is G4, and the counting of attempts: why may the message of a, the i-th attempt of the key, start again?
func (c *keyCheck) checkRepeat(a *attempt, i int) {
	prev := a.msg.last
	if prev == nil {
		if a.n > 1 {
			c.fail(G3, a.msg, "%s is its first and must be counted 1", c.tell(a))
		}
		return
	}
	state, later := prev.asOf(a.start), c.laterSince(a, i)
	losses := c.inFlightAt(prev, a, later)
	if len(losses) > 0 {
		c.repeats = append(c.repeats, repeat{c.run.key, prev, a, losses})
	}
	inPlace := state == Failed && prev.instance == a.instance
	if inPlace {
		c.retries++
	} else {
		c.repeated++
	}
	c.checkCount(a, prev, inPlace && len(losses) == 0 && !c.events.stopBetween(prev.instance, prev.start, a.start))
	if prev.taskEnd > a.start && prev.instance == a.instance {
		return // two at once: G2 has said so
	}
	if later != nil {
		if len(losses) > 0 {
			return
		}
		if a.msg.used+1 < a.msg.copies {
			a.msg.used++
			return
		}
		c.fail(G4, a.msg, "%s starts again after a later one, %s, has begun", c.tell(a), c.tell(later))
		return
	}
	if inPlace || len(losses) > 0 || prev.end <= a.start && (state == GivenBack || state == Unknown) ||
		prev.ret <= a.start && state == GivenBack || state == Failed && c.events.stopBetween(prev.instance, prev.start, a.start) {
		return
	}
	if a.msg.used+1 < a.msg.copies {
		a.msg.used++
		return
	}
	c.fail(G4, a.msg, "%s starts again: %s", c.tell(a), c.unexplained(prev, a))
}

// inFlightAt lists the losses between prev and a that prev's message may have been in flight at. If a later message has begun
// in between (nil: none has), only losses after that can have undone what was settled before it.
func (c *keyCheck) inFlightAt(prev, a, later *attempt) []*loss {
	after := prev.start
	if later != nil {
		after = later.start
	}
	var found []*loss
	for _, loss := range c.events.lossesOf(prev.instance).since(after) {
		if loss.from >= a.start {
			break
		}
		if !loss.within(after, a.start) {
			continue
		}
		settled := min(prev.end, loss.from)
		if prev.end == never {
			settled = min(prev.ret, loss.from)
		}
		undone := c.model.opts.AckDelay > 0 && c.events.at(loss.from)-c.events.at(settled) <= c.model.opts.AckDelay
		switch {
		case later != nil && !undone, prev.end != never && prev.outcome.settles() && !undone:
			continue // the broker has confirmed it
		case later == nil && prev.end < loss.from && (prev.outcome == GivenBack || prev.outcome == Unknown):
			continue // it was no more in flight
		}
		found = append(found, loss)
	}
	return found
}

// laterSince is the last attempt of a later message that started between the message's previous start and a.
func (c *keyCheck) laterSince(a *attempt, i int) *attempt {
	for j := i - 1; j >= 0 && c.run.attempts[j] != a.msg.last; j-- {
		if other := c.run.attempts[j]; other.msg.rank > a.msg.rank && !other.noTask {
			return other
		}
	}
	return nil
}

func (c *keyCheck) unexplained(prev, a *attempt) string {
	if c.events.lossBetween(prev.instance, prev.start, a.start) != nil {
		return fmt.Sprintf("its attempt from +%v was %v at +%v, which no loss undoes", c.events.at(prev.start), prev.outcome, c.events.at(prev.end))
	}
	return fmt.Sprintf("its attempt from +%v on %s was %v and no loss of %s is recorded since",
		c.events.at(prev.start), prev.instance, prev.asOf(a.start), prev.instance)
}

// checkCount: retries in place count 1, 2, 3; a message that was given back may go on counting, or begin at 1 again.
func (c *keyCheck) checkCount(a, prev *attempt, inPlace bool) {
	if a.n == 0 || prev.noTask {
		return
	}
	most := 0
	for _, b := range a.msg.attempts {
		if b == a {
			break
		}
		most = max(most, b.n)
	}
	switch {
	case inPlace && a.n != prev.n+1:
		c.fail(G3, a.msg, "%s is retried in place after attempt %d and must be counted %d", c.tell(a), prev.n, prev.n+1)
	case !inPlace && a.n > most+1:
		c.fail(G3, a.msg, "%s follows %d attempts: some were never started", c.tell(a), most)
	}
}

// checkLossBounds is the other half of G4: after each loss at most what was in flight repeats. Each repeat is put down to
// one loss, earliest deadline first, which finds an assignment if there is one.
func (m *model) checkLossBounds(repeats []repeat) []Violation {
	slices.SortFunc(repeats, func(a, b repeat) int { return cmp.Compare(a.again.start, b.again.start) })
	explained := make([]bool, len(repeats))
	byLoss := map[*loss][]int{}
	for i, r := range repeats {
		for _, loss := range r.losses {
			if loss.bound == 0 { // no bound is known: explains any number
				explained[i] = true
			}
		}
		for _, loss := range r.losses {
			if !explained[i] {
				byLoss[loss] = append(byLoss[loss], i)
			}
		}
	}
	for _, loss := range m.events.losses {
		room := loss.bound
		for _, i := range byLoss[loss] {
			if room == 0 {
				break
			}
			if !explained[i] {
				explained[i] = true
				room--
			}
		}
	}
	var found []Violation
	for i, r := range repeats {
		if explained[i] {
			continue
		}
		last := r.losses[len(r.losses)-1]
		v := Violation{Rule: G4, Key: r.key, Seq: r.again.msg.seq, Text: fmt.Sprintf(
			"message %d repeats at +%v, one more than the %d in flight at the loss of +%v",
			r.again.msg.seq, m.events.at(r.again.start), last.bound, m.events.at(last.from))}
		if len(found) < shown {
			v.Records = []Record{m.records[r.prev.start], m.records[last.from], m.records[r.again.start]}
		}
		found = append(found, v)
	}
	return found
}
