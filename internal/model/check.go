package model

import "fmt"

// settled says whether m counts as settled: removed, or, with asynchronous acks, its ack written and not known lost.
func (s *State) settled(m uint8) bool { return s.Truth[m] == Gone || s.Acked>>m&1 == 1 }

// checkStart says which guarantee the start of the task of entry i breaks in s; "" for none.
func (c *Config) checkStart(s *State, i int) string {
	h := &s.Held[i]
	k, bad := c.key(h.Msg), ""
	for j := uint8(0); j < h.Msg; j++ {
		if c.key(j) == k && !s.settled(j) {
			bad = fmt.Sprintf("G1: m%d starts, m%d is not settled", h.Msg+1, j+1)
		}
	}
	for j := h.Msg + 1; int(j) < len(c.Keys); j++ {
		if c.key(j) != k || s.Started>>j&1 == 0 {
			continue
		}
		if s.AckLost>>h.Msg&1 == 1 && s.Truth[j] != Gone {
			continue // its ack was written and lost; the later one comes again too, behind it
		}
		bad = fmt.Sprintf("G4: m%d starts again after m%d had started", h.Msg+1, j+1)
	}
	if s.AckLost>>h.Msg&1 == 1 && int(s.FaultsLeft) == c.Faults {
		bad = fmt.Sprintf("G4: m%d was settled and repeats though nothing was lost", h.Msg+1)
	}
	for j := range s.Held[:s.NHeld] {
		o := &s.Held[j]
		if j != i && o.Proc == h.Proc && o.Phase == PhaseRunning && c.key(o.Msg) == k {
			bad = "G2: two tasks of a key"
		}
	}
	return bad
}

// checkSettlement sets the violation of a step that removes a message wrongly or makes a dead letter that should not be.
func (c *Config) checkSettlement(s *State, r *Successor) {
	if !c.DeadLetters {
		return
	}
	t := &r.State
	for i := range c.Keys {
		bit := uint16(1) << i
		switch {
		case t.Truth[i] == Gone && t.DeadSettled&bit != 0 && t.Copied&bit == 0:
			r.Violation = fmt.Sprintf("G3: m%d is removed for a dead letter that is nowhere", i+1)
		case c.AtomicSends && t.Copied&bit != 0 && (t.DeadSettled&bit == 0 || t.CopiedAgain&bit != 0):
			r.Violation = fmt.Sprintf("G3: a dead letter of m%d is there though the commit with it was not done", i+1)
		}
	}
}
