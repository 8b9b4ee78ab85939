package model

// pushStep: the broker pushes a message to the client, who has not asked for it. It does so as long as the consumer is
// open, whatever the manager thinks of reading.
func (x *expansion) pushStep(p uint8) {
	c, s := x.c, x.s
	g := &s.Proc[p]
	for i := range g.Buffer[:g.NBuffered] {
		if b := g.Buffer[i]; b.Link != LinkUp && b.Locked && !c.noticesWhole() {
			t := *s
			t.Proc[p].Buffer[i].Locked = false
			t.Truth[b.Msg] = Available
			x.add(t, StepBrokerNotices, p, b.Msg)
		}
	}
	open := !g.ConnDown || !c.keeps(ClauseReopenAfterWait)
	if int(g.NBuffered) >= c.Prefetch || g.ConnDead || !open || g.Mode == ModeEnded {
		return
	}
	if m, ok := c.nextAvailable(s); ok {
		t := *s
		t.Truth[m] = Locked
		n := &t.Proc[p]
		n.Buffer[n.NBuffered] = Buffered{Msg: m, Locked: true}
		n.NBuffered++
		x.add(t, StepBrokerPushes, p, m)
	}
}

// receiveFromPrefetch: the outstanding Receive gets the oldest message the broker has pushed.
func (x *expansion) receiveFromPrefetch(p uint8) {
	g := &x.s.Proc[p]
	if g.NBuffered == 0 || x.s.full() {
		return
	}
	b := g.Buffer[0]
	t := *x.s
	t.Proc[p].popBuffer()
	t.Proc[p].Reader = ReaderIdle
	x.c.receive(&t, p, Held{Msg: b.Msg, Proc: p, Link: b.Link, Locked: b.Locked})
	x.add(t, StepReceiveFromPrefetch, p, b.Msg)
}

func (g *Process) popBuffer() {
	copy(g.Buffer[:], g.Buffer[1:g.NBuffered])
	g.NBuffered--
	g.Buffer[g.NBuffered] = Buffered{}
}

// dropPrefetch: the connection is lost; what was pushed over it is forgotten and stays locked.
func (c *Config) dropPrefetch(t *State, p uint8) {
	g := &t.Proc[p]
	if !c.keeps(ClausePrefetchForgotten) && g.Mode != ModeDead {
		return
	}
	for g.NBuffered > 0 {
		if b := g.Buffer[0]; b.Locked {
			t.Truth[b.Msg] = OrphanLate
		}
		g.popBuffer()
	}
}

// returnPrefetch: the connection is closed; what was pushed over it goes back. It says whether something stays locked.
func (c *Config) returnPrefetch(t *State, p uint8) (lost bool) {
	g := &t.Proc[p]
	for g.NBuffered > 0 {
		if b := g.Buffer[0]; b.Locked {
			t.Truth[b.Msg] = Available
			if b.Link != LinkUp {
				t.Truth[b.Msg] = OrphanLate
				lost = true
			}
		}
		g.popBuffer()
	}
	return lost
}
