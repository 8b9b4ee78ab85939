package keyseq

import (
	"fmt"
	"maps"
	"strings"
	"time"
	"unicode/utf8"
)

// Properties of a dead letter, documented at Config.DeadLetterQueue. They are Java identifiers, as JMS demands.
const (
	deadQueue      = "keyseq_queue"
	deadKey        = "keyseq_key"
	deadMessageID  = "keyseq_message_id"
	deadReason     = "keyseq_reason"
	deadAttempts   = "keyseq_attempts"
	deadFirst      = "keyseq_first_failure"
	deadLast       = "keyseq_last_failure"
	deadExpiration = "keyseq_expiration"
)

// maxReason is how much of an error goes into a property: IBM MQ's Go client cannot read longer ones than 1,024 bytes.
const maxReason = 1000

// deadLetter makes the copy of a message for the dead-letter queue. It never expires, whatever the original did.
func (m *SequenceManager) deadLetter(h *held, s *settlement) Outgoing {
	msg := h.msg
	p := make(map[string]any, len(msg.Properties)+8)
	maps.Copy(p, msg.Properties)
	for name, v := range p {
		if _, unreadable := v.(error); unreadable {
			delete(p, name)
		}
	}
	p[deadQueue] = m.queue
	p[deadMessageID] = msg.ID
	p[deadReason] = reasonText(s.reason)
	p[deadAttempts] = int64(h.attempts())
	if utf8.ValidString(h.key) {
		p[deadKey] = h.key
	} else {
		p[deadKey] = []byte(h.key)
	}
	if past := h.past; past != nil {
		p[deadFirst] = past.first.UTC().Format(time.RFC3339Nano)
		p[deadLast] = past.last.UTC().Format(time.RFC3339Nano)
	}
	if !msg.Expiration.IsZero() {
		p[deadExpiration] = msg.Expiration.UTC().Format(time.RFC3339Nano)
	}
	return Outgoing{
		Queue: m.deadLetterQueue(h.session.link), CorrelationID: msg.CorrelationID, GroupID: msg.GroupID, ReplyTo: msg.ReplyTo,
		Text: msg.Text, Body: msg.Body, Properties: p, Priority: &msg.Priority, NonPersistent: !msg.Persistent,
	}
}

// reasonText is an error's first lines, cut between characters.
func reasonText(err error) string {
	if err == nil {
		return ""
	}
	text := strings.ToValidUTF8(fmt.Sprint(err), "?") // Sprint also survives an Error method that panics, as that of a nil pointer may
	if len(text) <= maxReason {
		return text
	}
	cut := maxReason
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut]
}
