package model

// mustClose says whether process p has to close its connection to give back.
func (c *Config) mustClose(s *State, p uint8) bool {
	if c.givesBackByRollback() {
		return false
	}
	return s.anyGiveBack(p) || c.Prefetch > 0 && c.keeps(ClauseCloseEvenIfEmpty) && s.Proc[p].Rule && !s.Proc[p].ConnDown
}

// giveBackSteps are those of the rule at work: give back, newest first, or close; then read on.
func (x *expansion) giveBackSteps(p uint8) {
	c, s := x.c, x.s
	g := &s.Proc[p]
	if !g.Rule || g.Reader != ReaderIdle && c.keeps(ClauseReceiveEnded) {
		return
	}
	if c.ReadDuringWait && g.Deadline && g.Mode == ModeActive {
		return
	}
	switch {
	case c.mustClose(s, p):
		timeout := c.keeps(ClauseDrainTimeout) && s.anyNever(p)
		if c.keeps(ClauseDrain) && s.worthWaiting(p) > 0 && !timeout || !c.acksFlushed(s, p) {
			return
		}
		t := *s
		c.closeConnection(&t, p)
		x.add(t, StepCloseConnection, p, 0)
	case s.anyGiveBack(p):
		x.rollbackSteps(p)
	case !g.Deadline && g.Mode != ModeEnded && g.Mode != ModeDrain:
		t := *s
		n := &t.Proc[p]
		n.Rule, n.Whole, n.Keys, n.ConnDown = false, false, 0, false
		x.add(t, StepReadOn, p, 0)
	}
}

// rollbackSteps give back, of each key, the newest message that is to go.
func (x *expansion) rollbackSteps(p uint8) {
	var done uint8
	for i := int(x.s.NHeld) - 1; i >= 0; i-- {
		h := &x.s.Held[i]
		if k := x.c.key(h.Msg); h.Proc == p && h.GiveBack && done>>k&1 == 0 {
			done |= 1 << k
			x.rollbackStep(p, i)
		}
	}
}

func (x *expansion) rollbackStep(p uint8, i int) {
	c, s := x.c, x.s
	h := s.Held[i]
	t := *s
	if h.Link != LinkUp {
		c.drop(&t, i)
		c.loss(&t, p, c.keeps(ClauseRollbackFailedIsLoss))
		x.add(t, StepRollbackFails, p, h.Msg)
		return
	}
	if h.Locked {
		t.Truth[h.Msg] = Available
		if !c.RollbackInPlace {
			c.toTail(&t, h.Msg)
		}
		if c.CountInnocents {
			t.Innocents++
		}
	}
	t.remove(i)
	x.add(t, StepGiveBack, p, h.Msg)
	x.rollbackHangFault(i)
}

// closeConnection gives everything of p back at once. What sits behind a dead link stays locked: a loss. Tasks that run
// become zombies, calls that hang end.
func (c *Config) closeConnection(t *State, p uint8) {
	g := &t.Proc[p]
	lost := false
	for i := 0; i < int(t.NHeld); {
		h := &t.Held[i]
		if h.Proc != p {
			i++
			continue
		}
		if h.Link == LinkUp && h.Locked {
			h.Locked = false
			t.Truth[h.Msg] = Available
			if c.CountInnocents {
				t.Innocents++
			}
		}
		lost = lost || h.Locked
		if h.idle() || h.Phase == PhaseRollbackHangs {
			c.drop(t, i)
			continue
		}
		h.Late = h.Late || h.Link != LinkLost
		h.Link, h.GiveBack = LinkLost, false
		i++
	}
	if g.Reader == ReaderDeafHolding {
		t.Truth[g.Taken] = Available
	}
	if g.Reader == ReaderDeaf || g.Reader == ReaderDeafHolding {
		g.Reader, g.Taken = ReaderIdle, 0
	}
	if g.Reader == ReaderLost && g.ConnDead {
		g.Reader = ReaderIdle
		c.forgetUnknown(t)
		lost = true
	}
	lost = c.returnPrefetch(t, p) || lost
	lost = c.returnAcks(t, p) || lost
	g.ConnDead = false
	g.ConnDown = c.opensAgain()
	if lost {
		if c.ReadDuringWait || c.OwnReadLoop { // the close touches every key: none may be read meanwhile
			g.Whole = true
		}
		c.loss(t, p, c.keeps(ClauseRollbackFailedIsLoss))
	}
}

// opensAgain says whether the model tells a closed connection from an open one.
func (c *Config) opensAgain() bool { return c.Prefetch > 0 || c.can(FaultConnection) }

// waitStep: ReturnDelay has passed since the last loss; the broker has taken back what the wait covers.
func (x *expansion) waitStep(p uint8) {
	c, s := x.c, x.s
	if !s.Proc[p].Deadline {
		return
	}
	t := *s
	t.Proc[p].Deadline = false
	for i := range c.Keys {
		if t.Truth[i] == Orphan {
			t.Truth[i] = Available
		}
	}
	c.returnDeadAcks(&t)
	for i := range t.Held[:t.NHeld] {
		h := &t.Held[i]
		if h.Proc == p && h.Link == LinkLost && h.Locked && !h.Late {
			h.Locked = false
			t.Truth[h.Msg] = Available
		}
	}
	x.add(t, StepDeadlinePasses, p, 0)
}
