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

// Successor is a state reached by one step.
type Successor struct {
	State State
	Step  Step
	// Fault: the step used up a fault. Policy: it is up to user or policy (a failed task, MaxHold, Shutdown).
	// Neither counts as progress, nor as a way round in a livelock.
	Fault, Policy bool
	// Fires: the rule begins or begins again.
	Fires bool
	// Violation is the guarantee this step breaks.
	Violation string
}

// expansion collects the successors of one state.
type expansion struct {
	c   *Config
	s   *State
	out []Successor
}

func (x *expansion) add(t State, kind StepKind, p, m uint8) *Successor {
	x.out = append(x.out, Successor{State: t, Step: Step{kind, p, m}})
	return &x.out[len(x.out)-1]
}

func (x *expansion) fault(t State, kind StepKind, p, m uint8) *Successor {
	t.FaultsLeft--
	r := x.add(t, kind, p, m)
	r.Fault = true
	return r
}

// canFault says whether a fault of kind f may happen now.
func (x *expansion) canFault(f Fault) bool { return x.s.FaultsLeft > 0 && x.c.can(f) }

// Successors appends every state that one step leads to from s.
func (c *Config) Successors(s State, out []Successor) []Successor {
	x := expansion{c: c, s: &s, out: out}
	first := len(out)
	for p := uint8(0); p < 2; p++ {
		x.processSteps(p)
	}
	for i := 0; i < int(s.NHeld); i++ {
		x.brokerStepsOf(i)
		if !s.Proc[s.Held[i].Proc].Frozen {
			x.noticeStep(i)
			x.workerSteps(i)
		}
	}
	x.orphanSteps()
	x.ackSteps()
	for i := first; i < len(x.out); i++ {
		if x.out[i].Violation == "" {
			c.checkSettlement(&s, &x.out[i])
		}
	}
	return x.out
}

func (x *expansion) processSteps(p uint8) {
	g := &x.s.Proc[p]
	switch {
	case g.Frozen:
		x.frozenSteps(p)
	case g.Mode == ModeOff:
	case g.Mode == ModeDead:
		x.ghostSteps(p)
	case g.Mode == ModeStandby:
		x.takeoverStep(p)
	default:
		x.readerSteps(p)
		x.giveBackSteps(p)
		x.waitStep(p)
		x.lifecycleSteps(p)
		x.connectionSteps(p)
		x.probeSteps(p)
		x.forceCloseStep(p)
	}
}

// active says whether the process reads and works; it may be wrong about the role.
func (g *Process) active() bool { return g.Mode == ModeActive || g.Mode == ModeOusted }

// leaving says whether Stop or Shutdown was called and the role is not yet released.
func (g *Process) leaving() bool { return g.Mode == ModeDrain || g.Mode == ModeFinish }
