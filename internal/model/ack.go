package model

// ackStep: the ack of entry i is written and the client counts the message as settled. The broker learns it later, in
// the order written; over a dead connection perhaps never.
func (x *expansion) ackStep(i int, deadLetter bool, done StepKind) {
	c, h := x.c, x.s.Held[i]
	t := *x.s
	t.remove(i)
	t.Acked |= 1 << h.Msg
	t.AckLost &^= 1 << h.Msg
	if deadLetter {
		t.DeadSettled |= 1 << h.Msg
	}
	if h.Locked {
		t.Truth[h.Msg] = AckWritten
		t.Acks[t.NAcks] = h.Msg
		t.NAcks++
	}
	x.add(t, done, h.Proc, h.Msg)
	if h.Locked && !c.keeps(ClauseAckBeforeNextStart) {
		u := t
		u.NAcks--
		u.Acks[u.NAcks] = 0
		u.Truth[h.Msg] = AckHeld
		u.Acked &^= 1 << h.Msg
		x.add(u, done, h.Proc, h.Msg)
	}
	if h.Phase != PhaseCommitHangs { // the write blocks
		x.hangFaults(*x.s, i, deadLetter)
	}
}

// ackSteps are the broker's with acks: it processes the oldest, or notices that their connection is dead.
func (x *expansion) ackSteps() {
	c, s := x.c, x.s
	for i := 0; i < int(s.NAcks); i++ {
		t := *s
		m := t.Acks[i]
		t.removeAck(i)
		t.Truth[m] = Gone
		x.add(t, StepAckProcessed, 0, m)
		if c.keeps(ClauseAckInKeyOrder) {
			break
		}
	}
	if s.NAcks > 0 && !c.noticesWhole() && (s.AcksDead || s.Proc[0].ConnDead || s.Proc[1].ConnDead) {
		t := *s
		t.AcksDead = true
		c.returnDeadAcks(&t)
		x.add(t, StepAcksLost, 0, s.Acks[0])
	}
	if c.keeps(ClauseAckBeforeNextStart) {
		return
	}
	for i := range c.Keys {
		if s.Truth[i] == AckHeld {
			t := *s
			t.Truth[i] = AckWritten
			t.Acks[t.NAcks] = uint8(i)
			t.NAcks++
			t.Acked |= 1 << i
			x.add(t, StepAckFlushed, 0, uint8(i))
		}
	}
}

// acksFlushed says whether p may close its connection cleanly. Over a dead one there is nothing to wait for.
func (c *Config) acksFlushed(s *State, p uint8) bool {
	return s.NAcks == 0 || s.Proc[p].ConnDead || !c.keeps(ClauseCloseFlushesAcks)
}

func (s *State) removeAck(i int) {
	copy(s.Acks[i:], s.Acks[i+1:s.NAcks])
	s.NAcks--
	s.Acks[s.NAcks] = 0
	if s.NAcks == 0 {
		s.AcksDead = false
	}
}

// loseAcks: the client learns that the connection of its acks is lost. Those the broker has not processed are in doubt.
func (c *Config) loseAcks(t *State, p uint8) {
	if !c.AsyncAcks {
		return
	}
	for i := range c.Keys {
		if t.Acked>>i&1 == 1 && t.Truth[i] != Gone {
			t.AckLost |= 1 << i
		}
		if t.Truth[i] == AckHeld {
			t.Truth[i] = OrphanLate
		}
	}
	t.Acked = 0
	t.AcksDead = t.NAcks > 0
}

// returnDeadAcks: the broker has noticed the dead connection; the acks it has not processed are lost.
func (c *Config) returnDeadAcks(t *State) {
	if !t.AcksDead {
		return
	}
	for t.NAcks > 0 {
		t.Truth[t.Acks[0]] = Available
		t.removeAck(0)
	}
}

// returnAcks: the client closes the connection; over a live one, what the broker has not processed by then is lost at
// once. It says whether something may stay locked.
func (c *Config) returnAcks(t *State, p uint8) (lost bool) {
	if !c.AsyncAcks {
		return false
	}
	dead := t.Proc[p].ConnDead
	c.loseAcks(t, p)
	if !dead {
		c.returnDeadAcks(t)
		return false
	}
	return t.NAcks > 0
}
