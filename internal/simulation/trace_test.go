package simulation

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/keyseq/keyseq/internal/model"
	"github.com/keyseq/keyseq/provider/memory"
)

// model is what the trace has to be a trace of.
func (s tie) model(seen []model.Observation, holds int) model.Config {
	p := tieProfiles[s.profile]
	inPlace := p.Rollback == memory.RollbackInPlace
	c := model.Base()
	c.Keys, c.MaxInFlight, c.Workers = s.keys, model.MaxHeld, s.workers
	c.ReturnDelay, c.RollbackInPlace = p.ReturnDelay > 0, inPlace
	c.ReadDuringWait, c.OwnReadLoop, c.TaskFails, c.Stop, c.StartAgain = inPlace, true, true, true, true
	c.DeadLetters, c.AtomicSends, c.MaxHolds = s.letters, true, holds
	c.FaultKinds, c.Faults = 0, 0
	fault := func(kinds model.Fault) {
		if !inPlace { // there a lost session costs the connection
			kinds |= model.FaultConnection
			c.Faults++
		}
		c.FaultKinds |= kinds
		c.Faults++
	}
	for _, st := range s.steps {
		switch st.kind {
		case breakLink:
			fault(model.FaultConnection)
		case loseSession:
			fault(model.FaultCut)
		case takeBack:
			fault(model.FaultSilent)
		case loseReceive:
			fault(model.FaultTake)
		case commitRolledBack, commitLostReply, commitLostBefore:
			// The reply may come after others have seen what it tells.
			fault(model.FaultCommit | model.FaultSilent | model.FaultCut)
		case commitHangs:
			fault(model.FaultHang)
		case rollbackHangs:
			fault(model.FaultRollbackHang)
			fault(model.FaultConnection) // the manager takes it for lost
		case stopStart, shutdownStart:
			c.Shutdowns++
		}
	}
	c.Shutdowns++ // at the end
	for _, o := range seen {
		if o.Kind == model.ObsDeadLetterRefused {
			fault(model.FaultRefuse)
		}
	}
	if !inPlace { // the manager is told a moment later, when other keys may have begun: not needed for order
		c = c.Without(model.ClauseDrain)
	}
	return c
}

// unseen are the kinds that the recorder does not see.
var unseen = []model.ObservationKind{model.ObsCommitOverran, model.ObsRollbackOverran, model.ObsDeadlinePassed, model.ObsReadResumed, model.ObsSessionLost,
	model.ObsSessionsLost, model.ObsMaxHold, model.ObsShutdown, model.ObsStop, model.ObsStarted, model.ObsRoleReleased}

// checkTie says what is wrong with the trace of a schedule.
func checkTie(t *testing.T, s tie) (seen []model.Observation, states int, err error) {
	seen, holds := s.record(t)
	k := model.NewChecker(s.model(seen, holds), 100_000, unseen...)
	for _, o := range seen {
		if err := k.Observe(o); err != nil {
			return seen, states, err
		}
		states = max(states, k.States())
	}
	return seen, states, nil
}

// traces checks schedules until more says no. One processor only: between what happens and its record no other goroutine then runs, but for
// the rare moment that the scheduler chooses; so a trace counts as rejected if it is so three times.
func traces(t *testing.T, more func(n int) bool, first uint64) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	n, tooMany, most, events := 0, 0, 0, 0
	for ; more(n); n++ {
		s := drawTie(first + uint64(n))
		for try := 1; ; try++ {
			seen, states, err := checkTie(t, s)
			most, events = max(most, states), events+len(seen)
			if errors.Is(err, model.ErrTooManyStates) {
				tooMany++
				break
			}
			if err == nil {
				break
			}
			if try == 3 {
				var b strings.Builder
				for i, o := range seen {
					fmt.Fprintf(&b, "%3d %v\n", i+1, o)
				}
				t.Fatalf("%v%s%v\nreplay: go test ./internal/simulation -run TestTrace -seed %d", s, b.String(), err, s.seed)
			}
		}
	}
	t.Logf("%d traces, %d observations, at most %d states explained one; %d had too many", n, events, most, tooMany)
	if tooMany > n/20 {
		t.Errorf("%d of %d traces have too many explanations", tooMany, n)
	}
}

// TestTraces: what the real manager does is what the model of the give-back rule allows.
func TestTraces(t *testing.T) {
	traces(t, func(n int) bool { return n < *ties }, *first)
}

// TestTrace checks the trace of one seed.
func TestTrace(t *testing.T) {
	if *oneSeed == 0 {
		t.Skip("name a seed with -seed")
	}
	traces(t, func(n int) bool { return n < 1 }, *oneSeed)
}

func TestTraceSoak(t *testing.T) {
	if *soak == 0 {
		t.Skip("say how long with -soak 10m")
	}
	begin := time.Now()
	traces(t, func(int) bool { return time.Since(begin) < *soak }, uint64(begin.UnixNano()))
}
