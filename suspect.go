package keyseq

import (
	"errors"
	"fmt"
)

// deliveriesAlone is how often a suspect may be delivered beyond MaxDeliveries. The broker's count rises for everything that a dying process
// held, so a high count proves nothing; one that goes on rising while the message was alone does.
const deliveriesAlone = 2

var errSuspect = errors.New("delivered too often: it may be what kills the process")

// admitSuspect lets a message that was delivered more often than MaxDeliveries run alone: nothing else runs or is read until its attempt
// has ended. So if it kills the process, the count of no other running message rises. False ends the reader.
func (rd *reader) admitSuspect(h held) bool {
	m, r := rd.r.m, rd.r
	count := h.msg.DeliveryCount
	if count > m.cfg.MaxDeliveries+deliveriesAlone {
		err := fmt.Errorf("keyseq: queue %q, key %q, message %q: %w (delivery %d, MaxDeliveries %d)", m.queue, h.key, h.msg.ID, errSuspect, count, m.cfg.MaxDeliveries)
		switch action := m.cfg.Retry.OnExhausted; {
		case action == ActionDiscard:
			h.pending = &settlement{kind: settleDiscard, reason: err}
		case (action == ActionAuto || action == ActionDeadLetter) && m.deadLetterQueue(rd.l) != "":
			h.pending = &settlement{kind: settleDeadLetter, reason: err}
		default:
			m.d.AddLeaving(h.key, h, len(h.msg.Body))
			r.fail(err)
			return false
		}
		m.d.Add(h.key, h, len(h.msg.Body))
		return true
	}
	m.log.Warn("a message was delivered more often than MaxDeliveries: it runs alone", "queue", m.queue, "key", h.key, "message", h.msg.ID, "deliveries", count)
	if !rd.quiet() {
		m.d.AddLeaving(h.key, h, len(h.msg.Body))
		return false
	}
	m.d.Add(h.key, h, len(h.msg.Body))
	return rd.quiet()
}

// quiet waits until nothing runs or is about to.
func (rd *reader) quiet() bool {
	for {
		if s := rd.r.m.d.Stats(); s.Running == 0 && s.Ready == 0 {
			return true
		}
		select {
		case <-rd.r.m.d.Quiet():
		case <-rd.ctx.Done():
			return false
		}
	}
}
