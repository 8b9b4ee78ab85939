package simulation

import (
	"context"
	"sync"
	"time"

	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/memory"
)

// do lets a step happen. What may lose messages is recorded as a loss, so that the audit knows what may repeat.
func (w *world) do(st step) {
	names := w.names()
	name := names[st.n%uint64(len(names))]
	w.logs.add("step", st.String())
	loss := w.rec.Loss("", stepNames[st.kind], 0)
	settled := 40 * time.Second // by then it has happened, whatever was late
	switch st.kind {
	case breakLink:
		_, _ = w.broker.Break(queue, memory.Loss{})
	case breakLate:
		_, _ = w.broker.Break(queue, memory.Loss{Client: time.Duration(st.n%3000) * time.Millisecond})
	case loseSession, takeBack:
		held, _ := w.broker.Held(queue)
		if len(held) > 0 {
			id := held[st.n%uint64(len(held))].ID
			if st.kind == loseSession {
				_ = w.broker.LoseSession(id, memory.Loss{})
			} else {
				_ = w.broker.TakeBack(id)
			}
		}
	case loseReceive:
		_, _ = w.broker.LoseReceive(queue, memory.Loss{})
	case commitRolledBack:
		w.fault(memory.CallCommit, fault{err: jms.ErrRolledBack})
	case commitLostReply:
		w.fault(memory.CallCommit, fault{after: true, err: jms.ErrCommitUnknown})
	case commitLostBefore:
		w.fault(memory.CallCommit, fault{err: jms.ErrCommitUnknown})
	case commitBusy:
		w.fault(memory.CallCommit, fault{err: jms.ErrBusy})
	case commitHangs:
		// What a policy has settled the audit knows from its event, which comes with the reply; what a task wanted to settle it knows before.
		policy := w.s.verdicts > 0 || w.s.maxRetries >= 0 || w.s.deliveries > 0 || w.s.keyErrors > 0
		w.fault(memory.CallCommit, fault{after: st.n%2 == 0 && !policy, hang: st.hang()})
	case receiveHangs:
		w.fault(memory.CallReceive, fault{after: st.n%2 == 0, hang: st.hang()})
	case rollbackFails:
		w.fault(memory.CallRollback, fault{err: []error{jms.ErrSessionLost, jms.ErrRolledBack, jms.ErrConnectionLost}[st.n%3]})
	case rollbackHangs:
		for range 1 + st.n/7%3 {
			w.fault(memory.CallRollback, fault{after: st.n%2 == 0, hang: st.hang()})
		}
	case openBusy:
		w.fault(memory.CallOpenSession, fault{err: jms.ErrBusy})
	case connectFails:
		w.fault(memory.CallConnect, fault{err: jms.ErrConnectionLost})
	case closeFails:
		// Less than CallTimeout: a connection whose close does not return may live on at the broker, and nothing says for how long.
		w.fault(memory.CallCloseConnection, fault{hang: time.Duration(st.n%4000) * time.Millisecond})
	case restartBroker:
		w.broker.Restart()
	case inhibitGet:
		w.inhibit(w.broker.InhibitGet, queue)
	case deadLettersInhibited:
		w.inhibit(w.broker.InhibitPut, deadQueue)
	case quiesce:
		w.broker.Quiesce()
		time.Sleep(5 * time.Second)
		w.broker.Restart()
	case loseRole:
		readers, _ := w.broker.Readers(queue)
		for _, r := range readers {
			if r.Active() {
				r.LoseRole(time.Duration(st.n%3000) * time.Millisecond)
			}
		}
	case connectHangs:
		w.fault(memory.CallConnect, fault{after: st.n%2 == 0, hang: st.hang()})
	case awaitHangs:
		w.fault(memory.CallAwaitActive, fault{after: st.n%2 == 0, hang: st.hang()})
	case openHangs:
		for range 1 + st.n/7%5 {
			w.fault(memory.CallOpenSession, fault{after: st.n%2 == 0, hang: st.hang()})
		}
	case sessionCloseHangs:
		w.fault(memory.CallCloseSession, fault{after: st.n%2 == 0, hang: st.hang()})
	case manyEnds:
		w.endManyTimes(name)
	case stopStart, shutdownStart, shutdownAtOnce:
		w.restart(name, st)
	}
	time.Sleep(settled)
	loss.Done()
}

// endManyTimes lets several callers end an instance in different ways, and start it, all at once.
func (w *world) endManyTimes(name string) {
	w.rec.InstanceStopping(name)
	m := w.managers[name]
	var all sync.WaitGroup
	for i, end := range []func(context.Context) error{m.Stop, m.Shutdown, m.Stop, m.Start} {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i*i*3)*time.Second)
			defer cancel()
			_ = end(ctx)
		})
	}
	all.Wait()
	w.start(name)
}

// hang is how long a call of a step does not return: one in four longer than a Stop waits for it.
func (s step) hang() time.Duration {
	if s.n/20%4 == 0 {
		return time.Minute + time.Duration(s.n%60)*time.Second
	}
	return time.Duration(s.n%20) * time.Second
}

func (w *world) fault(kind memory.CallKind, f fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults[kind] = append(w.faults[kind], f)
}

func (w *world) inhibit(set func(string, bool) error, name string) {
	_ = set(name, true)
	time.Sleep(6 * time.Second)
	_ = set(name, false)
}

// restart ends an instance in one of the ways and starts it again.
func (w *world) restart(name string, st step) {
	w.rec.InstanceStopping(name)
	m := w.managers[name]
	done := m.Done() // of this run: another step may start the next
	limit := time.Duration(1+st.n%40) * time.Second
	if st.kind == shutdownAtOnce {
		limit = 0
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	// ErrDrainTimeout is a right answer here: the start that follows waits for the rest.
	if st.kind == stopStart {
		_ = m.Stop(ctx)
	} else {
		_ = m.Shutdown(ctx)
	}
	<-done
	w.rec.InstanceStarted(name)
	w.start(name)
}
