package model

import "fmt"

// StepKind is what happens in a step.
type StepKind uint8

const (
	StepReceiveIssued StepKind = iota
	StepBrokerTakes
	StepReceiveReturns
	StepReceiveEmpty
	StepReceiveLost
	StepReceiveLossNoticed
	StepReceiveDeaf
	StepBrokerPushes
	StepReceiveFromPrefetch
	StepStart
	StepRestart
	StepTaskFails
	StepZombieEnds
	StepCommit
	StepCommitStale
	StepCommitLinkDead
	StepCommitRolledBack
	StepCommitDoneReplyLost
	StepCommitNotDoneLost
	StepCommitHangs
	StepHungDone
	StepHungRolledBack
	StepHungLost
	StepHungTakesEffect
	StepAbandonedDone
	StepAbandonedRolledBack
	StepDeadLetter
	StepDeadLetterRefused
	StepPublish
	StepPublishConfirmed
	StepAckFlushed
	StepAckProcessed
	StepAcksLost
	StepSilentRollback
	StepCut
	StepCutAll
	StepCutConnection
	StepLossNoticed
	StepLossesNoticed
	StepConnectionLossNoticed
	StepBrokerNotices
	StepBrokerNoticesOrphan
	StepBrokerNoticesConnection
	StepGiveBack
	StepRollbackFails
	StepRollbackHangs
	StepHungRollbackDone
	StepHungRollbackFails
	StepCloseConnection
	StepForceClose
	StepDeadlinePasses
	StepReadOn
	StepMaxHold
	StepShutdown
	StepStop
	StepStartAgain
	StepRelease
	StepRoleLost
	StepRoleLossNoticed
	StepProcessDies
	StepGhostReceiveTakes
	StepGhostReceiveEnds
	StepTakeover
	StepFreeze
	StepThaw
	StepBrokerDropsFrozen
	StepProbeTooOld
	stepEnd
)

// Step is one step: its kind, the process, and the message (or the key for StepMaxHold).
type Step struct {
	Kind StepKind
	Proc uint8
	Msg  uint8
}

// String tells the step with the message counted from m1 and the process as A or B.
func (t Step) String() string {
	p, m := string(rune('A'+t.Proc)), fmt.Sprint("m", t.Msg+1)
	switch t.Kind {
	case StepMaxHold:
		m = fmt.Sprint("key ", t.Msg)
	case StepBrokerNoticesOrphan, StepAbandonedDone, StepAbandonedRolledBack, StepAckProcessed, StepAcksLost, StepAckFlushed:
		p = ""
	}
	r := []byte(nil)
	f := stepFormats()[t.Kind]
	for i := 0; i < len(f); i++ {
		switch f[i] {
		case '@':
			r = append(r, p...)
		case '#':
			r = append(r, m...)
		default:
			r = append(r, f[i])
		}
	}
	return string(r)
}

// stepFormats has the text of each kind: @ is the process, # the message.
func stepFormats() [stepEnd]string {
	return [stepEnd]string{
		StepReceiveIssued:           "@: issues Receive",
		StepBrokerTakes:             "broker gives # to the waiting Receive of @",
		StepReceiveReturns:          "@: Receive brings #",
		StepReceiveEmpty:            "@: outstanding Receive ends empty",
		StepReceiveLost:             "FAULT @: Receive takes #, reply and session lost",
		StepReceiveLossNoticed:      "@: notices the lost Receive",
		StepReceiveDeaf:             "FAULT @: the outstanding Receive never returns",
		StepBrokerPushes:            "broker pushes # to @",
		StepReceiveFromPrefetch:     "@: Receive brings # from the prefetch",
		StepStart:                   "@: STARTS #",
		StepRestart:                 "@: RESTARTS # in place",
		StepTaskFails:               "@: task # fails",
		StepZombieEnds:              "@: zombie task # ends",
		StepCommit:                  "@: # commit ok",
		StepCommitStale:             "@: # commit says rolled back (it was long ago)",
		StepCommitLinkDead:          "@: # commit finds its session lost",
		StepCommitRolledBack:        "FAULT @: # commit says rolled back",
		StepCommitDoneReplyLost:     "FAULT @: # commit DONE, reply and session lost",
		StepCommitNotDoneLost:       "FAULT @: # commit not done, session lost, lock stays",
		StepCommitHangs:             "FAULT @: # commit hangs past CallTimeout",
		StepHungDone:                "@: hung commit of # is done after all",
		StepHungRolledBack:          "@: hung commit of # ends: rolled back",
		StepHungLost:                "@: hung commit of # ends: session lost",
		StepHungTakesEffect:         "broker does the commit of # of @ that never returns",
		StepAbandonedDone:           "abandoned commit of # is done after all",
		StepAbandonedRolledBack:     "abandoned commit of # ends: rolled back",
		StepDeadLetter:              "@: # settled by its dead letter",
		StepDeadLetterRefused:       "FAULT @: dead letter of # is refused",
		StepPublish:                 "@: publishes the dead letter of #",
		StepPublishConfirmed:        "@: dead letter of # is confirmed",
		StepAckFlushed:              "ack of # is written late",
		StepAckProcessed:            "broker processes the ack of #",
		StepAcksLost:                "broker notices the dead connection: acks from # on are lost, all available",
		StepSilentRollback:          "FAULT @: broker silently rolls back held #",
		StepCut:                     "FAULT @: link of #'s session dies unnoticed",
		StepCutAll:                  "FAULT @: all links die unnoticed",
		StepCutConnection:           "FAULT @: the connection dies unnoticed",
		StepLossNoticed:             "@: notices the loss of #'s session",
		StepLossesNoticed:           "@: notices the loss of several sessions",
		StepConnectionLossNoticed:   "@: notices the loss of the connection",
		StepBrokerNotices:           "broker notices dead session of @'s #: available",
		StepBrokerNoticesOrphan:     "broker notices dead session: # available",
		StepBrokerNoticesConnection: "broker notices the dead connection: all available, acks under way lost",
		StepGiveBack:                "@: gives back #",
		StepRollbackFails:           "@: gives back #: Rollback fails, session lost",
		StepRollbackHangs:           "FAULT @: gives back #: Rollback hangs past CallTimeout",
		StepHungRollbackDone:        "@: hung Rollback of # ends: given back",
		StepHungRollbackFails:       "@: hung Rollback of # ends: session lost",
		StepCloseConnection:         "@: closes the connection to give back",
		StepForceClose:              "@: closes the connection to end a call that never returns",
		StepDeadlinePasses:          "@: ReturnDelay is over",
		StepReadOn:                  "@: reads on",
		StepMaxHold:                 "@: MaxHold of #",
		StepShutdown:                "@: Shutdown called",
		StepStop:                    "@: Stop called",
		StepStartAgain:              "@: Start called again",
		StepRelease:                 "@: releases the role",
		StepRoleLost:                "FAULT @: loses the role, has not noticed",
		StepRoleLossNoticed:         "@: notices that the role is lost",
		StepProcessDies:             "FAULT @: process dies",
		StepGhostReceiveTakes:       "dead @'s Receive takes # at the broker",
		StepGhostReceiveEnds:        "broker notices the Receive of dead @ and ends it",
		StepTakeover:                "@: TakeoverDelay is over, active",
		StepFreeze:                  "FAULT @: process is stopped as a whole",
		StepThaw:                    "@: process goes on",
		StepBrokerDropsFrozen:       "broker drops all sessions of the silent @, its lock too",
		StepProbeTooOld:             "@: the last successful probe is too old",
	}
}
