package keyseq

import (
	"errors"
	"fmt"
	"time"

	"github.com/keyseq/keyseq/jms"
)

// errReaderExited is what user code does to the reader that ends its goroutine.
var errReaderExited = errors.New("a KeyExtractor or an event func ended the reading goroutine with runtime.Goexit (t.FailNow does): return an error instead")

// admit puts a received message into the queue of its key, in the place that was reserved for it; false ends the reader. If user code ends
// the goroutine, the message must not stay behind: it goes back, and the run ends, for what comes after it must not overtake.
func (rd *reader) admit(s *session, msg *Message) bool {
	m := rd.r.m
	if rd.l.lost.Load() { // it comes again
		m.d.Cancel()
		return false
	}
	m.counters.received.Add(1)
	h := held{msg: msg, session: s, receivedAt: time.Now()}
	if !rd.l.served.Load() && !rd.firstMessage() {
		m.d.AddLeaving(msg.ID, h, len(msg.Body))
		return false
	}
	returned := false
	defer func() {
		if !returned {
			m.extracting.Store(0)
			m.d.AddLeaving(msg.ID, h, len(msg.Body))
			rd.r.fail(fmt.Errorf("keyseq: queue %q, message %q: %w", m.queue, msg.ID, errReaderExited))
		}
	}()
	goOn := rd.place(h)
	returned = true
	return goOn
}

// place finds the key and the place of a message.
func (rd *reader) place(h held) bool {
	m, msg := rd.r.m, h.msg
	h.past = m.memory.recall(m.stableID(&h))
	m.extracting.Store(h.receivedAt.UnixNano())
	key, err := extractKey(m.key, msg)
	h.key = key
	if rd.tooLate(&h) {
		return false
	}
	if err == nil && key == "" && m.cfg.OnEmptyKey == EmptyKeyError {
		err = errors.New("the key is empty")
	}
	if err != nil {
		m.extracting.Store(0)
		return rd.admitWithoutKey(h, err)
	}
	rd.r.rereads = 0
	if m.observed {
		m.tell(func(e *Events) func(MessageEvent) { return e.Received }, MessageEvent{Delivery: m.overDelivery(&h)})
		if rd.tooLate(&h) {
			return false
		}
	}
	m.extracting.Store(0)
	if m.cfg.MaxDeliveries > 0 && msg.DeliveryCount <= m.cfg.MaxDeliveries {
		m.survived.add(msg.ID)
	} else if m.cfg.MaxDeliveries > 0 {
		return rd.admitSuspect(h)
	}
	if key == "" {
		m.emptyKey.Do(func() {
			m.log.Warn("a message has an empty key: check the key extractor; see Config.OnEmptyKey", "queue", m.queue, "message", msg.ID)
		})
		if m.cfg.OnEmptyKey == EmptyKeyUnordered {
			m.d.AddAlone("", h, len(msg.Body))
			return true
		}
	}
	m.d.Add(key, h, len(msg.Body))
	return true
}

// tooLate says that the link was lost while the user's code had the message: it comes again, and joins no queue any more. If that code took longer
// than CallTimeout the run may even have ended, with everything that could take it out of one.
func (rd *reader) tooLate(h *held) bool {
	if !rd.l.lost.Load() {
		return false
	}
	rd.r.m.extracting.Store(0)
	rd.r.m.gone(h)
	rd.r.m.d.Cancel()
	return true
}

// mostRereads is how often a message is received anew because a part of it could not be read.
const mostRereads = 3

// admitWithoutKey does what OnKeyError says, or receives the message anew if its key was only not readable. A message without a key has no
// order to keep: it gets a queue of its own.
func (rd *reader) admitWithoutKey(h held, err error) bool {
	m, r, l := rd.r.m, rd.r, rd.l
	if r.rereads++; errors.Is(err, jms.ErrUnreadable) && l.caps.RollbackInPlace && r.rereads <= mostRereads {
		return rd.receiveAnew(h, err)
	}
	r.rereads = 0
	err = fmt.Errorf("keyseq: queue %q, message %q: key: %w", m.queue, h.msg.ID, err)
	m.log.Error("a message's key cannot be extracted; see Config.OnKeyError", "queue", m.queue, "message", h.msg.ID, "error", err)
	action := m.cfg.OnKeyError
	if action == ActionAuto {
		action = ActionStop
		if m.deadLetterQueue(l) != "" {
			action = ActionDeadLetter
		}
	}
	switch action {
	case ActionDeadLetter:
		h.pending = &settlement{kind: settleDeadLetter, reason: err}
	case ActionDiscard:
		h.pending = &settlement{kind: settleDiscard, reason: err}
	default:
		m.d.AddLeaving(h.msg.ID, h, len(h.msg.Body))
		r.fail(err)
		return false
	}
	m.d.AddAlone(h.msg.ID, h, len(h.msg.Body))
	return true
}

// receiveAnew gives the message back before anything later is read.
func (rd *reader) receiveAnew(h held, err error) bool {
	m := rd.r.m
	m.log.Warn("a message's key could not be read: receiving it anew", "queue", m.queue, "message", h.msg.ID, "error", err)
	m.toldRolledBack(&h, err)
	back := boundedErr(rd.r.values, m.cfg.CallTimeout, h.session.Rollback)
	m.d.Cancel()
	if back == nil {
		rd.l.pool.put(h.session)
		return true
	}
	rd.lost = true
	rd.why = fmt.Errorf("keyseq: queue %q, message %q: rollback: %w", m.queue, h.msg.ID, back)
	switch {
	case errors.Is(back, errOverrun): // it may have its effect at any time, unless its connection ends
		rd.r.stuck("", callRollback)
		rd.r.linkLost(rd.l, fmt.Errorf("%w: %w", jms.ErrConnectionLost, rd.why))
	case errors.Is(back, jms.ErrConnectionLost):
		rd.r.linkLost(rd.l, rd.why)
	default:
		rd.r.discard(h.session, true, 0)
	}
	return false
}
