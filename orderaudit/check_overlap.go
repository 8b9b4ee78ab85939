package orderaudit

// checkOverlap is G2: when a starts, no other task of its key may run. Tasks of another instance may, if that instance was lost
// in the meantime, its task has outlived the takeover delay, and its message is not committed after all.
func (c *keyCheck) checkOverlap(a *attempt) {
	still := c.running[:0]
	for _, other := range c.running {
		if other.taskEnd > a.start {
			still = append(still, other)
		}
	}
	c.running = still
	for _, other := range c.running {
		if other.instance == a.instance {
			c.fail(G2, a.msg, "%s starts while %s runs in the same instance", c.tell(a), c.tell(other))
			continue
		}
		loss := c.events.lossBetween(other.instance, other.start, a.start)
		if loss == nil {
			c.fail(G2, a.msg, "%s starts while %s runs, and no loss of %s is recorded in between",
				c.tell(a), c.tell(other), other.instance)
			continue
		}
		if waited, delay := c.events.at(a.start)-c.events.at(loss.from), c.events.takeover[a.instance]; waited < delay {
			c.fail(G2, a.msg, "%s starts while %s runs, %v after the loss of %s: it takes over after %v",
				c.tell(a), c.tell(other), waited, other.instance, delay)
		}
		if c.model.opts.AckDelay == 0 && other.outcome.settles() && other.end != never && other.end > a.start {
			c.fail(G2, other.msg, "%s overlaps %s and was %v after the loss of %s", c.tell(other), c.tell(a), other.outcome, other.instance)
		}
	}
}
