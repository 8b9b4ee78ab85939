package model

import (
	"errors"
	"math/rand"
	"testing"
)

// traceConfigs are models whose walks are checked: small enough that the unseen can be guessed.
func traceConfigs() []Config {
	small := func(c *Config) {
		c.Keys, c.MaxInFlight, c.Faults, c.MaxHolds, c.Shutdowns, c.TaskFails = []uint8{0, 1, 0, 0}, 3, 2, 1, 1, true
	}
	return []Config{
		with("sessions", func(c *Config) { small(c); c.FaultKinds = FaultsOfSessions; c.StartAgain, c.Stop = true, true }),
		with("hand-over", func(c *Config) { small(c); c.Standby = true }),
		with("pull broker", func(c *Config) {
			small(c)
			c.FaultKinds = FaultsOfSessions | FaultConnection | FaultRefuse | FaultRollbackHang
			c.DeadLetters, c.AtomicSends, c.ReadDuringWait = true, true, true
		}),
		with("push broker", func(c *Config) {
			small(c)
			c.AsyncAcks, c.OneConnection, c.Prefetch, c.DeadLetters, c.RollbackInPlace = true, true, 1, true, false
			c.FaultKinds = FaultConnection | FaultHang | FaultRefuse
		}),
	}
}

func walkPath(c *Config, rng *rand.Rand) []Step {
	var path []Step
	c.Walk(rng, 400, func(n *Successor) { path = append(path, n.Step) })
	return path
}

func TestCheckerAcceptsWhatTheModelDoes(t *testing.T) {
	for _, c := range traceConfigs() {
		t.Run(c.Name, func(t *testing.T) {
			rng, most := rand.New(rand.NewSource(7)), 0
			for range 12 {
				seen := Observe(walkPath(&c, rng))
				k := NewChecker(c, 0)
				for _, o := range seen {
					if err := k.Observe(o); err != nil {
						t.Fatal(err)
					}
					most = max(most, k.States())
				}
				if ok, err := k.Settled(); err != nil || !ok {
					t.Fatalf("after the whole walk: settled %v, %v", ok, err)
				}
			}
			t.Logf("at most %d states explained a prefix", most)
		})
	}
}

// mutations change a trace so that no manager which keeps the rule can have produced it.
func mutations() map[string]func(seen []Observation, c *Config, rng *rand.Rand) []Observation {
	find := func(seen []Observation, kind ObservationKind, rng *rand.Rand) int {
		var at []int
		for i, o := range seen {
			if o.Kind == kind {
				at = append(at, i)
			}
		}
		if len(at) == 0 {
			return -1
		}
		return at[rng.Intn(len(at))]
	}
	insert := func(seen []Observation, at int, o Observation) []Observation {
		out := append([]Observation{}, seen[:at]...)
		return append(append(out, o), seen[at:]...)
	}
	return map[string]func([]Observation, *Config, *rand.Rand) []Observation{
		"a task starts twice": func(seen []Observation, c *Config, rng *rand.Rand) []Observation {
			if i := find(seen, ObsTaskStarted, rng); i >= 0 {
				return insert(seen, i, seen[i])
			}
			return nil
		},
		"a task starts before its message came": func(seen []Observation, c *Config, rng *rand.Rand) []Observation {
			for i, o := range seen {
				if o.Kind == ObsReceiveReturned {
					return insert(seen, i, Observation{ObsTaskStarted, o.Proc, o.Msg})
				}
			}
			return nil
		},
		"a later message of the key starts beside a running one": func(seen []Observation, c *Config, rng *rand.Rand) []Observation {
			i := find(seen, ObsTaskStarted, rng)
			if i < 0 {
				return nil
			}
			for m := seen[i].Msg + 1; int(m) < len(c.Keys); m++ {
				if c.sameKey(m, seen[i].Msg) {
					return insert(seen, i+1, Observation{ObsTaskStarted, seen[i].Proc, m})
				}
			}
			return nil
		},
		"two Receives at once": func(seen []Observation, c *Config, rng *rand.Rand) []Observation {
			if i := find(seen, ObsReceiveIssued, rng); i >= 0 {
				return insert(seen, i, seen[i])
			}
			return nil
		},
		"a commit nobody asked for": func(seen []Observation, c *Config, rng *rand.Rand) []Observation {
			if i := find(seen, ObsTaskStarted, rng); i >= 0 {
				return insert(seen, i, Observation{ObsCommitDone, seen[i].Proc, seen[i].Msg})
			}
			return nil
		},
		"another process did it": func(seen []Observation, c *Config, rng *rand.Rand) []Observation {
			i := find(seen, ObsCommitDone, rng)
			if i < 0 {
				return nil
			}
			out := append([]Observation{}, seen...)
			out[i].Proc = 1 - out[i].Proc
			return out
		},
		"reading goes on without the rule": func(seen []Observation, c *Config, rng *rand.Rand) []Observation {
			if i := find(seen, ObsReadResumed, rng); i >= 0 {
				return insert(seen, i+1, seen[i])
			}
			return nil
		},
	}
}

func TestCheckerRejectsWhatTheModelNeverDoes(t *testing.T) {
	for name, mutate := range mutations() {
		t.Run(name, func(t *testing.T) {
			tried := 0
			for _, c := range traceConfigs() {
				rng := rand.New(rand.NewSource(3))
				for range 6 {
					bad := mutate(Observe(walkPath(&c, rng)), &c, rng)
					if bad == nil {
						continue
					}
					tried++
					if err := Check(c, bad); !errors.Is(err, ErrNotATrace) {
						t.Errorf("%s: %v: %v", c.Name, err, bad)
					}
				}
			}
			if tried == 0 {
				t.Fatal("no walk could be changed that way")
			}
		})
	}
}

// unseenBreaches happen at the broker only: what a manager can be seen to do is the same with and without them. The
// scenario tests catch them in the model; in a real run the audit has to count letters and repeats.
func unseenBreaches() map[string]bool {
	return map[string]bool{
		"letter outside the unit of work": true, "ack before confirm": true, "refused letter ignored": true,
		"ack held back": true, "acks out of order": true, "close before the acks are processed": true,
	}
}

// The shortest counterexample of every dropped clause must not be a trace of the whole rule.
func TestCheckerRejectsCounterexamples(t *testing.T) {
	for _, s := range append(append(TraceScenarios(), ClauseScenarios()...), ExtensionScenarios()...) {
		if s.Want != Breaks || s.Clauses == AllClauses {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			r := s.Run(1_000_000)
			kept := s.Config
			kept.Clauses = AllClauses
			if err := Check(kept, Observe(r.Trace)); errors.Is(err, ErrNotATrace) == unseenBreaches()[s.Name] {
				t.Errorf("%v:\n%v", err, r.Trace)
			}
			if err := Check(s.Config, Observe(r.Trace[:len(r.Trace)-1])); err != nil {
				t.Errorf("the model without the clause does not explain its own trace: %v", err)
			}

		})
	}
}

// A step that breaks a guarantee explains nothing, also where the model has one.
func TestCheckerTakesNoViolation(t *testing.T) {
	s := TraceScenarios()[0]
	r := s.Run(testLimit)
	if err := Check(s.Config, Observe(r.Trace)); !errors.Is(err, ErrNotATrace) {
		t.Errorf("accepted: %v", err)
	}
}

func TestCheckerGuessesWhatIsNotRecorded(t *testing.T) {
	c := traceConfigs()[0]
	rng := rand.New(rand.NewSource(11))
	for range 10 {
		var recorded []Observation
		for _, o := range Observe(walkPath(&c, rng)) {
			if o.Kind != ObsDeadlinePassed && o.Kind != ObsReceiveEmpty {
				recorded = append(recorded, o)
			}
		}
		if err := Check(c, recorded, ObsDeadlinePassed, ObsReceiveEmpty); err != nil {
			t.Fatal(err)
		}
	}
}

// What a recorder writes down, by hand: m1 and m2 are of one key, m3 of another.
func TestCheckerKnowsTheEvents(t *testing.T) {
	a := func(kind ObservationKind, msg uint8) Observation { return Observation{Kind: kind, Msg: msg} }
	receive := func(msgs ...uint8) (out []Observation) {
		for _, m := range msgs {
			out = append(out, a(ObsReceiveIssued, 0), a(ObsReceiveReturned, m))
		}
		return out
	}
	for name, v := range map[string]struct {
		config func(*Config)
		events []Observation
	}{
		"all is well": {events: append(receive(0, 1, 2), a(ObsTaskStarted, 0), a(ObsTaskStarted, 2), a(ObsCommitDone, 2),
			a(ObsCommitDone, 0), a(ObsTaskStarted, 1), a(ObsCommitDone, 1))},
		"a retry in place, then a dead letter that was refused once": {
			config: func(c *Config) { c.DeadLetters, c.AtomicSends, c.TaskFails = true, true, true },
			events: append(receive(0), a(ObsTaskStarted, 0), a(ObsTaskFailed, 0), a(ObsTaskStarted, 0), a(ObsDeadLetterRefused, 0),
				a(ObsTaskStarted, 0), a(ObsDeadLettered, 0))},
		"a commit that says rolled back": {events: append(receive(0, 1), a(ObsTaskStarted, 0), a(ObsCommitRolledBack, 0), a(ObsGivenBack, 1),
			a(ObsReadResumed, 0), a(ObsReceiveIssued, 0), a(ObsReceiveReturned, 0))},
		"a commit in doubt": {events: append(receive(0, 1), a(ObsTaskStarted, 0), a(ObsCommitLost, 0), a(ObsGivenBack, 1),
			a(ObsDeadlinePassed, 0), a(ObsReadResumed, 0), a(ObsReceiveIssued, 0), a(ObsReceiveReturned, 0))},
		"a commit that overran and was done": {events: append(receive(0, 1), a(ObsTaskStarted, 0), a(ObsCommitOverran, 0), a(ObsReceiveIssued, 0),
			a(ObsReceiveReturned, 2), a(ObsTaskStarted, 2), a(ObsCommitDone, 2), a(ObsCommitDone, 0), a(ObsTaskStarted, 1))},
		"a lost session while its task runs": {events: append(receive(0, 1), a(ObsTaskStarted, 0), a(ObsSessionLost, 0), a(ObsGivenBack, 1),
			a(ObsZombieEnded, 0), a(ObsDeadlinePassed, 0), a(ObsReadResumed, 0))},
		"a Rollback that failed, one that overran": {events: append(receive(0, 1), a(ObsTaskStarted, 0), a(ObsCommitRolledBack, 0),
			a(ObsRollbackOverran, 1), a(ObsReadResumed, 0), a(ObsRollbackFailed, 1), a(ObsDeadlinePassed, 0))},
		"a lost connection": {events: append(receive(0, 1), a(ObsTaskStarted, 0), a(ObsReceiveIssued, 0), a(ObsConnectionLost, 0), a(ObsZombieEnded, 0),
			a(ObsDeadlinePassed, 0), a(ObsReadResumed, 0))},
		"a lost Receive": {events: append(receive(0), a(ObsReceiveIssued, 0), a(ObsReceiveLost, 0), a(ObsDeadlinePassed, 0), a(ObsReadResumed, 0))},
		"giving back by closing": {config: func(c *Config) { c.RollbackInPlace, c.MaxHolds = false, 1 },
			events: append(receive(0, 1), a(ObsTaskStarted, 0), a(ObsMaxHold, 0), a(ObsCommitDone, 0), a(ObsConnectionClosed, 0), a(ObsReadResumed, 0))},
		"Stop finishes, Start goes on, Shutdown gives back": {
			config: func(c *Config) { c.Shutdowns, c.Stop, c.StartAgain = 2, true, true },
			events: append(append(receive(0, 1), a(ObsStop, 0), a(ObsTaskStarted, 0), a(ObsCommitDone, 0), a(ObsTaskStarted, 1), a(ObsCommitDone, 1),
				a(ObsStarted, 0)), append(receive(2), a(ObsShutdown, 0), a(ObsGivenBack, 2), a(ObsRoleReleased, 0))...)},
	} {
		t.Run(name, func(t *testing.T) {
			c := with(name, func(c *Config) {
				c.Keys = []uint8{0, 0, 1}
				c.FaultKinds = FaultsOfSessions | FaultConnection | FaultRollbackHang | FaultRefuse
			})
			if v.config != nil {
				v.config(&c)
			}
			if err := Check(c, v.events); err != nil {
				t.Error(err)
			}
			started := false
			for i, e := range v.events { // what starts a second time at once is not of the model
				if e.Kind == ObsTaskStarted && !started {
					started = true
					twice := append(append(append([]Observation{}, v.events[:i+1]...), e), v.events[i+1:]...)
					if err := Check(c, twice); !errors.Is(err, ErrNotATrace) {
						t.Errorf("with a second start: %v", err)
					}
				}
			}
		})
	}
}
