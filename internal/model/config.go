package model

// Fault is a kind of misfortune; a Config allows a set of kinds and a number of faults altogether.
type Fault uint16

const (
	FaultSilent       Fault = 1 << iota // the broker takes a held message back without telling
	FaultCut                            // the link of one session dies unnoticed
	FaultCutAll                         // the links of all sessions die at once, unnoticed
	FaultTake                           // the broker gives a message to a Receive whose reply is lost
	FaultCommit                         // a commit is rolled back, or its reply is lost, done or not
	FaultHang                           // a commit overruns its CallTimeout and ends later
	FaultRole                           // the role is lost unnoticed
	FaultCrash                          // the process dies
	FaultConnection                     // the connection dies unnoticed, with all its sessions, prefetch and acks
	FaultNever                          // a commit never returns
	FaultReceiveNever                   // a Receive never returns, whatever its context says
	FaultRollbackHang                   // a Rollback overruns its CallTimeout and ends later
	FaultFreeze                         // the process is stopped as a whole and goes on later
	FaultRefuse                         // a dead letter is refused or cannot be routed

	// FaultsOfSessions are those of one process with a session for each message.
	FaultsOfSessions = FaultSilent | FaultCut | FaultTake | FaultCommit | FaultHang
	// FaultsOfRule are all that the rule itself is explored with.
	FaultsOfRule = FaultsOfSessions | FaultCutAll | FaultRole | FaultCrash
)

// Environment is a set of broken promises of the surroundings: no rule can keep order under them.
type Environment uint8

const (
	// EnvRollbackToTail: what the broker itself rolls back goes to the tail of the queue.
	EnvRollbackToTail Environment = 1 << iota
	// EnvSlowNotice: a process may need longer than TakeoverDelay to notice that the role is lost.
	EnvSlowNotice
	// EnvStalledManager: a process stops working past TakeoverDelay while its client library keeps the sessions alive.
	EnvStalledManager
	// EnvAckAfterReturn: a broker processes acks of a dead connection after it has taken back messages of it.
	EnvAckAfterReturn
)

// Config is one model: its bounds, what broker and user may do, which clauses are kept.
type Config struct {
	Name string
	// Keys has the key (0 or 1) of each message in queue order; at most MaxMessages.
	Keys []uint8
	// MaxInFlight bounds the messages a process has received and not settled, Workers the tasks that run at once.
	MaxInFlight, Workers int
	// Faults is the number of faults of the kinds FaultKinds; MaxHolds and Shutdowns those of these policy events.
	Faults, MaxHolds, Shutdowns int
	FaultKinds                  Fault
	// ReturnDelay: a message stays locked for a while after its session was lost. False: it is back at once.
	ReturnDelay bool
	// RollbackInPlace: a Rollback gives a single message back to its place.
	RollbackInPlace bool
	// TaskFails: a task may fail and is retried in place.
	TaskFails bool
	// Standby: a second process takes over when the first dies, loses or releases the role.
	Standby bool
	// Stop: the policy event Shutdowns may also be a Stop, which finishes what was received.
	Stop bool
	// StartAgain: Start may be called during Stop or Shutdown.
	StartAgain bool
	// ReadDuringWait is the refinement: go on reading during the wait, hold what comes of the key, give it back at its end.
	ReadDuringWait bool
	// OwnReadLoop: the read loop is a goroutine beside the one that gives back. It may end a Receive that brought nothing at
	// any time, and reads on until it is told to stop, at the latest before something is given back.
	OwnReadLoop bool
	// CountInnocents counts messages given back although their session and lock were healthy.
	CountInnocents bool

	// DeadLetters: a task may end with a dead letter. AtomicSends: it is sent in the unit of work of the commit.
	DeadLetters, AtomicSends bool
	// OneConnection: the sessions share a connection, which is lost as a whole.
	OneConnection bool
	// AsyncAcks: a commit returns when its ack is written; the broker processes it later. Needs OneConnection.
	AsyncAcks bool
	// Prefetch: the broker pushes as many messages to the client before Receive asks for them; at most MaxPrefetch.
	Prefetch int
	// LockProbes: the role is a lock beside the data sessions, watched by probes.
	LockProbes bool
	// OperatorCloses: while a call never returns, the connection may be closed from outside.
	OperatorCloses bool
	// OtherKeysOnly: all is well when the keys without a call that never returns are settled.
	OtherKeysOnly bool

	Clauses     Clause
	Environment Environment
}

// Base is the rule with all its clauses on three messages of one key, two faults of any kind, one process.
func Base() Config {
	return Config{
		Keys: []uint8{0, 0, 0}, MaxInFlight: 3, Workers: 2, Faults: 2, FaultKinds: FaultsOfRule,
		ReturnDelay: true, RollbackInPlace: true, Clauses: AllClauses,
	}
}

// Without returns c with clauses x dropped.
func (c Config) Without(x Clause) Config {
	c.Clauses &^= x
	return c
}

func (c *Config) keeps(x Clause) bool     { return c.Clauses&x != 0 }
func (c *Config) can(f Fault) bool        { return c.FaultKinds&f != 0 }
func (c *Config) env(e Environment) bool  { return c.Environment&e != 0 }
func (c *Config) key(m uint8) uint8       { return c.Keys[m] }
func (c *Config) sameKey(a, b uint8) bool { return c.Keys[a] == c.Keys[b] }
func (c *Config) givesBackByRollback() bool {
	if c.Prefetch > 0 && c.keeps(ClausePrefetchCloses) {
		return false
	}
	return c.RollbackInPlace || !c.keeps(ClauseCloseInsteadOfRollback)
}

func (c *Config) allKeys() uint8 {
	var mask uint8
	for _, k := range c.Keys {
		mask |= 1 << k
	}
	return mask
}
