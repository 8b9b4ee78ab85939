package model

// deadLetterSteps: the task of entry i has failed for good and its message is settled by a dead letter. With AtomicSends
// letter and removal are one commit; without, the letter is published, confirmed, then the message acknowledged.
func (x *expansion) deadLetterSteps(i int) {
	c, s := x.c, x.s
	if !c.DeadLetters {
		return
	}
	h := s.Held[i]
	if x.canFault(FaultRefuse) {
		t := *s
		if c.keeps(ClauseRefusedIsFailure) {
			t.Held[i].Phase = PhasePaused
			x.pauseWhileLeaving(&t, i)
			x.fault(t, StepDeadLetterRefused, h.Proc, h.Msg)
		} else if h.Link == LinkUp && h.Locked {
			t.remove(i)
			t.Truth[h.Msg] = Gone
			t.DeadSettled |= 1 << h.Msg
			x.fault(t, StepDeadLetterRefused, h.Proc, h.Msg)
		}
	}
	if c.AtomicSends {
		x.settleSteps(i, true)
		return
	}
	t := *s
	t.Held[i].Phase = PhasePublished
	x.add(t, StepPublish, h.Proc, h.Msg)
}

// publishedSteps: the letter of entry i is on its way; Held.DeadLetter says that it was confirmed.
func (x *expansion) publishedSteps(i int) {
	h := x.s.Held[i]
	if !h.DeadLetter {
		t := *x.s
		t.addCopy(h.Msg)
		t.Held[i].DeadLetter = true
		x.add(t, StepPublishConfirmed, h.Proc, h.Msg)
		if x.c.keeps(ClauseConfirmBeforeAck) {
			return
		}
	}
	x.settleSteps(i, true)
}

func (s *State) addCopy(m uint8) {
	if s.Copied>>m&1 == 1 {
		s.CopiedAgain |= 1 << m
	}
	s.Copied |= 1 << m
}

// settledByDeadLetter: m was removed and its dead letter stands for it.
func (c *Config) settledByDeadLetter(t *State, m uint8) {
	t.DeadSettled |= 1 << m
	if c.AtomicSends && c.keeps(ClauseSendWithCommit) {
		t.addCopy(m)
	}
}
