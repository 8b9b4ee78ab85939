package model

// brokerStepsOf are the broker's steps with held message i: it notices that the session is dead, takes the message back
// silently, or the link dies.
func (x *expansion) brokerStepsOf(i int) {
	c, s := x.c, x.s
	h := s.Held[i]
	if h.Link != LinkUp {
		if h.Locked && !c.noticesWhole() {
			t := *s
			t.Held[i].Locked = false
			t.Truth[h.Msg] = Available
			x.add(t, StepBrokerNotices, h.Proc, h.Msg)
		}
		return
	}
	if h.Locked && x.canFault(FaultSilent) {
		t := *s
		t.Held[i].Locked = false
		c.brokerRollsBack(&t, h.Msg)
		x.fault(t, StepSilentRollback, h.Proc, h.Msg)
	}
	if x.canFault(FaultCut) {
		t := *s
		t.Held[i].Link = LinkDead
		x.fault(t, StepCut, h.Proc, h.Msg)
	}
	if h.Locked && h.Never { // the call never returns, but the broker may have got it
		t := *s
		t.Held[i].Locked = false
		c.settle(&t, h.Msg, h.DeadLetter)
		x.add(t, StepHungTakesEffect, h.Proc, h.Msg)
	}
}

// brokerRollsBack makes m available again, at its place unless the environment is worse.
func (c *Config) brokerRollsBack(t *State, m uint8) {
	t.Truth[m] = Available
	if c.env(EnvRollbackToTail) {
		c.toTail(t, m)
	}
}

// orphanSteps are those with messages no process holds: the broker notices the dead session, an abandoned commit ends.
func (x *expansion) orphanSteps() {
	c, s := x.c, x.s
	if c.noticesWhole() {
		x.brokerNoticesConnection()
	}
	for i := range c.Keys {
		m := uint8(i)
		switch s.Truth[m] {
		case Orphan, OrphanLate, OrphanUnknown:
			if c.noticesWhole() {
				continue
			}
			t := *s
			t.Truth[m] = Available
			x.add(t, StepBrokerNoticesOrphan, 0, m)
		case OrphanHung:
			t := *s
			t.Truth[m] = Gone
			x.add(t, StepAbandonedDone, 0, m)
			t = *s
			t.Truth[m] = Available
			x.add(t, StepAbandonedRolledBack, 0, m)
		}
	}
}

// noticesWhole says whether the broker takes back what a dead connection held all at once, and from then on processes no
// ack of it.
func (c *Config) noticesWhole() bool { return c.OneConnection && !c.env(EnvAckAfterReturn) }

// brokerNoticesConnection: the broker learns that the connection is dead.
func (x *expansion) brokerNoticesConnection() {
	c, t := x.c, *x.s
	for i := range t.Held[:t.NHeld] {
		if h := &t.Held[i]; h.Link != LinkUp && h.Locked {
			h.Locked = false
			t.Truth[h.Msg] = Available
		}
	}
	for p := range t.Proc {
		g := &t.Proc[p]
		for i := range g.Buffer[:g.NBuffered] {
			if b := &g.Buffer[i]; b.Link != LinkUp && b.Locked {
				b.Locked = false
				t.Truth[b.Msg] = Available
			}
		}
		t.AcksDead = t.AcksDead || g.ConnDead && t.NAcks > 0
	}
	for i := range c.Keys {
		if t.Truth[i] == Orphan || t.Truth[i] == OrphanLate || t.Truth[i] == OrphanUnknown {
			t.Truth[i] = Available
		}
	}
	c.returnDeadAcks(&t)
	if t != *x.s {
		x.add(t, StepBrokerNoticesConnection, 0, 0)
	}
}

// ghostSteps are those of the last Receive of a dead process: it may still take a message.
func (x *expansion) ghostSteps(p uint8) {
	s := x.s
	if s.Proc[p].Reader != ReaderWaiting {
		return
	}
	if m, ok := x.c.nextAvailable(s); ok && x.c.Prefetch == 0 {
		t := *s
		t.Truth[m] = OrphanLate
		t.Proc[p].Reader = ReaderIdle
		x.add(t, StepGhostReceiveTakes, p, m)
	}
	t := *s
	t.Proc[p].Reader = ReaderIdle
	x.add(t, StepGhostReceiveEnds, p, 0)
}
