package orderaudit

import "fmt"

// checkOrder is G1: when a starts, every earlier message of its key is settled. A message that starts again moves the frontier
// back, so that everything after it must wait for it again.
func (c *keyCheck) checkOrder(a *attempt) {
	for c.frontier < a.msg.rank {
		before := c.run.messages[c.frontier]
		if why, ok := c.settledBefore(before, a); !ok {
			c.fail(G1, a.msg, "%s starts before message %d is settled: it %s", c.tell(a), before.seq, why)
			break
		}
		c.frontier++
	}
	c.frontier = a.msg.rank
}

// settledBefore reports whether msg is settled when a starts, else what is wrong with it.
func (c *keyCheck) settledBefore(msg *message, a *attempt) (string, bool) {
	last, pos := msg.last, a.start
	if last == nil {
		switch {
		case len(msg.attempts) > 0:
			return "starts later, at +" + c.events.at(msg.attempts[0].start).String(), false
		case msg.left != never:
			return "is left on the queue", false
		case c.model.opts.Incomplete && msg.known:
			return "has never started", false
		}
		return "", true // doubtful, or lost, which G3 reports
	}
	switch o := last.asOf(pos); {
	case o.frees() && last.end <= pos, o.frees() && last.end == never:
		return "", true
	case o.frees():
		// Its outcome is recorded later. A lost instance may write down late what the broker did before the loss.
		if last.outcome.frees() && last.instance != a.instance {
			if c.events.lossBetween(last.instance, last.start, pos) != nil {
				return "", true
			}
		}
		return fmt.Sprintf("is %v at +%v", last.outcome, c.events.at(last.end)), false
	case o == Open && last.taskEnd <= pos:
		return fmt.Sprintf("started at +%v and its process was killed", c.events.at(last.start)), false
	case o == Open:
		return fmt.Sprintf("has been running since +%v", c.events.at(last.start)), false
	default:
		return fmt.Sprintf("was %v after its start at +%v", o, c.events.at(last.start)), false
	}
}
