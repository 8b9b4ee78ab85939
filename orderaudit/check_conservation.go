package orderaudit

import "fmt"

// checkConservation is G3: what was sent is settled, as its policy says, and nothing else is.
func (c *keyCheck) checkConservation() {
	next := c.model.opts.Base
	for _, msg := range c.run.messages {
		if c.model.anySent {
			if msg.sent == never {
				c.fail(G3, msg, "message %d was never sent", msg.seq)
				continue
			}
		} else if c.model.opts.Order == BySeq {
			if msg.seq < c.model.opts.Base {
				c.fail(G3, msg, "message %d lies before the first number, %d", msg.seq, c.model.opts.Base)
			} else if msg.seq > next {
				c.fail(G3, msg, "messages %d to %d, before message %d, never started", next, msg.seq-1, msg.seq)
			}
			next = max(next, msg.seq+1)
		}
		c.checkSettled(msg)
	}
}

func (c *keyCheck) checkSettled(msg *message) {
	if msg.left != never {
		if o := final(msg, c.events); o.settles() && c.model.opts.AckDelay == 0 && msg.copies < 2 {
			c.fail(G4, msg, "message %d was %v and is still on the queue", msg.seq, o)
		}
		return
	}
	o := final(msg, c.events)
	if o.frees() {
		if c.model.opts.Expect != nil && o.settles() {
			if want := c.model.opts.Expect(c.run.key, msg.seq); want != Open && want != o {
				c.fail(G3, msg, "message %d was %v, its policy demands %v", msg.seq, o, want)
			}
		}
		return
	}
	if c.model.opts.Incomplete || len(msg.attempts) == 0 && c.model.anySent && !msg.known {
		return
	}
	c.fail(G3, msg, "message %d is lost: %s", msg.seq, c.lost(msg, o))
}

func (c *keyCheck) lost(msg *message, o Outcome) string {
	if len(msg.attempts) == 0 {
		return "it never started"
	}
	last := msg.attempts[len(msg.attempts)-1]
	at := c.events.at(last.start)
	switch {
	case o == GivenBack:
		return fmt.Sprintf("it was given back after its start at +%v and never came again", at)
	case o == Failed:
		return fmt.Sprintf("its last attempt, from +%v, failed and was not retried", at)
	case last.taskEnd != never:
		return fmt.Sprintf("its process was killed after its start at +%v and it never came again", at)
	}
	return fmt.Sprintf("no outcome of its last attempt, from +%v, is recorded", at)
}
