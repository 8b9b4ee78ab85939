package keyseq

import (
	"errors"
	"fmt"
	"time"
)

// deliveriesAlone is how often a suspect may be delivered beyond MaxDeliveries. The broker's count rises for everything that a dying process
// held, so a high count proves little; one that goes on rising while the message ran alone proves more. It proves nothing of a process that is alive:
// what it has received before, and survived, is not given up by it, however often connections were lost since.
const deliveriesAlone = 2

var errSuspect = errors.New("delivered too often: it may be what kills the process")

// admitSuspect lets a message that was delivered more often than MaxDeliveries run alone: nothing else runs or is read until its attempt
// has ended. So if it kills the process, the count of no other running message rises. False ends the reader.
func (rd *reader) admitSuspect(h held) bool {
	m, r := rd.r.m, rd.r
	count := h.msg.DeliveryCount
	survived := m.survived.add(h.msg.ID)
	if count > m.cfg.MaxDeliveries+deliveriesAlone && !survived {
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

// quiet waits until nothing runs or is about to, but no longer than DrainTimeout: keys that never rest must not stop the reading for a suspect.
func (rd *reader) quiet() bool {
	limit := time.NewTimer(rd.r.m.cfg.DrainTimeout)
	defer limit.Stop()
	for {
		if s := rd.r.m.d.Stats(); s.Running == 0 && s.Ready == 0 {
			return true
		}
		select {
		case <-rd.r.m.d.Quiet():
		case <-limit.C:
			return true
		case <-rd.ctx.Done():
			return false
		}
	}
}

// seenBefore remembers which messages this process has received, by ID. It forgets everything when it is full: then a message is taken for a new one
// once more.
type seenBefore struct {
	ids map[string]struct{}
}

// add remembers a message; true if it was there. Only the reader calls it.
func (s *seenBefore) add(id string) bool {
	if _, known := s.ids[id]; known {
		return true
	}
	if s.ids == nil || len(s.ids) >= rememberedMessages {
		s.ids = map[string]struct{}{}
	}
	s.ids[id] = struct{}{}
	return false
}
