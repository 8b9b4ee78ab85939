package simulation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/internal/model"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/orderaudit"
	"github.com/keyseq/keyseq/provider/memory"
)

// tieProfiles are brokers within the model: they are asked, and give back in place, after a while, or by connections only.
var tieProfiles = []memory.Profile{
	{Name: "plain"},
	{Name: "late", ReturnDelay: 15 * time.Second, Deaf: time.Second, NoDeliveryCount: true},
	{Name: "by connections", ReturnDelay: 5 * time.Second, Rollback: memory.RollbackLosesConnection},
}

// tie is a small schedule within the bounds of the model.
type tie struct {
	seed    uint64
	profile int
	keys    []uint8
	workers int
	held    int
	maxHold time.Duration
	letters bool
	fails   float64
	steps   []step
}

var tieSteps = []stepKind{breakLink, loseSession, loseReceive, takeBack, commitRolledBack, commitLostReply, commitLostBefore, commitHangs, rollbackHangs, deadLettersInhibited, stopStart, shutdownStart}

func drawTie(seed uint64) tie {
	r := rand.New(rand.NewPCG(seed, 0x6d6f64656c))
	s := tie{seed: seed, profile: r.IntN(len(tieProfiles)), workers: 1 + r.IntN(2), held: 1 + r.IntN(4), fails: r.Float64() * 0.3, letters: r.IntN(3) == 0}
	two := r.IntN(2) == 0
	for range 2 + r.IntN(4) {
		k := uint8(0)
		if two {
			k = uint8(r.IntN(2))
		}
		s.keys = append(s.keys, k)
	}
	if r.IntN(4) == 0 {
		s.maxHold = 10 * time.Second
	}
	for range r.IntN(3) {
		s.steps = append(s.steps, step{at: time.Duration(r.Int64N(int64(8 * time.Second))).Truncate(time.Millisecond), kind: tieSteps[r.IntN(len(tieSteps))], n: r.Uint64()})
	}
	return s
}

func (s tie) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: broker %q, keys %v, workers %d, max in flight %d, max hold %v, dead letters %t, failures %.2f\n", s.seed, tieProfiles[s.profile].Name, s.keys, s.workers, s.held, s.maxHold, s.letters, s.fails)
	for _, st := range s.steps {
		fmt.Fprintf(&b, "  %v\n", st)
	}
	return b.String()
}

// record runs the real manager and returns what it was seen to do.
func (s tie) record(t *testing.T) (seen []model.Observation, holds int) {
	synctest.Test(t, func(t *testing.T) {
		p := tieProfiles[s.profile]
		b, err := memory.NewBroker(p, memory.Queue{Name: queue}, memory.Queue{Name: deadQueue})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		w := &world{t: t, broker: b, rec: orderaudit.NewRecorder(), faults: map[memory.CallKind][]fault{}, logs: &logBuffer{}}
		b.SetHook(w.hook)
		r := &recorder{held: map[*jms.Message]*copyOf{}}
		m := s.manager(t, b, r)
		for i, k := range s.keys {
			if _, err := b.Send(jms.Outgoing{Queue: queue, Properties: map[string]any{"key": fmt.Sprint("k", k), "seq": int64(i)}}); err != nil {
				t.Fatal(err)
			}
		}
		begin := func() {
			for m.Start(context.Background()) != nil {
				time.Sleep(time.Second)
			}
		}
		begin()
		for _, st := range s.steps {
			time.Sleep(st.at)
			s.do(w, m, st, begin)
		}
		for range 600 {
			if b.Depth(queue) == 0 {
				break
			}
			time.Sleep(time.Second)
		}
		if n := b.Depth(queue); n > 0 {
			t.Errorf("%v%d messages are left after ten minutes", s, n)
		}
		if err := m.Shutdown(context.Background()); err != nil {
			t.Errorf("%vshutdown: %v", s, err)
		}
		time.Sleep(time.Minute)
		r.mu.Lock()
		defer r.mu.Unlock()
		seen, holds = r.seen, r.kept
	})
	return seen, holds
}

func (s tie) manager(t *testing.T, b *memory.Broker, r *recorder) *keyseq.SequenceManager {
	fails := errors.New("fails")
	choices := schedule{seed: s.seed}
	listener := keyseq.ListenerFuncs{Task: func(ctx context.Context, d *keyseq.Delivery) error {
		r.starts(d.Message)
		seq := seqOf(d.Message)
		pick := func(what string) float64 { return choices.choice(d.Key, seq, d.Attempt, what) }
		timer := time.NewTimer(time.Duration(pick("length") * pick("short") * float64(4*time.Second)))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			if pick("deaf") < 0.5 {
				r.fails(d.Message)
				return ctx.Err()
			}
			<-timer.C
		}
		switch {
		case pick("fails") >= s.fails:
			return nil
		case s.letters && pick("letter") < 0.5:
			return keyseq.DeadLetter(fails)
		}
		r.fails(d.Message)
		return fails
	}}
	m, err := keyseq.NewSequenceManager(queue, recordedFactory{b, r}, listener, keyseq.KeyFromProperty("key"), func(c *keyseq.Config) {
		c.Workers, c.MaxInFlight, c.MaxHold = s.workers, s.held, s.maxHold
		c.TaskTimeout, c.CallTimeout, c.DrainTimeout = 10*time.Second, callTimeout, time.Minute
		c.Retry = keyseq.RetryPolicy{MaxRetries: keyseq.Unlimited, Backoff: keyseq.StepBackoff(0, time.Second, 3*time.Second)}
		c.Reconnect = keyseq.FixedBackoff(100 * time.Millisecond)
		if s.letters {
			c.DeadLetterQueue = deadQueue
		}
		c.Logger = slog.New(r)
		c.Events = []keyseq.Events{{RolledBack: r.left, Stuck: r.stuck}}
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (s tie) do(w *world, m *keyseq.SequenceManager, st step, begin func()) {
	hang := time.Duration(1+st.n%9) * time.Second
	switch st.kind {
	case breakLink:
		_, _ = w.broker.Break(queue, memory.Loss{})
	case loseSession, takeBack:
		held, _ := w.broker.Held(queue)
		if len(held) == 0 {
			return
		}
		id := held[st.n%uint64(len(held))].ID
		if st.kind == loseSession {
			_ = w.broker.LoseSession(id, memory.Loss{})
		} else {
			_ = w.broker.TakeBack(id)
		}
	case loseReceive:
		w.fault(memory.CallReceive, fault{after: true, err: jms.ErrSessionLost})
	case commitRolledBack:
		w.fault(memory.CallCommit, fault{err: jms.ErrRolledBack})
	case commitLostReply:
		w.fault(memory.CallCommit, fault{after: true, err: jms.ErrCommitUnknown})
	case commitLostBefore:
		w.fault(memory.CallCommit, fault{err: jms.ErrCommitUnknown})
	case commitHangs:
		w.fault(memory.CallCommit, fault{hang: hang}) // in the model the effect comes with the reply
	case rollbackHangs:
		w.fault(memory.CallRollback, fault{after: st.n%2 == 0, hang: hang})
	case deadLettersInhibited:
		w.inhibit(w.broker.InhibitPut, deadQueue)
	case stopStart:
		_ = m.Stop(context.Background())
		begin()
	case shutdownStart:
		_ = m.Shutdown(context.Background())
		begin()
	}
}
