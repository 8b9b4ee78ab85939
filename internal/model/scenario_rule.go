package model

import "fmt"

// RuleScenarios are the rule itself, all clauses kept, in the bounds of the full run.
func RuleScenarios() []Scenario {
	var out []Scenario
	add := func(name string, f func(*Config)) {
		out = append(out, Scenario{Config: with(name, f), Want: Holds, About: "all clauses kept"})
	}
	oneKey, twoKeys := []uint8{0, 0, 0, 0}, []uint8{0, 1, 0, 1}
	for _, delay := range []bool{true, false} {
		for _, inPlace := range []bool{true, false} {
			setting := fmt.Sprintf("delay=%v in place=%v", delay, inPlace)
			for _, keys := range [][]uint8{oneKey, twoKeys} {
				add(fmt.Sprintf("rule, one process, %s, keys %v", setting, keys), func(c *Config) {
					c.Keys, c.ReturnDelay, c.RollbackInPlace = keys, delay, inPlace
					c.MaxHolds, c.TaskFails = 1, true
				})
			}
			add(fmt.Sprintf("rule, two processes, %s", setting), func(c *Config) {
				c.Keys, c.ReturnDelay, c.RollbackInPlace = []uint8{0, 1, 0}, delay, inPlace
				c.MaxHolds, c.TaskFails, c.Standby, c.Shutdowns, c.Stop = 1, true, true, 1, true
			})
			add(fmt.Sprintf("rule, reading during the wait, %s", setting), func(c *Config) {
				c.Keys, c.ReturnDelay, c.RollbackInPlace, c.ReadDuringWait = twoKeys, delay, inPlace, true
				c.MaxHolds, c.TaskFails = 1, true
			})
		}
		add(fmt.Sprintf("rule, deep: 5 messages, 4 held, 3 faults, delay=%v", delay), func(c *Config) {
			c.Keys, c.ReturnDelay, c.MaxInFlight = []uint8{0, 0, 0, 0, 0}, delay, 4
			c.Faults, c.FaultKinds, c.MaxHolds = 3, FaultsOfSessions, 1
		})
	}
	add("rule, two processes, 4 messages", func(c *Config) {
		c.Keys, c.Standby, c.Shutdowns, c.TaskFails = []uint8{0, 1, 0, 1}, true, 1, true
	})
	add("rule, two keys, 4 held, 3 faults", func(c *Config) {
		c.Keys, c.MaxInFlight, c.Faults, c.FaultKinds = []uint8{0, 1, 0, 1}, 4, 3, FaultsOfSessions
	})
	for _, inPlace := range []bool{true, false} {
		add(fmt.Sprintf("rule, a read loop of its own, in place=%v", inPlace), func(c *Config) {
			c.Keys, c.OwnReadLoop, c.RollbackInPlace, c.ReadDuringWait, c.TaskFails, c.MaxHolds = []uint8{0, 1, 0}, true, inPlace, inPlace, true, 1
			c.FaultKinds = FaultsOfSessions | FaultConnection | FaultRollbackHang
		})
	}
	add("rule, Stop or Shutdown, Start again meanwhile", func(c *Config) {
		c.Keys, c.StartAgain, c.Shutdowns, c.Stop, c.TaskFails = []uint8{0, 1, 0}, true, 1, true, true
	})
	return out
}

// ShortRuleScenarios are the same rule in bounds for every test run.
func ShortRuleScenarios() []Scenario {
	var out []Scenario
	for _, delay := range []bool{true, false} {
		for _, inPlace := range []bool{true, false} {
			for _, during := range []bool{false, true} {
				name := fmt.Sprintf("delay=%v in place=%v reading during the wait=%v", delay, inPlace, during)
				out = append(out, Scenario{Want: Holds, Config: with(name, func(c *Config) {
					c.Keys, c.ReturnDelay, c.RollbackInPlace, c.ReadDuringWait = []uint8{0, 1, 0}, delay, inPlace, during
					c.TaskFails = true
				})}, Scenario{Want: Holds, Config: with(name+", two processes", func(c *Config) {
					c.ReturnDelay, c.RollbackInPlace, c.ReadDuringWait = delay, inPlace, during
					c.Standby, c.Shutdowns, c.Stop, c.StartAgain, c.Faults = true, 1, true, true, 1
				})})
			}
		}
	}
	return out
}
