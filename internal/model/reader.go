package model

// stopsReading says whether the rule keeps process p from issuing a Receive.
func (c *Config) stopsReading(g *Process) bool {
	return g.Rule && c.keeps(ClauseStopReading) && !(c.ReadDuringWait && g.Deadline && !g.Whole) && !(c.OwnReadLoop && !g.Whole)
}

// readerSteps are the steps of the read loop: issue a Receive, get its reply, end it, notice that it was lost.
func (x *expansion) readerSteps(p uint8) {
	c, s := x.c, x.s
	g := &s.Proc[p]
	stops := c.stopsReading(g)
	current := !c.LockProbes || !g.ProbeOld || !c.keeps(ClauseProbeBeforeReceive)
	if current && g.active() && !stops && g.Reader == ReaderIdle && s.count(p) < c.MaxInFlight && !s.full() && (!g.ConnDead || c.Prefetch > 0) {
		t := *s
		t.Proc[p].Reader = ReaderWaiting
		x.add(t, StepReceiveIssued, p, 0)
	}
	x.pushStep(p)
	switch g.Reader {
	case ReaderWaiting:
		if c.Prefetch > 0 {
			x.receiveFromPrefetch(p)
		} else if m, ok := c.nextAvailable(s); ok && !s.full() {
			t := *s
			t.Truth[m] = Locked
			t.Proc[p].Reader, t.Proc[p].Taken = ReaderTook, m
			x.add(t, StepBrokerTakes, p, m)
			if x.canFault(FaultTake) {
				t := *s
				t.Truth[m] = OrphanUnknown
				t.Proc[p].Reader = ReaderLost
				x.fault(t, StepReceiveLost, p, m)
			}
		}
		if stops || c.OwnReadLoop || !g.active() || (c.ReadDuringWait && g.Rule && !g.Deadline) {
			t := *s
			t.Proc[p].Reader = ReaderIdle
			x.add(t, StepReceiveEmpty, p, 0)
		}
		if x.canFault(FaultReceiveNever) {
			t := *s
			t.Proc[p].Reader = ReaderDeaf
			x.fault(t, StepReceiveDeaf, p, 0)
		}
	case ReaderTook:
		if x.canFault(FaultTake) {
			t := *s
			t.Truth[g.Taken] = OrphanUnknown
			t.Proc[p].Reader, t.Proc[p].Taken = ReaderLost, 0
			x.fault(t, StepReceiveLost, p, g.Taken)
		}
		if x.canFault(FaultReceiveNever) {
			t := *s
			t.Proc[p].Reader = ReaderDeafHolding
			x.fault(t, StepReceiveDeaf, p, 0)
		}
		if !s.full() {
			t := *s
			t.Proc[p].Reader, t.Proc[p].Taken = ReaderIdle, 0
			c.receive(&t, p, Held{Msg: g.Taken, Proc: p, Locked: true})
			x.add(t, StepReceiveReturns, p, g.Taken)
		}
	case ReaderLost:
		if g.ConnDead { // the whole connection is dead: it is noticed as a whole
			return
		}
		t := *s
		t.Proc[p].Reader = ReaderIdle
		c.forgetUnknown(&t)
		if c.keeps(ClauseLostReceiveWholeQueue) {
			t.Proc[p].Rule, t.Proc[p].Whole = true, true
		}
		c.loss(&t, p, c.keeps(ClauseLostReceiveWholeQueue))
		x.add(t, StepReceiveLossNoticed, p, 0).Fires = true
	}
}

// receive puts h at the end of the key table; what comes of a key the rule is at work for goes back like the rest.
func (c *Config) receive(t *State, p uint8, h Held) {
	g := &t.Proc[p]
	h.GiveBack = (g.Rule && g.Keys>>c.key(h.Msg)&1 == 1) || g.Mode == ModeDrain || g.Mode == ModeEnded
	t.Held[t.NHeld] = h
	t.NHeld++
}

// forgetUnknown: the client has learned that a Receive was lost.
func (c *Config) forgetUnknown(t *State) {
	for i := range c.Keys {
		if t.Truth[i] == OrphanUnknown {
			t.Truth[i] = OrphanLate
		}
	}
}
