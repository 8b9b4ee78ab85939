package keyseq

import (
	"errors"
	"fmt"
	"time"

	"github.com/keyseq/keyseq/jms"
)

// The give-back rule keeps the order of a key when a message of it leaves the manager unsettled: the commit was rolled back or is in
// doubt, a session or the connection is lost, a message was held too long, the run stops. After it the queue itself
// holds the truth about the key, so nothing has to be remembered, matched or inserted. It costs a redelivery for a few innocents on a
// rare event. The clauses, explored exhaustively by internal/model (docs/model.md):
//
//  1. At once the key starts nothing more; a running task keeps its place until it ends. (keyqueue: Left, Stay, BlockWhere; a lost
//     connection: Halt.)
//  2. Reading stops and the outstanding Receive has returned (reader.stop) before anything is given back. What it brings is treated like
//     the rest. If it is lost, the message is unknown, and clause 4 is for the whole queue.
//  3. What the key holds that does not run is given back newest first (giveBack). A Rollback that fails is a new loss.
//  4. Reading goes on when the return delay has passed since the LAST loss of any session of the queue, counted from when its session was
//     closed: one deadline, moved by every loss, kept over Stop and Start (lossBegins, lossEnds, readable). What leaves unsettled again and again
//     moves it as well (calm).
//  5. A commit that overran its CallTimeout is no loss yet: its worker is freed, the message stays its key's head (stuck.go). A Receive or a
//     Rollback that did costs its connection.
//  6. If a rollback does not keep the place: start nothing on any key, let running tasks settle, close the connection (run.reopen).
//  7. Connection or role lost: all sessions are closed at once (run.dropLink); the role is released last (run.drain).
//
// Refinement: with rollbacks in place and no lost Receive or connection, reading goes on while clause 4 waits; the key stays blocked, what
// comes of it is held, and all of it is given back at the deadline. So the other keys do not pause.

// lossBegins says that a session was lost whose message the broker may still lock. Until lossEnds nothing of its key, or of the queue, is read.
func (r *run) lossBegins() {
	r.m.mu.Lock()
	r.m.losing++
	r.m.mu.Unlock()
}

// lossEnds: the lost session is closed as far as it can be; from now on the broker has the return delay to notice.
func (r *run) lossEnds(delay time.Duration) {
	if delay > 0 {
		delay += returnMargin
	}
	r.m.mu.Lock()
	r.m.losing--
	if at := time.Now().Add(delay); at.After(r.m.readAfter) {
		r.m.readAfter = at
	}
	r.m.mu.Unlock()
	r.ring()
}

// returnMargin is added to a return delay: a broker that acts at the very end of it must be first.
const returnMargin = 10 * time.Millisecond

// readable says whether everything lost is back in the queue; if not, how long to wait (0: until a close has returned).
func (m *SequenceManager) readable() (ok bool, wait time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.losing > 0 {
		return false, 0
	}
	wait = time.Until(m.readAfter)
	return wait <= 0, max(wait, 0)
}

// collect takes over the keys that turns have blocked.
func (r *run) collect() {
	r.leaving = append(r.leaving, r.m.d.Leaving()...)
}

// giveBack gives back what the blocked keys hold and do not run, and lets them go on. Reading must have stopped. A key of which a message was lost
// on the way stays blocked, for the deadline has moved.
func (r *run) giveBack() {
	m := r.m
	keys := r.leaving
	r.leaving = nil
	for _, k := range keys {
		items := m.d.TakeBack(k)
		lost := false
		for i := range items { // newest first
			if !r.giveBackOne(k, &items[i]) {
				lost = true
			}
		}
		m.d.Returned(len(items))
		if lost || !m.d.Release(k) {
			r.leaving = append(r.leaving, k)
		}
	}
}

// giveBackOne rolls back one message; false if it was lost on the way.
func (r *run) giveBackOne(k *keyQueue, h *held) bool {
	m, s := r.m, h.session
	r.lastRound.Store(time.Now().UnixNano()) // each may take CallTimeout
	m.rememberUnsettled(h, h.pending, jms.ErrRolledBack)
	m.rareCallback(func() {
		if p := h.pending; p != nil && p.kind == settleCommit {
			m.onError(r, p.attempt, fmt.Errorf("keyseq: queue %q, key %q: given back before it could be settled: %w", m.queue, h.key, jms.ErrRolledBack), true)
		}
		m.toldRolledBack(h, nil)
	})
	if s.link.lost.Load() {
		return true // its loss was served
	}
	err := r.rollback(k, s)
	switch {
	case err == nil:
		s.link.pool.put(s)
		return true
	case errors.Is(err, jms.ErrConnectionLost):
		r.linkLost(s.link, err)
		return false
	case backAlready(err):
		r.discard(s, false, 0)
		return true
	}
	m.log.Warn("giving a message back failed; reading of its key waits until the broker has it", "queue", m.queue, "key", h.key, "message", h.msg.ID, "return_delay", s.link.returnDelay, "error", err)
	r.discard(s, true, 0)
	return false
}

// rollback calls Rollback. One that overruns CallTimeout may have its effect at any time later, unless its connection ends. So that is given up: all
// that it holds comes again, and what is still to be given back waits for no second such call.
func (r *run) rollback(k *keyQueue, s *session) error {
	err := boundedErr(r.values, r.m.cfg.CallTimeout, s.Rollback)
	if errors.Is(err, errOverrun) {
		r.stuck(k.Name(), callRollback)
		return fmt.Errorf("%w: giving a message back: %w", jms.ErrConnectionLost, err)
	}
	return err
}

// sweepOld looks now and then for what has been held too long; a look visits every key.
func (r *run) sweepOld(limit time.Duration) {
	if now := time.Now(); limit > 0 && now.Sub(r.lastSweep) >= limit/64 {
		r.lastSweep = now
		r.tooOld(limit)
	}
}

// tooOld blocks the keys of which something has been held too long without running, to be given back.
func (r *run) tooOld(limit time.Duration) {
	before := time.Now().Add(-limit)
	old := r.m.d.BlockWhere(func(v keyView) bool {
		oldest := v.Head
		if v.Running {
			oldest = v.Second
		}
		return oldest != nil && oldest.receivedAt.Before(before)
	})
	if len(old) == 0 {
		return
	}
	r.m.log.Info("messages were held as long as allowed and go back, to be received anew", "queue", r.m.queue, "keys", len(old), "first_key", old[0].Name(), "max_hold", limit)
	r.leaving = append(r.leaving, old...)
}
