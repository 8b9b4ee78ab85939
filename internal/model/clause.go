package model

import "strings"

// Clause is one thing the give-back rule demands. A Config holds the set of clauses that are kept; a mutant is a Config
// without one of them. The numbers in the comments are those of the rule in docs/model.md.
type Clause uint64

const (
	// ClauseBlock (1): the key starts nothing from the moment its message left unsettled.
	ClauseBlock Clause = 1 << iota
	// ClauseZombieGoes (1): a task whose session is known lost leaves without firing the rule again.
	ClauseZombieGoes
	// ClauseStopReading (2): no new Receive is issued while the rule is at work.
	ClauseStopReading
	// ClauseReceiveEnded (2): nothing is given back before the outstanding Receive has returned.
	ClauseReceiveEnded
	// ClauseLostReceiveWholeQueue (2): a Receive that was lost may have taken a message nobody knows; the whole queue waits.
	ClauseLostReceiveWholeQueue
	// ClauseGiveBack (3): what the key holds and has not begun goes back.
	ClauseGiveBack
	// ClauseRollbackFailedIsLoss (3): a Rollback that fails is itself a loss and moves the deadline.
	ClauseRollbackFailedIsLoss
	// ClauseLastLoss (4): one deadline for the queue, moved by every loss.
	ClauseLastLoss
	// ClauseDeadlineKept (4): the deadline survives Stop and Start.
	ClauseDeadlineKept
	// ClauseCallReturned (5): a call that overran its CallTimeout is no loss; its message stays in its key until the call returns.
	ClauseCallReturned
	// ClauseCloseInsteadOfRollback (6): without RollbackInPlace nothing is given back alone, only by closing the connection.
	ClauseCloseInsteadOfRollback
	// ClauseDrain (6): before that close nothing starts and what runs may settle.
	ClauseDrain
	// ClauseCloseAtRoleLoss (7): when the role is lost the sessions of running tasks are closed too.
	ClauseCloseAtRoleLoss
	// ClauseLostConnectionWholeQueue (1, 2): a lost connection blocks every key and stops reading for the whole wait.
	ClauseLostConnectionWholeQueue
	// ClauseReleaseAfterWait (7): the role is released after the deadline has passed.
	ClauseReleaseAfterWait
	// ClauseFirstReadWaits (7): a process reads first after ReturnDelay (a standby: TakeoverDelay).
	ClauseFirstReadWaits

	// ClauseDrainTimeout (6): the drain ends at DrainTimeout, also when a task or call never ends.
	ClauseDrainTimeout
	// ClauseReceiveOverrunCloses (2): a Receive that does not end after its context did is ended by closing the connection.
	ClauseReceiveOverrunCloses
	// ClauseCloseEndsCalls (5): closing the connection ends a call that would never return.
	ClauseCloseEndsCalls

	// ClauseSendWithCommit: a dead letter is sent in the unit of work that removes the message (brokers with AtomicSends).
	ClauseSendWithCommit
	// ClauseConfirmBeforeAck: without AtomicSends the message is acknowledged only after its dead letter was confirmed.
	ClauseConfirmBeforeAck
	// ClauseRefusedIsFailure: a dead letter that was refused or could not be routed leaves the message where it is.
	ClauseRefusedIsFailure

	// ClauseAckBeforeNextStart: an asynchronous ack is written before the next task of its key starts.
	ClauseAckBeforeNextStart
	// ClauseAckInKeyOrder: an ack never reaches the broker before an earlier ack of its key.
	ClauseAckInKeyOrder
	// ClauseCloseFlushesAcks: the connection is closed to give back, and the role released, after the broker has processed
	// every ack that was written.
	ClauseCloseFlushesAcks

	// ClausePrefetchCloses (6): where the broker pushes a prefetch, giving back is closing the connection, as without RollbackInPlace.
	ClausePrefetchCloses
	// ClauseCloseEvenIfEmpty (6): that close happens also when the key holds nothing: the next message may lie in the prefetch.
	ClauseCloseEvenIfEmpty
	// ClauseReopenAfterWait (4): the consumer is opened again only after the deadline: what the broker pushes is read.
	ClauseReopenAfterWait
	// ClausePrefetchForgotten (7): what was prefetched over a connection is forgotten with it.
	ClausePrefetchForgotten

	// ClauseProbeBeforeReceive: a Receive is issued only when the last successful probe of the role is young enough.
	ClauseProbeBeforeReceive
	// ClauseProbeBeforeStart: the same for the start of a task.
	ClauseProbeBeforeStart
	// ClauseProbeBeforeCommit: the same for a commit.
	ClauseProbeBeforeCommit
	// ClauseTokenTaken: the token of a clean end is taken off when a process becomes active.
	ClauseTokenTaken

	clauseEnd
)

// AllClauses is the rule with nothing left out.
const AllClauses = clauseEnd - 1

// String names the clauses of c as they stand in the source, joined by "+".
func (c Clause) String() string {
	var names []string
	for i, x := 0, Clause(1); x < clauseEnd; i, x = i+1, x<<1 {
		if c&x != 0 {
			names = append(names, clauseNames()[i])
		}
	}
	return strings.Join(names, "+")
}

func clauseNames() []string {
	return []string{
		"ClauseBlock", "ClauseZombieGoes", "ClauseStopReading", "ClauseReceiveEnded", "ClauseLostReceiveWholeQueue",
		"ClauseGiveBack", "ClauseRollbackFailedIsLoss", "ClauseLastLoss", "ClauseDeadlineKept", "ClauseCallReturned",
		"ClauseCloseInsteadOfRollback", "ClauseDrain", "ClauseCloseAtRoleLoss", "ClauseLostConnectionWholeQueue", "ClauseReleaseAfterWait", "ClauseFirstReadWaits",
		"ClauseDrainTimeout", "ClauseReceiveOverrunCloses", "ClauseCloseEndsCalls",
		"ClauseSendWithCommit", "ClauseConfirmBeforeAck", "ClauseRefusedIsFailure",
		"ClauseAckBeforeNextStart", "ClauseAckInKeyOrder", "ClauseCloseFlushesAcks",
		"ClausePrefetchCloses", "ClauseCloseEvenIfEmpty", "ClauseReopenAfterWait", "ClausePrefetchForgotten",
		"ClauseProbeBeforeReceive", "ClauseProbeBeforeStart", "ClauseProbeBeforeCommit", "ClauseTokenTaken",
	}
}
