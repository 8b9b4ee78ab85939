package model

// Outcome is what an exploration is expected to show.
type Outcome string

const (
	Holds     Outcome = "holds"    // no violation, nothing stuck, no livelock
	Breaks    Outcome = "breaks"   // a guarantee is violated
	Sticks    Outcome = "sticks"   // something can never be settled
	GoesRound Outcome = "livelock" // the rule fires for ever without a new fault
)

// Scenario is a Config to explore and what must come out.
type Scenario struct {
	Config
	Want Outcome
	// Guarantee is the one that breaks (G1, G3, G4) where Want is Breaks.
	Guarantee string
	// About says what it shows.
	About string
}

// Outcome says what r shows.
func (r *Result) Outcome() Outcome {
	switch {
	case r.Violation != "":
		return Breaks
	case r.Stuck > 0:
		return Sticks
	case r.Livelock:
		return GoesRound
	}
	return Holds
}

// Confirmed says whether r shows what the scenario expects.
func (s *Scenario) Confirmed(r *Result) bool {
	return !r.Truncated && r.Outcome() == s.Want &&
		(s.Want != Breaks || len(r.Violation) > 2 && r.Violation[:2] == s.Guarantee)
}

// Run explores the scenario up to limit states: to the first violation where one is expected, else the whole graph.
func (s *Scenario) Run(limit int) Result {
	if s.Want == Breaks {
		return s.FindViolation(limit)
	}
	return s.Explore(limit)
}

// with is Base changed by f.
func with(name string, f func(*Config)) Config {
	c := Base()
	c.Name = name
	f(&c)
	return c
}

func breaks(guarantee, about string, c Config) Scenario {
	return Scenario{Config: c, Want: Breaks, Guarantee: guarantee, About: about}
}
