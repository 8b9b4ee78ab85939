package memory

import (
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/keyseq/keyseq/jms"
)

// DefaultPriority is what a message gets whose Priority is nil, as in JMS.
const DefaultPriority = 4

// Send puts a message on its queue, visible at once, and returns its ID. Body and properties are copied. It fails with jms.ErrConfig
// (unknown queue, priority out of 0 to 9, a property of a type that jms.Outgoing does not list), jms.ErrBusy (queue full or inhibited), or
// jms.ErrConnectionLost (broker closed).
func (b *Broker) Send(out jms.Outgoing) (id string, err error) { return b.SendAfter(0, out) }

// SendAfter is Send with a delay: the message becomes visible when it is over, and takes its place in the queue then. Its TTL
// counts from now.
func (b *Broker) SendAfter(delay time.Duration, out jms.Outgoing) (id string, err error) {
	if delay < 0 {
		return "", fmt.Errorf("memory: queue %q: the delay is %v; use 0 for none: %w", out.Queue, delay, jms.ErrConfig)
	}
	es, err := b.prepare([]jms.Outgoing{out})
	if err != nil {
		return "", err
	}
	if delay > 0 {
		es[0].due = time.Now().Add(delay)
	}
	if err := b.putAll(es, []jms.Outgoing{out}); err != nil {
		return "", err
	}
	return es[0].id, nil
}

// SendBatch sends all or none, in this order, and returns the IDs. Errors are those of Send.
func (b *Broker) SendBatch(out []jms.Outgoing) (ids []string, err error) {
	es, err := b.prepare(out)
	if err != nil {
		return nil, err
	}
	if err := b.putAll(es, out); err != nil {
		return nil, err
	}
	ids = make([]string, len(es))
	for i, e := range es {
		ids[i] = e.id
	}
	return ids, nil
}

func (b *Broker) putAll(es []*entry, out []jms.Outgoing) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.admit(es, out); err != nil {
		return err
	}
	b.place(es)
	return nil
}

// prepare copies messages out of their owner's memory. It needs no mutex.
func (b *Broker) prepare(out []jms.Outgoing) ([]*entry, error) {
	if len(out) == 0 {
		return nil, nil
	}
	now := time.Now()
	es := make([]*entry, len(out))
	for i := range out {
		e, err := newEntry(&out[i], now)
		if err != nil {
			return nil, err
		}
		es[i] = e
	}
	return es, nil
}

func newEntry(o *jms.Outgoing, now time.Time) (*entry, error) {
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("memory: message to queue %q: %s: %w", o.Queue, fmt.Sprintf(format, args...), jms.ErrConfig)
	}
	e := &entry{msg: jms.Message{
		CorrelationID: o.CorrelationID, GroupID: o.GroupID, ReplyTo: o.ReplyTo,
		Timestamp: now, Priority: DefaultPriority, Persistent: !o.NonPersistent, Text: o.Text,
	}}
	if len(o.Body) > 0 {
		if o.Text && !utf8.Valid(o.Body) {
			return nil, wrong("the body is declared text and is not valid UTF-8; leave Text false for bytes")
		}
		e.msg.Body = append([]byte(nil), o.Body...)
	}
	if o.Priority != nil {
		if *o.Priority < 0 || *o.Priority > 9 {
			return nil, wrong("priority %d is not in 0 to 9", *o.Priority)
		}
		e.msg.Priority = *o.Priority
	}
	switch {
	case o.TTL < 0:
		return nil, wrong("the TTL is %v; use 0 for no expiry", o.TTL)
	case o.TTL > 0:
		e.msg.Expiration = now.Add(o.TTL)
	}
	if len(o.Properties) > 0 {
		e.msg.Properties = make(map[string]any, len(o.Properties))
	}
	for name, v := range o.Properties {
		switch v := v.(type) {
		case string, bool, int64, float64:
			e.msg.Properties[name] = v
		case int:
			e.msg.Properties[name] = int64(v)
		case []byte:
			e.msg.Properties[name] = append([]byte(nil), v...)
		default:
			return nil, wrong("property %q is of type %T; use string, bool, int, int64, float64 or []byte", name, v)
		}
	}
	return e, nil
}

// admit finds the queues and says whether all of the messages may be put there. It needs the mutex and changes nothing.
func (b *Broker) admit(es []*entry, out []jms.Outgoing) error {
	var busy error
	defer func() {
		for _, e := range es {
			if e.q != nil {
				e.q.pending = 0
			}
		}
	}()
	for i, e := range es {
		q, err := b.find(out[i].Queue)
		if err != nil {
			return err
		}
		e.q = q
		q.pending++
		switch {
		case q.noPut:
			busy = fmt.Errorf("memory: queue %q is inhibited for sending; switch it on with InhibitPut: %w", q.Name, jms.ErrBusy)
		case q.MaxDepth > 0 && q.depth+q.pending > q.MaxDepth:
			q.sweep()
			if q.depth+q.pending > q.MaxDepth {
				busy = fmt.Errorf("memory: queue %q is full (MaxDepth %d); settle messages first: %w", q.Name, q.MaxDepth, jms.ErrBusy)
			}
		}
	}
	return busy
}

// place puts admitted messages on their queues, all of them before any is handed out. It needs the mutex.
func (b *Broker) place(es []*entry) {
	for _, e := range es {
		b.lastID++
		e.id = "memory-" + strconv.FormatUint(b.lastID, 10)
		if !b.profile.NoIDs {
			e.msg.ID = e.id
		}
		e.q.put(e)
	}
	for _, e := range es {
		e.q.dispatch()
	}
}
