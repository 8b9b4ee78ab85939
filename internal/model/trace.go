package model

import "fmt"

// ObservationKind is what a real manager can be seen to do, or to be told by its broker. What only the broker knows
// (a link that died and was not noticed, a message it took back) is no observation; the Checker guesses it.
type ObservationKind uint8

const (
	// ObsReceiveIssued: Session.Receive is called.
	ObsReceiveIssued ObservationKind = iota
	// ObsReceiveReturned: it returned Msg, which is now at the end of its key's queue.
	ObsReceiveReturned
	// ObsReceiveEmpty: it returned without a message, nothing is held.
	ObsReceiveEmpty
	// ObsReceiveLost: it failed with a loss: the broker may have given a message nobody knows.
	ObsReceiveLost
	// ObsTaskStarted: an attempt at Msg begins, the first or a retry in place.
	ObsTaskStarted
	// ObsTaskFailed: the attempt failed; Msg waits for its retry, or was cancelled and goes back.
	ObsTaskFailed
	// ObsZombieEnded: the task of Msg ended after its session was known lost.
	ObsZombieEnded
	// ObsCommitDone: the task of Msg succeeded and its commit returned nil, late ones included.
	ObsCommitDone
	// ObsDeadLettered: Msg was settled by a dead letter, the commit returned nil.
	ObsDeadLettered
	// ObsDeadLetterRefused: the dead letter of Msg was refused; Msg stays and waits.
	ObsDeadLetterRefused
	// ObsCommitRolledBack: the commit of Msg said rolled back.
	ObsCommitRolledBack
	// ObsCommitLost: the commit of Msg is in doubt, or its session was found lost by it.
	ObsCommitLost
	// ObsCommitOverran: the commit of Msg has overrun CallTimeout.
	ObsCommitOverran
	// ObsSessionLost: the session of Msg is known lost.
	ObsSessionLost
	// ObsSessionsLost: several sessions are known lost at once.
	ObsSessionsLost
	// ObsConnectionLost: the connection is known lost, all its sessions with it.
	ObsConnectionLost
	// ObsGivenBack: Msg was given back by Rollback, late ones included.
	ObsGivenBack
	// ObsRollbackFailed: the Rollback of Msg found its session lost.
	ObsRollbackFailed
	// ObsRollbackOverran: the Rollback of Msg has overrun CallTimeout.
	ObsRollbackOverran
	// ObsConnectionClosed: the manager has closed its connection, to give back or to end a call.
	ObsConnectionClosed
	// ObsDeadlinePassed: ReturnDelay has passed since the last loss.
	ObsDeadlinePassed
	// ObsReadResumed: the rule has ended, the next Receive may be issued.
	ObsReadResumed
	// ObsMaxHold: MaxHold gives back what key Msg holds.
	ObsMaxHold
	// ObsShutdown: Shutdown was called.
	ObsShutdown
	// ObsStop: Stop was called.
	ObsStop
	// ObsStarted: Start was called during Stop or Shutdown.
	ObsStarted
	// ObsRoleReleased: the role was released, last.
	ObsRoleReleased
	// ObsRoleLost: the loss of the role is known, all sessions are closed.
	ObsRoleLost
	// ObsActivated: a standby has become active and may read.
	ObsActivated
	// ObsProcessDied: the process is gone.
	ObsProcessDied
	obsEnd
)

// Observation is one event of a real manager. Proc is 0 for the first process, 1 for the one that takes over; Msg counts
// the messages from 0 in queue order (for ObsMaxHold it is the key), and is ignored where the event has none.
type Observation struct {
	Kind ObservationKind
	Proc uint8
	Msg  uint8
}

// hasMessage says whether Msg means something.
func (k ObservationKind) hasMessage() bool {
	switch k {
	case ObsReceiveReturned, ObsTaskStarted, ObsTaskFailed, ObsZombieEnded, ObsCommitDone, ObsDeadLettered,
		ObsDeadLetterRefused, ObsCommitRolledBack, ObsCommitLost, ObsCommitOverran, ObsSessionLost, ObsGivenBack,
		ObsRollbackFailed, ObsRollbackOverran, ObsMaxHold:
		return true
	}
	return false
}

// String tells the observation with messages counted from m1 and processes as A and B.
func (o Observation) String() string {
	p := string(rune('A' + o.Proc))
	switch {
	case o.Kind == ObsMaxHold:
		return fmt.Sprintf("%s: %s key %d", p, o.Kind, o.Msg)
	case o.Kind.hasMessage():
		return fmt.Sprintf("%s: %s m%d", p, o.Kind, o.Msg+1)
	}
	return fmt.Sprintf("%s: %s", p, o.Kind)
}

// String is the name without its prefix, in words.
func (k ObservationKind) String() string {
	if k >= obsEnd {
		return fmt.Sprint("observation ", uint8(k))
	}
	return [obsEnd]string{
		ObsReceiveIssued: "receive issued", ObsReceiveReturned: "receive returned", ObsReceiveEmpty: "receive empty",
		ObsReceiveLost: "receive lost", ObsTaskStarted: "task started", ObsTaskFailed: "task failed",
		ObsZombieEnded: "zombie ended", ObsCommitDone: "commit done", ObsDeadLettered: "dead-lettered",
		ObsDeadLetterRefused: "dead letter refused", ObsCommitRolledBack: "commit rolled back",
		ObsCommitLost: "commit lost", ObsCommitOverran: "commit overran", ObsSessionLost: "session lost",
		ObsSessionsLost: "sessions lost", ObsConnectionLost: "connection lost", ObsGivenBack: "given back",
		ObsRollbackFailed: "rollback failed", ObsRollbackOverran: "rollback overran",
		ObsConnectionClosed: "connection closed", ObsDeadlinePassed: "deadline passed", ObsReadResumed: "read resumed",
		ObsMaxHold: "max hold", ObsShutdown: "shutdown", ObsStop: "stop", ObsStarted: "started", ObsRoleReleased: "role released",
		ObsRoleLost: "role lost", ObsActivated: "activated", ObsProcessDied: "process died",
	}[k]
}

// observations are the kinds a step can be seen as; none for a step that only the broker knows of.
func (k StepKind) observations() []ObservationKind {
	switch k {
	case StepReceiveIssued:
		return []ObservationKind{ObsReceiveIssued}
	case StepReceiveReturns, StepReceiveFromPrefetch:
		return []ObservationKind{ObsReceiveReturned}
	case StepReceiveEmpty:
		return []ObservationKind{ObsReceiveEmpty}
	case StepReceiveLossNoticed:
		return []ObservationKind{ObsReceiveLost}
	case StepStart, StepRestart:
		return []ObservationKind{ObsTaskStarted}
	case StepTaskFails:
		return []ObservationKind{ObsTaskFailed}
	case StepZombieEnds:
		return []ObservationKind{ObsZombieEnded}
	case StepCommit:
		return []ObservationKind{ObsCommitDone}
	case StepDeadLetter:
		return []ObservationKind{ObsDeadLettered}
	case StepHungDone: // the model does not tell which of the two hung
		return []ObservationKind{ObsCommitDone, ObsDeadLettered}
	case StepDeadLetterRefused:
		return []ObservationKind{ObsDeadLetterRefused}
	case StepCommitStale, StepCommitRolledBack, StepHungRolledBack:
		return []ObservationKind{ObsCommitRolledBack}
	case StepCommitLinkDead, StepCommitDoneReplyLost, StepCommitNotDoneLost, StepHungLost:
		return []ObservationKind{ObsCommitLost}
	case StepCommitHangs:
		return []ObservationKind{ObsCommitOverran}
	case StepLossNoticed:
		return []ObservationKind{ObsSessionLost}
	case StepLossesNoticed:
		return []ObservationKind{ObsSessionsLost}
	case StepConnectionLossNoticed:
		return []ObservationKind{ObsConnectionLost}
	case StepGiveBack, StepHungRollbackDone:
		return []ObservationKind{ObsGivenBack}
	case StepRollbackFails, StepHungRollbackFails:
		return []ObservationKind{ObsRollbackFailed}
	case StepRollbackHangs:
		return []ObservationKind{ObsRollbackOverran}
	case StepCloseConnection, StepForceClose:
		return []ObservationKind{ObsConnectionClosed}
	case StepDeadlinePasses:
		return []ObservationKind{ObsDeadlinePassed}
	case StepReadOn:
		return []ObservationKind{ObsReadResumed}
	case StepMaxHold:
		return []ObservationKind{ObsMaxHold}
	case StepShutdown:
		return []ObservationKind{ObsShutdown}
	case StepStop:
		return []ObservationKind{ObsStop}
	case StepStartAgain:
		return []ObservationKind{ObsStarted}
	case StepRelease:
		return []ObservationKind{ObsRoleReleased}
	case StepRoleLossNoticed:
		return []ObservationKind{ObsRoleLost}
	case StepTakeover:
		return []ObservationKind{ObsActivated}
	case StepProcessDies:
		return []ObservationKind{ObsProcessDied}
	}
	return nil
}

// Observe is what of a path of the model can be seen.
func Observe(path []Step) []Observation {
	var out []Observation
	for _, s := range path {
		if kinds := s.Kind.observations(); len(kinds) > 0 {
			o := Observation{Kind: kinds[0], Proc: s.Proc}
			if o.Kind.hasMessage() {
				o.Msg = s.Msg
			}
			out = append(out, o)
		}
	}
	return out
}
