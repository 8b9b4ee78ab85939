package model

// brokerStepsOf are the broker's steps with held message i: it notices that the session is dead, takes the message back
// silently, or the link dies.
func (x *expansion) brokerStepsOf(i int) {
	c, s := x.c, x.s
	h := s.Held[i]
	if h.Link != LinkUp {
		if h.Locked {
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
	for i := range c.Keys {
		m := uint8(i)
		switch s.Truth[m] {
		case Orphan, OrphanLate, OrphanUnknown:
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
	x.add(t, StepReceiveEmpty, p, 0)
}
