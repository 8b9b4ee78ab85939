package model

// Bounds of a State. They are array sizes: a larger model costs memory in every state.
const (
	MaxMessages = 12
	MaxHeld     = 12
	MaxPrefetch = 2
)

// Phase is where a held message stands.
type Phase uint8

const (
	PhaseWaiting       Phase = iota // received, not begun
	PhaseRunning                    // its task runs
	PhasePaused                     // begun, in a retry pause
	PhaseCommitHangs                // its commit overran CallTimeout
	PhaseRollbackHangs              // its Rollback overran CallTimeout
	PhasePublished                  // its dead letter is sent and not confirmed, the ack is to come
)

// Link is the state of the session of a held message.
type Link uint8

const (
	LinkUp   Link = iota
	LinkDead      // and the client does not know
	LinkLost      // and the client knows
)

// Truth is what the broker knows of a message.
type Truth uint8

const (
	Available     Truth = iota
	Locked              // by a session the client holds, a Receive under way or a prefetch
	Gone                // removed by a commit
	Orphan              // locked by a session whose loss is known; the running wait covers it
	OrphanLate          // the same, but the loss was learned after the running wait had begun
	OrphanHung          // locked by a live session whose hung commit was abandoned (only without ClauseCallReturned)
	OrphanUnknown       // taken by a Receive whose reply was lost; the client has not noticed
	AckWritten          // its ack is on its way to the broker
	AckHeld             // settled for the client, its ack not even written (only without ClauseAckBeforeNextStart)
)

// Reader is the state of the read loop.
type Reader uint8

const (
	ReaderIdle        Reader = iota
	ReaderWaiting            // a Receive is outstanding
	ReaderTook               // and the broker has given it a message, the reply is under way
	ReaderLost               // its session is lost, not noticed
	ReaderDeaf               // it never returns
	ReaderDeafHolding        // it never returns and the broker has given it a message
)

// Mode is the state of a process.
type Mode uint8

const (
	ModeOff     Mode = iota // not there yet
	ModeActive              // has the role and reads
	ModeDrain               // Shutdown was called
	ModeFinish              // Stop was called: what was received is finished
	ModeOusted              // has lost the role and does not know
	ModeEnded               // has left the role
	ModeDead                // the process died
	ModeStandby             // has got the role and waits TakeoverDelay
)

// Held is a message in a session in the hands of a process.
type Held struct {
	Msg, Proc  uint8
	Phase      Phase
	Link       Link
	Locked     bool // the broker still counts it as this session's
	Late       bool // its loss was learned after the running wait had begun
	GiveBack   bool // the rule gives it back
	DeadLetter bool // the hung commit carries its dead letter
	Never      bool // the hung call never returns
}

// Buffered is a message the broker has pushed to the client.
type Buffered struct {
	Msg    uint8
	Link   Link
	Locked bool
}

// Process is one instance of the manager.
type Process struct {
	Mode      Mode
	Reader    Reader
	Taken     uint8 // message of the Receive in ReaderTook and ReaderDeafHolding
	Keys      uint8 // keys the rule is at work for, as a bit set
	Rule      bool  // the rule is at work
	Deadline  bool  // the wait runs
	Whole     bool  // the wait is for the whole queue
	ConnDead  bool  // the connection is dead and the client does not know
	ConnDown  bool  // the connection is closed and not opened again
	ProbeOld  bool  // the last successful probe is too old
	Frozen    bool  // the process does not run
	Buffer    [MaxPrefetch]Buffered
	NBuffered uint8
}

// State is one state of the model. It is comparable: two states are the same when they are equal.
type State struct {
	Held  [MaxHeld]Held // in the order received: the key table
	NHeld uint8
	Truth [MaxMessages]Truth
	Order [MaxMessages]uint8 // of the queue
	Proc  [2]Process

	Started uint16 // messages whose task was started once

	Acks     [MaxMessages]uint8 // acks on their way, oldest first
	NAcks    uint8
	Acked    uint16 // the client counts these as settled
	AckLost  uint16 // acked once, and the connection was lost before the broker had the ack
	AcksDead bool   // their connection is dead or known lost

	Copied, CopiedAgain uint16 // dead letters that exist, once and more
	DeadSettled         uint16 // messages removed by a dead letter
	Token               bool   // the token of a clean end lies at the broker

	FaultsLeft, HoldsLeft, ShutdownsLeft, Innocents uint8
}

// Initial is the state from which all steps begin: process A is active, every message is on the queue.
func (c *Config) Initial() State {
	var s State
	for i := range c.Keys {
		s.Order[i] = uint8(i)
	}
	for i := len(c.Keys); i < MaxMessages; i++ {
		s.Truth[i] = Gone
	}
	s.Proc[0].Mode = ModeActive
	s.FaultsLeft, s.HoldsLeft, s.ShutdownsLeft = uint8(c.Faults), uint8(c.MaxHolds), uint8(c.Shutdowns)
	// A clean token lay there when A became active; taking it off is the first thing an active process does.
	s.Token = c.LockProbes && !c.keeps(ClauseTokenTaken)
	return s
}
