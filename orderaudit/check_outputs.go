package orderaudit

// checkOutputs: the sends of a message come out with its settlement, each once. Too few are a loss (G3), too many are
// duplicates (G4).
func (c *keyCheck) checkOutputs() {
	if c.model.opts.Outputs == nil {
		return
	}
	for _, msg := range c.run.messages {
		times := map[int]int{}
		for _, pos := range msg.outputs {
			times[c.model.records[pos].N]++
		}
		want := c.model.opts.Outputs(c.run.key, msg.seq)
		for n := range times {
			if n < 1 || n > want {
				c.fail(G3, msg, "output %d of message %d came out: it has %d", n, msg.seq, want)
			}
		}
		least, most := c.commits(msg)
		for n := 1; n <= want; n++ {
			switch {
			case times[n] < least:
				c.fail(G3, msg, "output %d of message %d is lost: the message was settled", n, msg.seq)
			case least == 0 && most == 1 && times[n] != times[1] && !c.model.opts.OutputsRepeat:
				c.fail(G3, msg, "output %d of message %d came out %d times, output 1 %d times: one commit sends all or none",
					n, msg.seq, times[n], times[1])
			case times[n] > most && !c.model.opts.OutputsRepeat:
				c.fail(G4, msg, "output %d of message %d came out %d times: at most %d commits sent it", n, msg.seq, times[n], most)
			}
		}
	}
}

// commits is how often the message's sends were committed, at least and at most.
func (c *keyCheck) commits(msg *message) (least, most int) {
	switch final(msg, c.events) {
	case Settled:
		least, most = 1, 1
	case Unknown:
		least, most = 0, 1
	}
	if c.model.opts.AckDelay == 0 && msg.copies < 2 {
		return least, most // a commit that is done is final: an earlier attempt cannot have committed
	}
	most = 0
	for _, a := range msg.attempts {
		if o := a.asOf(never - 1); o == Settled || o == Unknown {
			most++
		}
	}
	return least, most
}
