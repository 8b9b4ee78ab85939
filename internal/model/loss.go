package model

// fire: a message of key k has left process p unsettled; the rule begins for k.
func (c *Config) fire(t *State, p, k uint8) {
	if !c.keeps(ClauseGiveBack) {
		return
	}
	t.Proc[p].Rule = true
	t.Proc[p].Keys |= 1 << k
	for i := range t.Held[:t.NHeld] {
		h := &t.Held[i]
		if h.Proc == p && h.Phase == PhaseWaiting && c.key(h.Msg) == k {
			h.GiveBack = true
		}
	}
}

// loss: process p has learned of a loss now. Without ReturnDelay everything is back at once; with it the deadline moves
// and from now on covers what was lost before. counts is false where a dropped clause overlooks the loss.
func (c *Config) loss(t *State, p uint8, counts bool) {
	if !c.ReturnDelay {
		for i := range c.Keys {
			if t.Truth[i] == OrphanLate || t.Truth[i] == Orphan {
				t.Truth[i] = Available
			}
		}
		c.returnDeadAcks(t)
		for i := range t.Held[:t.NHeld] {
			h := &t.Held[i]
			if h.Link == LinkLost && h.Locked {
				h.Locked = false
				t.Truth[h.Msg] = Available
			}
			h.Late = false
		}
		return
	}
	if !counts || !c.keeps(ClauseLastLoss) && t.Proc[p].Deadline {
		return
	}
	t.Proc[p].Deadline, t.Proc[p].Rule = true, true
	for i := range c.Keys {
		if t.Truth[i] == OrphanLate {
			t.Truth[i] = Orphan
		}
	}
	for i := range t.Held[:t.NHeld] {
		t.Held[i].Late = false
	}
}

// drop removes entry i, whose session is lost; the lock, if there is one, stays at the broker.
func (c *Config) drop(t *State, i int) {
	if t.Held[i].Locked {
		t.Truth[t.Held[i].Msg] = OrphanLate
	}
	t.remove(i)
}

// leave: entry i of x.s is removed from t already and was not settled.
func (x *expansion) leave(t *State, i int, lost bool) {
	h := &x.s.Held[i]
	x.c.fire(t, h.Proc, x.c.key(h.Msg))
	if lost {
		x.c.loss(t, h.Proc, true)
	}
}

// noticeStep: the client learns that the session of entry i is dead. A running task stays as a zombie.
func (x *expansion) noticeStep(i int) {
	h := &x.s.Held[i]
	if h.Link != LinkDead || x.s.Proc[h.Proc].ConnDead || h.Never {
		return
	}
	t := *x.s
	if h.Phase == PhaseRunning || h.Phase == PhasePublished {
		t.Held[i].Link, t.Held[i].Late = LinkLost, true
	} else {
		x.c.drop(&t, i)
	}
	x.leave(&t, i, true)
	x.add(t, StepLossNoticed, h.Proc, h.Msg).Fires = true
}

// connectionSteps: the links die together, and the client learns of it as one loss.
func (x *expansion) connectionSteps(p uint8) {
	c, s := x.c, x.s
	g := &s.Proc[p]
	if x.canFault(FaultCutAll) && g.active() && s.count(p) > 1 {
		t := *s
		if c.cutLinks(&t, p) {
			x.fault(t, StepCutAll, p, 0)
		}
	}
	if x.canFault(FaultConnection) && (g.active() || g.leaving()) && !g.ConnDead && !g.ConnDown {
		t := *s
		c.cutLinks(&t, p)
		t.Proc[p].ConnDead = true
		x.fault(t, StepCutConnection, p, 0)
	}
	dead := 0
	for i := range s.Held[:s.NHeld] {
		if s.Held[i].Proc == p && s.Held[i].Link == LinkDead {
			dead++
		}
	}
	if g.ConnDead {
		t := *s
		c.loseConnection(&t, p)
		x.add(t, StepConnectionLossNoticed, p, 0).Fires = true
	} else if dead > 1 {
		t := *s
		for i := 0; i < int(t.NHeld); {
			h := &t.Held[i]
			if h.Proc != p || h.Link != LinkDead {
				i++
				continue
			}
			c.fire(&t, p, c.key(h.Msg))
			if h.idle() {
				c.drop(&t, i)
				continue
			}
			h.Link, h.Late = LinkLost, true
			i++
		}
		c.loss(&t, p, true)
		x.add(t, StepLossesNoticed, p, 0).Fires = true
	}
}

// cutLinks: all links of p die; it says whether a held message is touched.
func (c *Config) cutLinks(t *State, p uint8) (touched bool) {
	for i := range t.Held[:t.NHeld] {
		if t.Held[i].Proc == p && t.Held[i].Link == LinkUp {
			t.Held[i].Link = LinkDead
			touched = true
		}
	}
	g := &t.Proc[p]
	for i := range g.Buffer[:g.NBuffered] {
		g.Buffer[i].Link = LinkDead
	}
	switch g.Reader {
	case ReaderWaiting:
		if c.Prefetch == 0 { // else it waits for the prefetch and notices nothing
			g.Reader = ReaderLost
		}
	case ReaderTook:
		t.Truth[g.Taken] = OrphanUnknown
		g.Reader, g.Taken = ReaderLost, 0
	}
	return touched
}

// loseConnection: the client learns that the connection is lost: every key is blocked, every session gone, the wait is
// for the whole queue.
func (c *Config) loseConnection(t *State, p uint8) {
	g := &t.Proc[p]
	for _, h := range t.Held[:t.NHeld] {
		if h.Proc == p && h.Link != LinkLost {
			c.fire(t, p, c.key(h.Msg))
		}
	}
	switch g.Reader {
	case ReaderLost:
		g.Reader = ReaderIdle
		c.forgetUnknown(t)
	case ReaderWaiting, ReaderDeaf, ReaderDeafHolding: // closing the lost connection ends it
		if g.Reader == ReaderDeafHolding {
			t.Truth[g.Taken] = OrphanLate
		}
		g.Reader, g.Taken = ReaderIdle, 0
	}
	for i := 0; i < int(t.NHeld); {
		h := &t.Held[i]
		switch {
		case h.Proc != p || h.Link == LinkLost:
			i++
		case h.Phase == PhaseRunning, h.Phase == PhasePublished, h.Never && !c.keeps(ClauseCloseEndsCalls):
			h.Link, h.Late, h.GiveBack = LinkLost, true, false
			i++
		default:
			c.drop(t, i)
		}
	}
	c.dropPrefetch(t, p)
	c.loseAcks(t, p)
	g.ConnDead, g.ConnDown = false, true
	if c.keeps(ClauseGiveBack) && c.keeps(ClauseLostConnectionWholeQueue) {
		g.Rule, g.Whole, g.Keys = true, true, c.allKeys()
	}
	c.loss(t, p, true)
}
