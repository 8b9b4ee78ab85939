package jms

import (
	"strconv"
	"time"
)

// Message is a received message, copied out of the broker's memory: valid for ever, and read-only, since an attempt that is
// repeated sees the same one.
type Message struct {
	// ID is the broker's identifier. "": not set, or the provider cannot read it. See Capabilities.StableIDs.
	ID string
	// CorrelationID, GroupID and ReplyTo are "" where not set or not readable.
	CorrelationID, GroupID, ReplyTo string
	// Timestamp is when the message was sent; zero if unknown. Its resolution is the broker's (RabbitMQ: 1 s, IBM MQ: 10 ms).
	Timestamp time.Time
	// Expiration is when the message will be dropped; zero if never.
	Expiration time.Time
	// Priority is the broker's (JMS and IBM MQ: 0 to 9).
	Priority int
	// Persistent messages survive a restart of the broker.
	Persistent bool
	// Redelivered may be true for a message that no task ever saw: it is enough that it was sent to a client.
	Redelivered bool
	// DeliveryCount is 1 for the first delivery; 0: the broker does not tell.
	DeliveryCount int
	// Text says that Body is text (a JMS TextMessage, IBM MQ's MQSTR format).
	Text bool
	// Body is the payload; nil and empty mean the same.
	Body []byte
	// Properties hold string, bool, int64, float64 or []byte values. A value of type error, wrapping ErrUnreadable, says that
	// the property is there but could not be read: it must not be taken for an absent one.
	Properties map[string]any
}

// Property returns a property as text, and whether it is there. Numbers are in decimal, floats in their shortest exact form,
// booleans "true" or "false", bytes as they are. One that could not be read is reported as not there; ask PropertyErr.
func (m *Message) Property(name string) (string, bool) {
	switch v := m.Properties[name].(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), true
	case []byte:
		return string(v), true
	}
	return "", false
}

// PropertyErr says why a property that is there could not be read (it wraps ErrUnreadable); nil otherwise.
func (m *Message) PropertyErr(name string) error {
	err, _ := m.Properties[name].(error)
	return err
}

// Outgoing is a message to send. Zero values mean: persistent, the broker's default priority, no expiry.
type Outgoing struct {
	// Queue is where it goes: the broker's queue name.
	Queue string
	// CorrelationID, GroupID and ReplyTo are left out where "". A provider that cannot send one refuses with ErrConfig.
	CorrelationID, GroupID, ReplyTo string
	// Text says that Body is text; Body must be valid UTF-8 then.
	Text bool
	// Body is not copied before the commit: do not change it.
	Body []byte
	// Properties may hold string, bool, int, int64, float64 or []byte values.
	Properties map[string]any
	// Priority is the broker's default where nil.
	Priority *int
	// TTL is how long the message lives; 0: for ever. Brokers round it (IBM MQ: up to 100 ms, RabbitMQ: 1 ms).
	TTL time.Duration
	// NonPersistent messages may be lost when the broker restarts.
	NonPersistent bool
}
