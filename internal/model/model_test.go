package model

import (
	"math/rand"
	"strings"
	"testing"
)

// Every clause must be dropped somewhere with a consequence, or be known as not necessary for safety.
func TestEveryClauseHasAMutant(t *testing.T) {
	var caught Clause
	for _, list := range [][]Scenario{TraceScenarios(), ClauseScenarios(), ExtensionScenarios()} {
		for _, s := range list {
			if s.Want != Holds {
				caught |= AllClauses &^ s.Clauses
			}
		}
	}
	if missing := AllClauses &^ caught &^ ClauseProbeBeforeCommit; missing != 0 {
		t.Errorf("never dropped with a consequence: %s", missing)
	}
}

func TestNames(t *testing.T) {
	if n := len(strings.Split(AllClauses.String(), "+")); AllClauses != 1<<n-1 {
		t.Errorf("%d names for the clauses %b", n, AllClauses)
	}
	if got := (ClauseBlock | ClauseTokenTaken).String(); got != "ClauseBlock+ClauseTokenTaken" {
		t.Errorf("got %q", got)
	}
	for k, f := range stepFormats() {
		if f == "" {
			t.Errorf("step kind %d has no text", k)
		}
	}
	for k := ObservationKind(0); k < obsEnd; k++ {
		if k.String() == "" {
			t.Errorf("observation kind %d has no text", k)
		}
	}
}

// The number of states changes when the model changes: on purpose, or not.
func TestNumberOfStates(t *testing.T) {
	for _, v := range []struct {
		name   string
		f      func(*Config)
		states int
	}{
		{"one process", func(c *Config) { c.Keys, c.TaskFails = []uint8{0, 1, 0}, true }, 46151},
		{"two processes", func(c *Config) { c.Keys, c.Standby, c.Shutdowns, c.Faults = []uint8{0, 1, 0}, true, 1, 1 }, 19063},
	} {
		c := with(v.name, v.f)
		if r := c.Explore(testLimit); r.States != v.states {
			t.Errorf("%s: %d states, want %d", v.name, r.States, v.states)
		}
	}
}

// Whatever happens on the way, a long enough walk settles everything and breaks nothing.
func TestWalks(t *testing.T) {
	for _, c := range WalkConfigs() {
		rng := rand.New(rand.NewSource(1))
		for range 150 {
			var path []Step
			end := c.Walk(rng, 20_000, func(n *Successor) {
				path = append(path, n.Step)
				if n.Violation != "" {
					t.Fatalf("%s: %s\n%s", c.Name, n.Violation, text(path))
				}
			})
			if !c.settledAll(&end) {
				t.Fatalf("%s: not settled after %d steps\n%s", c.Name, len(path), text(path[max(0, len(path)-30):]))
			}
		}
	}
}

// An exploration that is cut short must not look like a proof.
func TestTruncatedProvesNothing(t *testing.T) {
	s := Scenario{Config: Base(), Want: Holds}
	if r := s.Run(100); !r.Truncated || s.Confirmed(&r) {
		t.Error("a truncated exploration confirms its scenario")
	}
}
