package model

import "fmt"

// ExtensionScenarios are what the product does beyond the rule: for each extension an exploration with all clauses and
// the mutants that its own clauses prevent.
func ExtensionScenarios() []Scenario {
	var out []Scenario
	for _, list := range [][]Scenario{deadLetters(), asyncAcks(), prefetch(), lockProbes(), neverReturning(), profiles()} {
		out = append(out, list...)
	}
	return out
}

func holds(about string, c Config) Scenario { return Scenario{Config: c, Want: Holds, About: about} }

func deadLetters() []Scenario {
	var out []Scenario
	base := func(c *Config) {
		c.Keys, c.DeadLetters, c.AtomicSends, c.FaultKinds = []uint8{0, 0, 1}, true, true, FaultsOfSessions|FaultRefuse
	}
	for _, atomic := range []bool{true, false} {
		for _, delay := range []bool{true, false} {
			out = append(out, holds("dead letters", with(fmt.Sprintf("dead letters, atomic=%v delay=%v", atomic, delay), func(c *Config) {
				base(c)
				c.AtomicSends, c.ReturnDelay, c.TaskFails = atomic, delay, true
			})))
		}
	}
	return append(out,
		breaks("G3", "the letter goes out though the commit is rolled back", with("letter outside the unit of work", base).Without(ClauseSendWithCommit)),
		breaks("G3", "acknowledged before the letter is confirmed", with("ack before confirm", func(c *Config) { base(c); c.AtomicSends = false }).Without(ClauseConfirmBeforeAck)),
		breaks("G3", "a letter nobody took counts as sent", with("refused letter ignored", base).Without(ClauseRefusedIsFailure)),
	)
}

func asyncAcks() []Scenario {
	var out []Scenario
	base := func(c *Config) {
		c.AsyncAcks, c.OneConnection, c.RollbackInPlace, c.FaultKinds = true, true, false, FaultConnection|FaultHang
	}
	for _, delay := range []bool{true, false} {
		for _, standby := range []bool{true, false} {
			out = append(out, holds("asynchronous acks", with(fmt.Sprintf("asynchronous acks, delay=%v standby=%v", delay, standby), func(c *Config) {
				base(c)
				c.Keys, c.ReturnDelay, c.TaskFails, c.MaxHolds = []uint8{0, 0, 1}, delay, true, 1
				if standby {
					c.Standby, c.Shutdowns = true, 1
					c.FaultKinds |= FaultRole | FaultCrash
				}
			})))
		}
	}
	return append(out,
		breaks("G1", "the next task starts while the ack is held back", with("ack held back", base).Without(ClauseAckBeforeNextStart)),
		breaks("G4", "a later ack arrives, an earlier of its key is lost", with("acks out of order", base).Without(ClauseAckInKeyOrder)),
		breaks("G4", "a clean end loses acks and repeats", with("release before the acks are processed", func(c *Config) { base(c); c.Standby, c.Shutdowns = true, 1 }).Without(ClauseCloseFlushesAcks)),
		breaks("G4", "giving back by closing loses acks and repeats", with("close before the acks are processed", func(c *Config) { base(c); c.MaxHolds = 1 }).Without(ClauseCloseFlushesAcks)),
		breaks("G4", "surroundings: acks are processed after messages of their connection were taken back", with("ack after return", func(c *Config) { base(c); c.Environment = EnvAckAfterReturn })),
	)
}

func prefetch() []Scenario {
	var out []Scenario
	base := func(c *Config) { c.Prefetch, c.RollbackInPlace, c.FaultKinds = 2, false, FaultCommit|FaultConnection }
	for _, delay := range []bool{true, false} {
		for _, one := range []bool{true, false} {
			for _, standby := range []bool{true, false} {
				name := fmt.Sprintf("prefetch, delay=%v one connection=%v standby=%v", delay, one, standby)
				out = append(out, holds("push prefetch", with(name, func(c *Config) {
					base(c)
					c.Keys, c.ReturnDelay, c.OneConnection, c.TaskFails, c.MaxHolds = []uint8{0, 1, 0}, delay, one, true, 1
					c.FaultKinds |= FaultHang
					if !one {
						c.FaultKinds |= FaultsOfSessions
					}
					if standby {
						c.Standby, c.Shutdowns = true, 1
						c.FaultKinds |= FaultRole | FaultCrash
					}
				})))
			}
		}
	}
	return append(out,
		breaks("G1", "Rollback in place leaves the next message in the prefetch", with("prefetch with Rollback in place", func(c *Config) { base(c); c.RollbackInPlace = true }).Without(ClausePrefetchCloses)),
		breaks("G1", "the key holds nothing, its next message lies in the prefetch", with("no close when nothing is held", base).Without(ClauseCloseEvenIfEmpty)),
		breaks("G1", "the broker pushes during the wait", with("consumer opened during the wait", base).Without(ClauseReopenAfterWait)),
		breaks("G1", "the prefetch of a lost connection is handed out", with("prefetch kept over a reconnect", base).Without(ClausePrefetchForgotten)),
	)
}

func lockProbes() []Scenario {
	base := func(c *Config) {
		c.LockProbes, c.Standby = true, true
		c.FaultKinds = FaultCut | FaultCommit | FaultRole | FaultCrash | FaultFreeze
	}
	wide := func(delay bool) Config {
		return with(fmt.Sprintf("lock probes, delay=%v", delay), func(c *Config) {
			base(c)
			c.Keys, c.ReturnDelay, c.Shutdowns, c.TaskFails = []uint8{0, 1, 0}, delay, 1, true
			c.FaultKinds |= FaultTake
		})
	}
	return []Scenario{
		holds("a lock watched by probes, a process that is stopped and goes on", wide(true)),
		holds("a lock watched by probes, a process that is stopped and goes on", wide(false)),
		breaks("G1", "a process that goes on takes a message away from the active one", with("no probe before Receive", base).Without(ClauseProbeBeforeReceive)),
		breaks("G4", "a process that goes on starts what it had received", with("no probe before a start", base).Without(ClauseProbeBeforeStart)),
		holds("not needed: the session is gone and the commit fails", with("no probe before Commit", base).Without(ClauseProbeBeforeCommit)),
		breaks("G1", "the token of an earlier clean end lets the standby read at once after a crash", with("token left where it lay", base).Without(ClauseTokenTaken)),
		breaks("G1", "the sessions of running tasks stay when a probe fails", with("probe fails, sessions stay", base).Without(ClauseCloseAtRoleLoss)),
		breaks("G1", "a process that goes on does not look at the clock at all", with("no probes, process stopped", func(c *Config) { base(c); c.LockProbes = false })),
		breaks("G1", "surroundings: the manager stands still, its client library keeps the sessions alive", with("manager stalled", func(c *Config) { base(c); c.Environment = EnvStalledManager })),
	}
}

func neverReturning() []Scenario {
	var out []Scenario
	base := func(c *Config) {
		c.Keys, c.OperatorCloses = []uint8{0, 1, 0}, true
		c.FaultKinds = FaultCut | FaultCommit | FaultNever | FaultReceiveNever | FaultRollbackHang
	}
	others := func(c *Config) {
		base(c)
		c.Keys, c.MaxInFlight, c.OperatorCloses, c.OtherKeysOnly = []uint8{0, 1, 0, 1}, 5, false, true
	}
	for _, inPlace := range []bool{true, false} {
		out = append(out, holds("the other keys go on beside a call that never returns",
			with(fmt.Sprintf("never returning, the other keys, in place=%v", inPlace), func(c *Config) { others(c); c.RollbackInPlace = inPlace })))
		for _, delay := range []bool{true, false} {
			out = append(out, holds("closing the connection ends it", with(fmt.Sprintf("never returning, delay=%v in place=%v", delay, inPlace), func(c *Config) {
				base(c)
				c.ReturnDelay, c.RollbackInPlace, c.TaskFails, c.MaxHolds = delay, inPlace, true, 1
			})))
		}
	}
	out = append(out, holds("a Rollback ends late, or its session is lost meanwhile", with("hung Rollback, 3 faults", func(c *Config) {
		c.Keys, c.Faults, c.MaxHolds, c.FaultKinds = []uint8{0, 0, 1}, 3, 1, FaultCut|FaultCutAll|FaultRollbackHang|FaultConnection
	})))
	return append(out,
		breaks("G1", "a hung Rollback is taken for done", with("hung Rollback abandoned", base).Without(ClauseCallReturned)),
		Scenario{Config: with("Receive without an end", base).Without(ClauseReceiveOverrunCloses), Want: Sticks, About: "a Receive that never returns stops reading for ever"},
		Scenario{Config: with("close leaves the call hanging", base).Without(ClauseCloseEndsCalls), Want: Sticks, About: "the key is blocked for ever, also after a close"},
		Scenario{Config: with("drain without an end", func(c *Config) {
			others(c)
			c.RollbackInPlace, c.FaultKinds = false, FaultCommit|FaultNever
		}).Without(ClauseDrainTimeout), Want: Sticks, About: "giving back waits for ever for a call that never returns"},
	)
}

// profiles combine the extensions as brokers do.
func profiles() []Scenario {
	push := func(c *Config) {
		c.AsyncAcks, c.OneConnection, c.Prefetch, c.DeadLetters, c.RollbackInPlace = true, true, 1, true, false
		c.Keys, c.FaultKinds = []uint8{0, 1, 0}, FaultConnection|FaultHang|FaultRefuse
	}
	pull := func(c *Config) {
		c.DeadLetters, c.AtomicSends, c.LockProbes, c.ReadDuringWait = true, true, true, true
		c.Keys, c.FaultKinds, c.MaxHolds = []uint8{0, 1, 0}, FaultsOfSessions|FaultRefuse|FaultConnection, 1
	}
	return []Scenario{
		holds("asynchronous acks, prefetch, dead letters", with("push broker, no delay", func(c *Config) { push(c); c.ReturnDelay, c.MaxHolds = false, 1 })),
		holds("asynchronous acks, prefetch, dead letters", with("push broker, delay", push)),
		holds("and a hand-over, one fault", with("push broker, standby", func(c *Config) {
			push(c)
			c.Standby, c.Shutdowns, c.Faults, c.ReturnDelay = true, 1, 1, false
			c.FaultKinds |= FaultRole | FaultCrash
		})),
		twoFaults(true, push),
		twoFaults(false, push),
		holds("sessions, atomic dead letters, reading during the wait", with("pull broker", pull)),
		holds("and a hand-over under lock probes, one fault", with("pull broker, standby", func(c *Config) {
			pull(c)
			c.Standby, c.Shutdowns, c.Faults = true, 1, 1
			c.FaultKinds |= FaultRole | FaultCrash | FaultFreeze
		})),
	}
}

// twoFaults is the push broker with a hand-over on two messages of one key, which can be explored with two faults.
func twoFaults(delay bool, push func(*Config)) Scenario {
	return holds("and a hand-over, two messages, two faults", with(fmt.Sprintf("push broker, standby, 2 messages, delay=%v", delay), func(c *Config) {
		push(c)
		c.Keys, c.Standby, c.Shutdowns, c.Stop, c.ReturnDelay = []uint8{0, 0}, true, 1, true, delay
		c.FaultKinds |= FaultRole | FaultCrash
	}))
}
