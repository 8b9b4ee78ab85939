package model

// TraceScenarios are the counterexamples A to L that shaped the rule. A to I and K, L each need one thing dropped or one promise
// of the surroundings broken; J breaks nothing and is measured by its innocents.
func TraceScenarios() []Scenario {
	twoKeys := []uint8{0, 1, 0, 1}
	one := func(kinds Fault) func(*Config) {
		return func(c *Config) { c.Faults, c.FaultKinds = 1, kinds }
	}
	standby := func(kinds Fault) func(*Config) {
		return func(c *Config) { c.Faults, c.FaultKinds, c.Standby = 1, kinds, true }
	}
	return []Scenario{
		breaks("G1", "the key starts its next message while the reader still ends its Receive",
			with("A", one(FaultCommit)).Without(ClauseBlock)),
		breaks("G1", "a Rollback that fails leaves a lock behind, and reading goes on",
			with("B", func(c *Config) { c.FaultKinds = FaultCommit | FaultCut }).Without(ClauseRollbackFailedIsLoss)),
		breaks("G1", "the wait of an earlier loss ends too early for a later one",
			with("C", func(c *Config) { c.Keys, c.MaxInFlight, c.FaultKinds = twoKeys, 4, FaultCommit|FaultCut }).Without(ClauseLastLoss)),
		breaks("G1", "a commit that overran its CallTimeout is abandoned and counts as a loss",
			with("D", one(FaultHang)).Without(ClauseCallReturned)),
		{Want: GoesRound, About: "closing the connection makes zombies, each of which closes it again",
			Config: with("E", func(c *Config) {
				c.Keys, c.MaxInFlight, c.Faults, c.FaultKinds = twoKeys, 4, 1, FaultCommit
				c.ReturnDelay, c.RollbackInPlace = false, false
			}).Without(ClauseZombieGoes | ClauseDrain)},
		breaks("G1", "the role is released while a lock is still at the broker",
			with("F", func(c *Config) { standby(FaultCommit)(c); c.Shutdowns = 1 }).Without(ClauseReleaseAfterWait)),
		breaks("G1", "after the role was lost a running task keeps its session, the standby reads on behind it",
			with("G", standby(FaultRole)).Without(ClauseCloseAtRoleLoss)),
		breaks("G1", "a new process reads at once while its predecessor's message is locked",
			with("H", standby(FaultCrash)).Without(ClauseFirstReadWaits)),
		breaks("G1", "Start forgets the wait that Shutdown had begun",
			with("I", func(c *Config) { one(FaultCommit)(c); c.StartAgain, c.Shutdowns = true, 1 }).Without(ClauseDeadlineKept)),
		{Want: Holds, About: "a zombie that fires the rule again breaks nothing, but more innocents go back",
			Config: with("J", func(c *Config) {
				c.Keys, c.Faults, c.FaultKinds, c.CountInnocents = twoKeys, 1, FaultCommit|FaultCut, true
			}).Without(ClauseZombieGoes)},
		breaks("G1", "surroundings: the broker's own rollback puts a single message at the tail",
			with("K", func(c *Config) {
				one(FaultCommit)(c)
				c.RollbackInPlace, c.Environment = false, EnvRollbackToTail
			})),
		breaks("G1", "surroundings: a process does not notice within TakeoverDelay that the role is lost",
			with("L", func(c *Config) { standby(FaultRole)(c); c.Environment = EnvSlowNotice })),
	}
}

// ClauseScenarios are the mutants of the rule that A to L leave out.
func ClauseScenarios() []Scenario {
	one := func(kinds Fault) func(*Config) {
		return func(c *Config) { c.Faults, c.FaultKinds = 1, kinds }
	}
	return []Scenario{
		breaks("G1", "without giving back, what is held starts ahead of what left",
			with("no give-back at all", one(FaultCommit)).Without(ClauseGiveBack)),
		breaks("G1", "a message on its way arrives after the rule has ended",
			with("giving back while a Receive is outstanding", one(FaultCommit)).Without(ClauseReceiveEnded)),
		breaks("G1", "a lost Receive has locked a message nobody knows",
			with("lost Receive ignored", one(FaultTake)).Without(ClauseLostReceiveWholeQueue)),
		breaks("G1", "over the lost connection a message was on its way, whose key is not blocked",
			with("lost connection, only its keys", func(c *Config) { one(FaultConnection)(c); c.ReadDuringWait = true }).Without(ClauseLostConnectionWholeQueue)),
		breaks("G1", "a lost Receive has locked a message, and reading does not stop",
			with("reading goes on", one(FaultTake)).Without(ClauseStopReading)),
		breaks("G1", "without RollbackInPlace a single Rollback puts the message at the tail",
			with("Rollback without RollbackInPlace", func(c *Config) { one(FaultCommit)(c); c.RollbackInPlace = false }).Without(ClauseCloseInsteadOfRollback)),
		{Want: Holds, About: "not needed for safety: without the drain more is repeated",
			Config: with("no drain", func(c *Config) {
				c.Keys, c.RollbackInPlace, c.ReturnDelay = []uint8{0, 1, 0, 1}, false, false
				c.FaultKinds = FaultCommit
			}).Without(ClauseDrain)},
		{Want: Holds, About: "not needed for safety as long as the drain is kept",
			Config: with("zombies fire again", func(c *Config) { c.Keys, c.RollbackInPlace = []uint8{0, 1, 0}, false }).Without(ClauseZombieGoes)},
	}
}
