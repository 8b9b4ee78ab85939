package model

// Situations counts the states in which something awkward is the case: a model that never gets there proves little.
type Situations struct {
	OutOfOrder        int // a key's entries stand out of queue order
	StaleBeforeFresh  int // a stale copy stands ahead of its fresh copy
	ZombieBeforeFresh int // a zombie runs with the fresh copy behind it
	TwoDead           int // two sessions of one key are dead
	StaleRuns         int // the task of a stale copy runs
	FiresDuringWait   int // the rule is at work for a key while the wait runs
	KeyInBoth         int // both processes run a task of the same key
	ArrivesInRule     int // the outstanding Receive brings a message of a key the rule is at work for
	AcksLost          int // a written ack was lost
	PrefetchInRule    int // the rule is at work and a message of its key lies in the prefetch
	Hangs             int // a call that overran its CallTimeout blocks a key with messages behind it
}

func (v *Situations) count(c *Config, s *State) {
	var hit Situations
	for i := range s.Held[:s.NHeld] {
		a := &s.Held[i]
		g := &s.Proc[a.Proc]
		if a.Phase == PhaseRunning && !a.Locked && a.Link != LinkLost {
			hit.StaleRuns = 1
		}
		if a.GiveBack && g.Deadline {
			hit.FiresDuringWait = 1
		}
		for j := i + 1; j < int(s.NHeld); j++ {
			b := &s.Held[j]
			if !c.sameKey(a.Msg, b.Msg) {
				continue
			}
			if a.Proc != b.Proc {
				if a.Phase == PhaseRunning && b.Phase == PhaseRunning {
					hit.KeyInBoth = 1
				}
				continue
			}
			if a.Msg > b.Msg {
				hit.OutOfOrder = 1
			}
			if a.Msg == b.Msg {
				hit.StaleBeforeFresh = 1
				if a.Phase == PhaseRunning && a.Link == LinkLost {
					hit.ZombieBeforeFresh = 1
				}
			}
			if a.Link != LinkUp && b.Link != LinkUp {
				hit.TwoDead = 1
			}
			if a.Phase == PhaseCommitHangs || a.Phase == PhaseRollbackHangs {
				hit.Hangs = 1
			}
		}
	}
	for p := range s.Proc {
		g := &s.Proc[p]
		if g.Rule && g.Reader == ReaderTook && g.Keys>>c.key(g.Taken)&1 == 1 {
			hit.ArrivesInRule = 1
		}
		for _, b := range g.Buffer[:g.NBuffered] {
			if g.Rule && g.Keys>>c.key(b.Msg)&1 == 1 {
				hit.PrefetchInRule = 1
			}
		}
	}
	if s.AckLost != 0 {
		hit.AcksLost = 1
	}
	v.add(hit)
}

func (v *Situations) add(o Situations) {
	v.OutOfOrder += o.OutOfOrder
	v.StaleBeforeFresh += o.StaleBeforeFresh
	v.ZombieBeforeFresh += o.ZombieBeforeFresh
	v.TwoDead += o.TwoDead
	v.StaleRuns += o.StaleRuns
	v.FiresDuringWait += o.FiresDuringWait
	v.KeyInBoth += o.KeyInBoth
	v.ArrivesInRule += o.ArrivesInRule
	v.AcksLost += o.AcksLost
	v.PrefetchInRule += o.PrefetchInRule
	v.Hangs += o.Hangs
}
