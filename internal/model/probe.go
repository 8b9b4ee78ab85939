package model

// probeSteps: the clock shows that the last successful probe of the role is too old, or the process is stopped as a whole.
func (x *expansion) probeSteps(p uint8) {
	s := x.s
	g := &s.Proc[p]
	if x.c.LockProbes && g.Mode == ModeOusted && !g.ProbeOld {
		t := *s
		t.Proc[p].ProbeOld = true
		x.add(t, StepProbeTooOld, p, 0)
	}
	if p == 0 && x.c.Standby && g.active() && x.canFault(FaultFreeze) {
		t := *s
		t.Proc[p].Frozen = true
		x.fault(t, StepFreeze, p, 0)
	}
}

// frozenSteps are those of a stopped process: it goes on, or the broker hears no heartbeat of it and drops its sessions.
func (x *expansion) frozenSteps(p uint8) {
	c := x.c
	t := *x.s
	t.Proc[p].Frozen = false
	x.add(t, StepThaw, p, 0)
	if c.env(EnvStalledManager) {
		if x.s.Proc[p].Mode == ModeActive {
			t := *x.s
			c.oust(&t, p)
			x.add(t, StepRoleLost, p, 0)
		}
		return
	}
	t = *x.s
	g := &t.Proc[p]
	if g.Reader == ReaderTook {
		t.Truth[g.Taken] = Available
		g.Reader, g.Taken = ReaderLost, 0
	}
	c.cutLinks(&t, p)
	for i := range t.Held[:t.NHeld] {
		h := &t.Held[i]
		if h.Proc == p && h.Locked {
			h.Locked = false
			t.Truth[h.Msg] = Available
		}
	}
	for i := range g.Buffer[:g.NBuffered] {
		if b := &g.Buffer[i]; b.Locked {
			b.Locked = false
			t.Truth[b.Msg] = Available
		}
	}
	g.ConnDead = g.ConnDead || c.OneConnection
	if g.Mode == ModeActive {
		c.oust(&t, p)
	}
	if t != *x.s {
		x.add(t, StepBrokerDropsFrozen, p, 0)
	}
}

func (c *Config) oust(t *State, p uint8) {
	t.Proc[p].Mode = ModeOusted
	t.Proc[1-p].Mode = ModeStandby
}

// frozenPast says whether TakeoverDelay may be over while p is stopped: the broker has dropped its sessions by then,
// unless the client library keeps them alive.
func (x *expansion) frozenPast(p uint8) bool {
	s := x.s
	g := &s.Proc[p]
	if !g.Frozen || g.Mode != ModeOusted {
		return false
	}
	if x.c.env(EnvStalledManager) {
		return true
	}
	for i := range s.Held[:s.NHeld] {
		if s.Held[i].Proc == p && s.Held[i].Locked {
			return false
		}
	}
	for i := range g.Buffer[:g.NBuffered] {
		if g.Buffer[i].Locked {
			return false
		}
	}
	return g.Reader == ReaderIdle || g.Reader == ReaderLost
}
