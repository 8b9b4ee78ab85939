package model

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

const testLimit = 2_000_000

// narrow is the scenario in bounds that fit every test run; the wide ones are for `make model`.
func narrow(s Scenario) Scenario {
	if s.Want != Holds {
		return s
	}
	s.Faults = min(s.Faults, 1)
	if s.Standby {
		s.MaxHolds, s.TaskFails = 0, false
	}
	return s
}

func check(t *testing.T, s Scenario) Result {
	t.Helper()
	r := s.Run(testLimit)
	if !s.Confirmed(&r) {
		t.Errorf("%s: want %s %s, got %s %q (truncated %v, %d states)\n%s", s.About, s.Want, s.Guarantee, r.Outcome(),
			r.Violation, r.Truncated, r.States, text(r.Trace, r.StuckTrace, r.LivelockTrace, r.Cycle))
	}
	return r
}

func text(paths ...[]Step) string {
	var b strings.Builder
	for _, p := range paths {
		for _, s := range p {
			fmt.Fprintln(&b, "  ", s)
		}
	}
	return b.String()
}

func TestRuleHolds(t *testing.T) {
	var reached Situations
	for _, s := range ShortRuleScenarios() {
		t.Run(s.Name, func(t *testing.T) {
			r := check(t, s)
			reached.add(r.Situations)
			if r.Settled == 0 {
				t.Error("no state in which all is settled")
			}
		})
	}
	reached.AcksLost, reached.PrefetchInRule = 1, 1 // of the extensions
	if strings.Contains(fmt.Sprintf("%+v ", reached), ":0 ") || strings.Contains(fmt.Sprintf("%+v", reached), ":0}") {
		t.Errorf("the bounds never reach some situation: %+v", reached)
	}
}

func TestClauses(t *testing.T) {
	for _, s := range ClauseScenarios() {
		t.Run(s.Name, func(t *testing.T) { check(t, s) })
	}
}

func TestExtensions(t *testing.T) {
	var reached Situations
	for _, s := range ExtensionScenarios() {
		t.Run(s.Name, func(t *testing.T) {
			r := check(t, narrow(s))
			reached.add(r.Situations)
		})
	}
	if reached.AcksLost == 0 || reached.PrefetchInRule == 0 || reached.Hangs == 0 {
		t.Errorf("the bounds never reach some situation: %+v", reached)
	}
}

// traceNames say what each counterexample is about; its events are in testdata.
func traceNames() map[string]string {
	return map[string]string{
		"A": "KeyStartsDuringReceive", "B": "FailedRollbackIsNoLoss", "C": "EarlierDeadline", "D": "OverrunIsLoss",
		"E": "ZombiesCloseForEver", "F": "RoleReleasedDuringWait", "G": "RoleLostSessionsKept", "H": "RestartReadsAtOnce",
		"I": "StartForgetsDeadline", "J": "ZombieFiresAgain", "K": "RollbackToTail", "L": "RoleLossUnnoticed",
	}
}

func TestTraces(t *testing.T) {
	for _, s := range TraceScenarios() {
		t.Run(s.Name+"_"+traceNames()[s.Name], func(t *testing.T) {
			r := check(t, s)
			if s.Name == "J" {
				kept := s.Config
				kept.Clauses = AllClauses
				k := kept.Explore(testLimit)
				if r.Innocents != 4 || k.Innocents != 2 {
					t.Errorf("innocents: %d with zombies that fire again, %d with the rule; want 4 and 2", r.Innocents, k.Innocents)
				}
				return
			}
			events := readEvents(t, s.Name)
			if s.Want == Breaks && len(r.Trace) != len(events) {
				t.Errorf("the shortest way has %d events, the one in testdata %d:\n%s", len(r.Trace), len(events), text(r.Trace))
			}
			end, violation := follow(&s.Config, events)
			if len(end) == 0 && violation == "" || s.Want == Breaks && violation == "" {
				t.Fatalf("testdata/%s.txt is no way through the model that ends in a violation", s.Name)
			}
			kept := s.Config
			kept.Clauses, kept.Environment = AllClauses, 0
			if end, violation := follow(&kept, events); len(end) > 0 || violation != "" {
				t.Errorf("the rule with all its clauses goes the same way")
			}
		})
	}
}

func readEvents(t *testing.T, name string) []string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}

// follow returns the states in which the events can end, and the violation the last of them makes.
func follow(c *Config, events []string) (map[State]bool, string) {
	at := map[State]bool{c.Initial(): true}
	violation := ""
	for _, e := range events {
		next := map[State]bool{}
		violation = ""
		for s := range at {
			for _, n := range c.Successors(s, nil) {
				if n.Step.String() == e {
					next[n.State] = true
					if n.Violation != "" {
						violation = n.Violation
					}
				}
			}
		}
		at = next
	}
	return at, violation
}
