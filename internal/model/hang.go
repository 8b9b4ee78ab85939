package model

// hangFaults: the commit of entry i overruns its CallTimeout, to end later or never.
func (x *expansion) hangFaults(base State, i int, deadLetter bool) {
	c, h := x.c, x.s.Held[i]
	if x.canFault(FaultHang) {
		t := base
		if c.keeps(ClauseCallReturned) {
			t.Held[i].Phase, t.Held[i].DeadLetter = PhaseCommitHangs, deadLetter
			x.fault(t, StepCommitHangs, h.Proc, h.Msg)
		} else {
			t.remove(i)
			t.Truth[h.Msg] = OrphanHung
			x.leave(&t, i, true)
			x.fault(t, StepCommitHangs, h.Proc, h.Msg).Fires = true
		}
	}
	if x.canFault(FaultNever) && c.keeps(ClauseCallReturned) {
		t := base
		t.Held[i].Phase, t.Held[i].DeadLetter, t.Held[i].Never = PhaseCommitHangs, deadLetter, true
		x.fault(t, StepCommitHangs, h.Proc, h.Msg)
	}
}

// hungCommitSteps are the ends of a commit that overran its CallTimeout. One that never returns ends only when its
// connection was closed.
func (x *expansion) hungCommitSteps(i int) {
	c, s := x.c, x.s
	h := s.Held[i]
	if c.AsyncAcks && h.Link != LinkLost && !h.Never {
		x.ackStep(i, h.DeadLetter, StepHungDone)
		return
	}
	if h.Link == LinkUp && !h.Never {
		if h.Locked {
			t := *s
			t.remove(i)
			c.settle(&t, h.Msg, h.DeadLetter)
			x.add(t, StepHungDone, h.Proc, h.Msg)
		}
		t := *s
		t.remove(i)
		if h.Locked {
			t.Truth[h.Msg] = Available
		}
		x.leave(&t, i, false)
		x.add(t, StepHungRolledBack, h.Proc, h.Msg).Fires = true
	}
	if h.Link == LinkLost && (!h.Never || c.keeps(ClauseCloseEndsCalls)) {
		t := *s
		c.drop(&t, i)
		x.leave(&t, i, h.Locked)
		x.add(t, StepHungLost, h.Proc, h.Msg).Fires = true
	}
}

// rollbackHangFault: the Rollback that gives back entry i overruns its CallTimeout. The entry stays in its key.
func (x *expansion) rollbackHangFault(i int) {
	h := &x.s.Held[i]
	if h.Link != LinkUp || !x.canFault(FaultRollbackHang) {
		return
	}
	t := *x.s
	if x.c.keeps(ClauseCallReturned) {
		t.Held[i].Phase, t.Held[i].GiveBack = PhaseRollbackHangs, false
	} else {
		x.c.drop(&t, i)
	}
	x.fault(t, StepRollbackHangs, h.Proc, h.Msg)
}

// hungRollbackSteps are the ends of such a Rollback: its message leaves unsettled only now.
func (x *expansion) hungRollbackSteps(i int) {
	c, s := x.c, x.s
	h := s.Held[i]
	switch h.Link {
	case LinkDead: // noticeStep ends it
		return
	case LinkLost:
		t := *s
		c.drop(&t, i)
		x.leave(&t, i, h.Locked)
		x.add(t, StepHungRollbackFails, h.Proc, h.Msg).Fires = true
		return
	}
	if h.Locked {
		t := *s
		t.Held[i].Locked = false
		t.Truth[h.Msg] = Available
		x.add(t, StepHungTakesEffect, h.Proc, h.Msg)
	}
	t := *s
	t.remove(i)
	if h.Locked {
		t.Truth[h.Msg] = Available
	}
	x.leave(&t, i, false)
	x.add(t, StepHungRollbackDone, h.Proc, h.Msg).Fires = true
	t = *s
	c.drop(&t, i)
	x.leave(&t, i, true)
	x.add(t, StepHungRollbackFails, h.Proc, h.Msg).Fires = true
}

// forceCloseStep closes the connection to end a Receive that does not end after its context did, or, from outside, a
// commit that never returns.
func (x *expansion) forceCloseStep(p uint8) {
	c, s := x.c, x.s
	deaf := s.Proc[p].Reader == ReaderDeaf || s.Proc[p].Reader == ReaderDeafHolding
	if !(deaf && c.keeps(ClauseReceiveOverrunCloses)) && !(c.OperatorCloses && c.closable(s, p)) {
		return
	}
	t := *s
	c.closeConnection(&t, p)
	if t.Proc[p].Mode != ModeEnded {
		t.Proc[p].Rule, t.Proc[p].Whole, t.Proc[p].Keys = true, true, c.allKeys()
	}
	x.add(t, StepForceClose, p, 0).Fires = true
}

// closable says whether a call of p that never returns runs over a connection that was not closed yet.
func (c *Config) closable(s *State, p uint8) bool {
	for i := range s.Held[:s.NHeld] {
		if h := &s.Held[i]; h.Proc == p && h.Never && h.Link != LinkLost {
			return true
		}
	}
	return false
}
