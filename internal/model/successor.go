package model

// Successor is a state reached by one step.
type Successor struct {
	State State
	Step  Step
	// Fault: the step used up a fault. Policy: it is up to user or policy (a failed task, MaxHold, Shutdown).
	// Neither counts as progress, nor as a way round in a livelock.
	Fault, Policy bool
	// Fires: the rule begins or begins again.
	Fires bool
	// Violation is the guarantee this step breaks.
	Violation string
}

// expansion collects the successors of one state.
type expansion struct {
	c   *Config
	s   *State
	out []Successor
}

func (x *expansion) add(t State, kind StepKind, p, m uint8) *Successor {
	x.out = append(x.out, Successor{State: t, Step: Step{kind, p, m}})
	return &x.out[len(x.out)-1]
}

func (x *expansion) fault(t State, kind StepKind, p, m uint8) *Successor {
	t.FaultsLeft--
	r := x.add(t, kind, p, m)
	r.Fault = true
	return r
}

// canFault says whether a fault of kind f may happen now.
func (x *expansion) canFault(f Fault) bool { return x.s.FaultsLeft > 0 && x.c.can(f) }

// Successors appends every state that one step leads to from s.
func (c *Config) Successors(s State, out []Successor) []Successor {
	x := expansion{c: c, s: &s, out: out}
	first := len(out)
	for p := uint8(0); p < 2; p++ {
		x.processSteps(p)
	}
	for i := 0; i < int(s.NHeld); i++ {
		x.brokerStepsOf(i)
		if !s.Proc[s.Held[i].Proc].Frozen {
			x.noticeStep(i)
			x.workerSteps(i)
		}
	}
	x.orphanSteps()
	x.ackSteps()
	for i := first; i < len(x.out); i++ {
		if x.out[i].Violation == "" {
			c.checkSettlement(&s, &x.out[i])
		}
	}
	return x.out
}

func (x *expansion) processSteps(p uint8) {
	g := &x.s.Proc[p]
	switch {
	case g.Frozen:
		x.frozenSteps(p)
	case g.Mode == ModeOff:
	case g.Mode == ModeDead:
		x.ghostSteps(p)
	case g.Mode == ModeStandby:
		x.takeoverStep(p)
	default:
		x.readerSteps(p)
		x.giveBackSteps(p)
		x.waitStep(p)
		x.lifecycleSteps(p)
		x.connectionSteps(p)
		x.probeSteps(p)
		x.forceCloseStep(p)
	}
}

// active says whether the process reads and works; it may be wrong about the role.
func (g *Process) active() bool { return g.Mode == ModeActive || g.Mode == ModeOusted }

// leaving says whether Stop or Shutdown was called and the role is not yet released.
func (g *Process) leaving() bool { return g.Mode == ModeDrain || g.Mode == ModeFinish }
