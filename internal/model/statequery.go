package model

// remove takes entry i out of the key table; entries 0 to NHeld-1 are in use.
func (s *State) remove(i int) {
	copy(s.Held[i:], s.Held[i+1:s.NHeld])
	s.NHeld--
	s.Held[s.NHeld] = Held{}
}

func (s *State) full() bool { return int(s.NHeld) >= MaxHeld }

// count is the number of messages process p holds.
func (s *State) count(p uint8) (n int) {
	for i := range s.Held[:s.NHeld] {
		if s.Held[i].Proc == p {
			n++
		}
	}
	return n
}

// busy says whether the message's task runs or its settlement is on its way.
func (h *Held) busy() bool {
	return h.Phase == PhaseRunning || h.Phase == PhaseCommitHangs || h.Phase == PhasePublished
}

// idle says whether nothing of the message is on its way: not begun, or in a retry pause.
func (h *Held) idle() bool { return h.Phase == PhaseWaiting || h.Phase == PhasePaused }

// workers is the number of workers of process p in use; a call that overran its CallTimeout has freed its worker.
func (s *State) workers(p uint8) (n int) {
	for i := range s.Held[:s.NHeld] {
		h := &s.Held[i]
		if h.Proc == p && (h.Phase == PhaseRunning || h.Phase == PhasePublished) {
			n++
		}
	}
	return n
}

// worthWaiting is the number of busy messages of p that can still settle.
func (s *State) worthWaiting(p uint8) (n int) {
	for i := range s.Held[:s.NHeld] {
		h := &s.Held[i]
		if h.Proc == p && h.busy() && h.Link != LinkLost {
			n++
		}
	}
	return n
}

func (s *State) anyGiveBack(p uint8) bool {
	for i := range s.Held[:s.NHeld] {
		if s.Held[i].Proc == p && s.Held[i].GiveBack {
			return true
		}
	}
	return false
}

// anyNever says whether a call of p never returns.
func (s *State) anyNever(p uint8) bool {
	for i := range s.Held[:s.NHeld] {
		if s.Held[i].Proc == p && s.Held[i].Never {
			return true
		}
	}
	return false
}

// isHead says whether no earlier entry of the same key and process is held.
func (c *Config) isHead(s *State, i int) bool {
	for j := 0; j < i; j++ {
		if s.Held[j].Proc == s.Held[i].Proc && c.sameKey(s.Held[j].Msg, s.Held[i].Msg) {
			return false
		}
	}
	return true
}

// nextAvailable is the message the broker would give out now.
func (c *Config) nextAvailable(s *State) (uint8, bool) {
	for i := range c.Keys {
		if m := s.Order[i]; s.Truth[m] == Available {
			return m, true
		}
	}
	return 0, false
}

// toTail moves m behind all other messages of the queue.
func (c *Config) toTail(s *State, m uint8) {
	n := len(c.Keys)
	for i := 0; i < n; i++ {
		if s.Order[i] == m {
			copy(s.Order[i:n], s.Order[i+1:n])
			s.Order[n-1] = m
			return
		}
	}
}

// settledAll says whether nothing is left to do.
func (c *Config) settledAll(s *State) bool {
	for i := range c.Keys {
		if s.Truth[i] != Gone && !(c.OtherKeysOnly && c.keyHangs(s, c.Keys[i])) {
			return false
		}
	}
	return true
}

// keyHangs says whether a call that never returns blocks key k.
func (c *Config) keyHangs(s *State, k uint8) bool {
	for i := range s.Held[:s.NHeld] {
		if s.Held[i].Never && c.key(s.Held[i].Msg) == k {
			return true
		}
	}
	return false
}
