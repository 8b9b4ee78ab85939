package model

// lifecycleSteps are those of policy and role: MaxHold, Shutdown, Start again, release, loss of the role, death.
func (x *expansion) lifecycleSteps(p uint8) {
	c, s := x.c, x.s
	g := &s.Proc[p]
	x.shutdownSteps(p)
	if p == 0 && c.Standby && g.Mode == ModeActive && x.canFault(FaultRole) {
		t := *s
		t.Proc[p].Mode = ModeOusted
		t.Proc[1].Mode = ModeStandby
		x.fault(t, StepRoleLost, p, 0)
	}
	if g.Mode == ModeOusted {
		x.roleLossNoticed(p)
	}
	if p == 0 && c.Standby && (g.Mode == ModeActive || g.leaving()) && x.canFault(FaultCrash) {
		t := *s
		c.die(&t, p)
		t.Proc[1].Mode = ModeStandby
		x.fault(t, StepProcessDies, p, 0)
	}
	if s.HoldsLeft > 0 && g.active() {
		for k := uint8(0); k < 2; k++ {
			t := *s
			if markIdle(&t, p, func(m uint8) bool { return c.key(m) == k }) {
				t.HoldsLeft--
				t.Proc[p].Rule = true
				t.Proc[p].Keys |= 1 << k
				r := x.add(t, StepMaxHold, p, k)
				r.Fires, r.Policy = true, true
			}
		}
	}
}

// markIdle marks to be given back what p holds and does not work at.
func markIdle(t *State, p uint8, which func(m uint8) bool) (any bool) {
	for i := range t.Held[:t.NHeld] {
		h := &t.Held[i]
		if h.Proc == p && h.idle() && which(h.Msg) {
			h.GiveBack = true
			any = true
		}
	}
	return any
}

func every(uint8) bool { return true }

// shutdownSteps: Shutdown gives back all that is idle, Stop finishes it; the role is released when nothing is held and the wait is over.
func (x *expansion) shutdownSteps(p uint8) {
	c, s := x.c, x.s
	g := &s.Proc[p]
	if p == 0 && g.Mode == ModeActive && s.ShutdownsLeft > 0 {
		t := *s
		t.ShutdownsLeft--
		t.Proc[p].Mode, t.Proc[p].Rule, t.Proc[p].Keys = ModeDrain, true, c.allKeys()
		markIdle(&t, p, every)
		x.add(t, StepShutdown, p, 0).Policy = true
		if c.Stop {
			x.stopStep(p)
		}
	}
	if !g.leaving() {
		return
	}
	if s.count(p) == 0 && g.Reader == ReaderIdle && !g.ConnDead && c.mayRelease(s, p) {
		t := *s
		c.returnPrefetch(&t, p)
		c.returnAcks(&t, p)
		t.Proc[p] = Process{Mode: ModeEnded, Deadline: g.Deadline}
		t.Proc[1-p].Mode = ModeActive // a clean end is known: the standby does not wait
		x.add(t, StepRelease, p, 0)
	}
	if c.StartAgain {
		t := *s
		t.Proc[p].Mode = ModeActive
		if !c.keeps(ClauseDeadlineKept) {
			t.Proc[p].Deadline = false
		}
		x.add(t, StepStartAgain, p, 0).Policy = true
	}
}

// stopStep: Stop finishes what was received; only keys in a retry pause go back.
func (x *expansion) stopStep(p uint8) {
	t := *x.s
	t.ShutdownsLeft--
	g := &t.Proc[p]
	g.Mode = ModeFinish
	for i := range t.Held[:t.NHeld] {
		if h := &t.Held[i]; h.Proc == p && h.Phase == PhasePaused {
			g.Rule = true
			g.Keys |= 1 << x.c.key(h.Msg)
		}
	}
	markIdle(&t, p, func(m uint8) bool { return g.Keys>>x.c.key(m)&1 == 1 })
	x.add(t, StepStop, p, 0).Policy = true
}

func (c *Config) mayRelease(s *State, p uint8) bool {
	if c.keeps(ClauseReleaseAfterWait) && s.Proc[p].Deadline {
		return false
	}
	return c.acksFlushed(s, p)
}

// roleLossNoticed: the process learns that it has lost the role and closes all its sessions.
func (x *expansion) roleLossNoticed(p uint8) {
	c := x.c
	t := *x.s
	g := &t.Proc[p]
	g.Mode, g.Rule, g.Keys = ModeEnded, true, c.allKeys()
	if g.Reader == ReaderLost { // closing the connection ends it
		g.Reader = ReaderIdle
		c.forgetUnknown(&t)
		c.loss(&t, p, true)
	}
	if c.keeps(ClauseCloseAtRoleLoss) {
		for i := 0; i < int(t.NHeld); {
			h := &t.Held[i]
			if h.Proc != p {
				i++
				continue
			}
			if h.Link == LinkUp && h.Locked {
				h.Locked = false
				t.Truth[h.Msg] = Available
			}
			if h.idle() {
				c.drop(&t, i)
				continue
			}
			h.Link, h.GiveBack = LinkLost, false
			i++
		}
		c.returnPrefetch(&t, p)
		c.returnAcks(&t, p)
		g.ConnDead, g.ConnDown = false, c.opensAgain()
		c.loss(&t, p, true)
	} else {
		markIdle(&t, p, every)
	}
	x.add(t, StepRoleLossNoticed, p, 0)
}

// die: process p is gone; its sessions stay at the broker until that notices.
func (c *Config) die(t *State, p uint8) {
	for i := 0; i < int(t.NHeld); {
		if t.Held[i].Proc == p {
			c.drop(t, i)
		} else {
			i++
		}
	}
	for i := range c.Keys {
		if t.Truth[i] == Orphan || t.Truth[i] == OrphanUnknown {
			t.Truth[i] = OrphanLate
		}
	}
	g := &t.Proc[p]
	reader := ReaderIdle
	switch g.Reader {
	case ReaderTook, ReaderDeafHolding:
		t.Truth[g.Taken] = OrphanLate
	case ReaderWaiting, ReaderDeaf:
		reader = ReaderWaiting
	}
	c.dropPrefetch(t, p)
	c.loseAcks(t, p)
	t.Proc[p] = Process{Mode: ModeDead, Reader: reader}
}

// takeoverStep: the standby becomes active when TakeoverDelay is over. The model's assumption about TakeoverDelay: by then
// the other process has noticed, or was dropped, and ReturnDelay has passed.
func (x *expansion) takeoverStep(p uint8) {
	c, s := x.c, x.s
	o := &s.Proc[1-p]
	t := *s
	if o.Mode == ModeDead && (!c.keeps(ClauseFirstReadWaits) || s.Token) {
		t.Proc[p].Mode = ModeActive
		x.add(t, StepTakeover, p, 0)
		return
	}
	ended := o.Mode == ModeEnded && o.Reader == ReaderIdle && !o.Deadline && !s.anyGiveBack(1-p)
	slow := c.env(EnvSlowNotice) && o.Mode == ModeOusted
	if !ended && !slow && o.Mode != ModeDead && !x.frozenPast(1-p) {
		return
	}
	t.Proc[p].Mode = ModeActive
	if o.Mode != ModeOusted {
		t.Proc[1-p].Reader = ReaderIdle
	}
	t.Proc[1-p].ProbeOld = c.LockProbes
	for i := range c.Keys {
		if t.Truth[i] == Orphan || t.Truth[i] == OrphanLate || t.Truth[i] == OrphanUnknown {
			t.Truth[i] = Available
		}
	}
	c.returnDeadAcks(&t)
	for i := range t.Held[:t.NHeld] {
		h := &t.Held[i]
		if h.Proc == 1-p && h.Link != LinkUp && h.Locked {
			h.Locked = false
			t.Truth[h.Msg] = Available
		}
	}
	x.add(t, StepTakeover, p, 0)
}
