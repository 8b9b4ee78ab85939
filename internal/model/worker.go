package model

// workerSteps are those of the task of held message i: start, fail, end as a zombie, settle.
func (x *expansion) workerSteps(i int) {
	h := &x.s.Held[i]
	switch h.Phase {
	case PhaseWaiting, PhasePaused:
		x.startStep(i)
	case PhaseRunning:
		if h.Link == LinkLost {
			x.zombieStep(i)
			return
		}
		if x.c.TaskFails {
			t := *x.s
			t.Held[i].Phase = PhasePaused
			x.pauseWhileLeaving(&t, i)
			x.add(t, StepTaskFails, h.Proc, h.Msg).Policy = true
		}
		x.settleSteps(i, false)
		x.deadLetterSteps(i)
	case PhasePublished:
		if h.Link == LinkLost {
			x.zombieStep(i)
			return
		}
		x.publishedSteps(i)
	case PhaseCommitHangs:
		x.hungCommitSteps(i)
	case PhaseRollbackHangs:
		x.hungRollbackSteps(i)
	}
}

// pauseWhileLeaving: a process that was told to end waits for no retry. Stop gives the key back, Shutdown has given back
// the rest of it already.
func (x *expansion) pauseWhileLeaving(t *State, i int) {
	p, k := t.Held[i].Proc, x.c.key(t.Held[i].Msg)
	switch t.Proc[p].Mode {
	case ModeActive, ModeOusted:
	case ModeFinish:
		markIdle(t, p, func(m uint8) bool { return x.c.key(m) == k })
		t.Proc[p].Rule = true
		t.Proc[p].Keys |= 1 << k
	default:
		t.Held[i].GiveBack = true
	}
}

// startStep starts the task of entry i, or its next attempt, if nothing forbids it.
func (x *expansion) startStep(i int) {
	c, s := x.c, x.s
	h := &s.Held[i]
	g := &s.Proc[h.Proc]
	switch {
	case !g.active() && g.Mode != ModeFinish,
		h.Link == LinkLost,
		h.GiveBack && (h.Phase == PhasePaused || c.keeps(ClauseBlock)),
		g.Rule && c.keeps(ClauseDrain) && c.mustClose(s, h.Proc),
		c.LockProbes && g.ProbeOld && c.keeps(ClauseProbeBeforeStart),
		!c.isHead(s, i),
		s.workers(h.Proc) >= c.Workers:
		return
	}
	t := *s
	t.Held[i].Phase, t.Held[i].GiveBack = PhaseRunning, false
	kind := StepStart
	if h.Phase == PhasePaused {
		kind = StepRestart
	}
	r := x.add(t, kind, h.Proc, h.Msg)
	r.State.Started |= 1 << h.Msg
	r.Violation = c.checkStart(s, i)
}

// zombieStep ends a task whose session is known lost.
func (x *expansion) zombieStep(i int) {
	c, h := x.c, &x.s.Held[i]
	t := *x.s
	t.remove(i)
	if h.Locked {
		t.Truth[h.Msg] = Orphan
		if h.Late || !t.Proc[h.Proc].Deadline {
			t.Truth[h.Msg] = OrphanLate
		}
	}
	fires := !c.keeps(ClauseZombieGoes) && t.Proc[h.Proc].Mode != ModeEnded
	if fires {
		x.leave(&t, i, t.Truth[h.Msg] == OrphanLate)
	}
	x.add(t, StepZombieEnds, h.Proc, h.Msg).Fires = fires
}

// settle removes m from the queue.
func (c *Config) settle(t *State, m uint8, deadLetter bool) {
	t.Truth[m] = Gone
	if deadLetter {
		c.settledByDeadLetter(t, m)
	}
}

// settleSteps are the outcomes of the commit of entry i, with or without its dead letter.
func (x *expansion) settleSteps(i int, deadLetter bool) {
	c, s := x.c, x.s
	h := s.Held[i]
	if c.LockProbes && s.Proc[h.Proc].ProbeOld && c.keeps(ClauseProbeBeforeCommit) {
		return
	}
	base := *s // a dead letter sent outside the unit of work is there whatever the commit does
	if deadLetter && c.AtomicSends && !c.keeps(ClauseSendWithCommit) {
		base.addCopy(h.Msg)
	}
	done := StepCommit
	if deadLetter {
		done = StepDeadLetter
	}
	if c.AsyncAcks {
		x.ackStep(i, deadLetter, done)
		return
	}
	t := base
	switch {
	case h.Link == LinkDead:
		c.drop(&t, i)
		if s.Proc[h.Proc].ConnDead {
			c.loseConnection(&t, h.Proc)
		}
		x.leave(&t, i, true)
		x.add(t, StepCommitLinkDead, h.Proc, h.Msg).Fires = true
		return
	case !h.Locked:
		t.remove(i)
		x.leave(&t, i, false)
		x.add(t, StepCommitStale, h.Proc, h.Msg).Fires = true
		return
	}
	t.remove(i)
	c.settle(&t, h.Msg, deadLetter)
	x.add(t, done, h.Proc, h.Msg)
	if x.canFault(FaultCommit) {
		t = base
		t.remove(i)
		c.brokerRollsBack(&t, h.Msg)
		x.leave(&t, i, false)
		x.fault(t, StepCommitRolledBack, h.Proc, h.Msg).Fires = true
		t = base
		t.remove(i)
		c.settle(&t, h.Msg, deadLetter)
		x.leave(&t, i, true)
		x.fault(t, StepCommitDoneReplyLost, h.Proc, h.Msg).Fires = true
		t = base
		c.drop(&t, i)
		x.leave(&t, i, true)
		x.fault(t, StepCommitNotDoneLost, h.Proc, h.Msg).Fires = true
	}
	x.hangFaults(base, i, deadLetter)
}
