package ibmmq

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ibm-messaging/mq-golang-jms20/jms20subset"

	"github.com/keyseq/keyseq/jms"
)

// mostTTL is what mq-golang-jms20 can count, in milliseconds.
const mostTTL = math.MaxInt32 / 100 * 100 * time.Millisecond

// mostSends is how often a message is built anew because its handle was deleted before it was sent. One in 280,000 sends met that with an
// idle garbage collector, so a few in a row are no accident.
const mostSends = 20

// utf8CCSID is IBM's number of UTF-8.
const utf8CCSID = 1208

// checkOutgoing refuses what cannot be sent as it is, before anything of a commit is.
func (s *session) checkOutgoing(out *jms.Outgoing) error {
	if err := checkName("the target queue", out.Queue, maxName); err != nil {
		return err
	}
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("%w: ibmmq: a message for queue %q: "+format, append([]any{jms.ErrConfig, out.Queue}, args...)...)
	}
	if out.ReplyTo != "" {
		if err := checkName("ReplyTo", out.ReplyTo, maxName); err != nil {
			return err
		}
	}
	if id := out.CorrelationID; id != "" && correlation(id) != id {
		return refuse("correlation ID %q would arrive as %q: use at most 12 characters, or hexadecimal of at most 24 bytes", id, correlation(id))
	}
	if out.TTL < 0 || out.TTL > mostTTL {
		return refuse("TTL is %v: must be 0 to %v", out.TTL, mostTTL)
	}
	if out.Priority != nil && (*out.Priority < 0 || *out.Priority > 9) {
		return refuse("priority is %d: must be 0 to 9", *out.Priority)
	}
	if err := checkText(out); err != nil {
		return err
	}
	for name, value := range out.Properties {
		switch value.(type) {
		case string, bool, int, int64, float64:
		case []byte:
			if !s.handle.hooked {
				return refuse("property %q is bytes, which cannot be sent without the trace hook", name)
			}
		default:
			return refuse("property %q is of type %T", name, value)
		}
	}
	return nil
}

// correlation is what mq-golang-jms20 makes of a correlation ID on the way: 24 bytes, and text again.
func correlation(id string) string {
	raw, err := hex.DecodeString(id)
	if err != nil {
		raw = []byte(hex.EncodeToString([]byte(id)))
	}
	raw = append(raw, make([]byte, 24)...)[:24]
	raw = []byte(strings.TrimRight(string(raw), "\x00"))
	if text, err := hex.DecodeString(string(raw)); err == nil {
		return string(text)
	}
	return hex.EncodeToString(raw)
}

// send puts one message under syncpoint.
func (s *session) send(out *jms.Outgoing) *ReasonError {
	for try := 1; ; try++ {
		e := s.sendOnce(out)
		if e == nil || e.class() != classHandle || s.tainted || try == mostSends {
			return e
		}
	}
}

func (s *session) sendOnce(out *jms.Outgoing) *ReasonError {
	ctx := s.handle.ctx
	var m jms20subset.Message
	if out.Text {
		m = ctx.CreateTextMessageWithString(string(out.Body))
	} else {
		m = ctx.CreateBytesMessageWithBytes(out.Body)
	}
	s.handle.bytes, s.handle.bytesErr = nil, nil
	if out.CorrelationID != "" {
		if ex := m.SetJMSCorrelationID(out.CorrelationID); ex != nil {
			return failure("correlation ID for", out.Queue, ex)
		}
	}
	if out.ReplyTo != "" {
		if ex := m.SetJMSReplyTo(ctx.CreateQueue(out.ReplyTo)); ex != nil {
			return failure("reply-to for", out.Queue, ex)
		}
	}
	for name, value := range out.Properties {
		if ex := s.setProperty(m, out, name, value); ex != nil {
			return failure("MQSETMP of property "+name+" for", out.Queue, ex)
		}
	}
	if _, named := out.Properties[PropertyCharacterSet]; out.Text && !named { // else IBM's client names that of this process's locale
		if ex := m.SetIntProperty(PropertyCharacterSet, utf8CCSID); ex != nil {
			return failure("character set for", out.Queue, ex)
		}
	}
	if out.GroupID != "" {
		if ex := m.SetStringProperty(PropertyGroupID, &out.GroupID); ex != nil {
			return failure("MQSETMP of the group ID for", out.Queue, ex)
		}
	}
	p := ctx.CreateProducer()
	if out.NonPersistent {
		p.SetDeliveryMode(jms20subset.DeliveryMode_NON_PERSISTENT)
	}
	if out.Priority != nil {
		p.SetPriority(*out.Priority)
	}
	if out.TTL > 0 { // in tenths of a second, and not rounded down to none
		p.SetTimeToLive(int((out.TTL + 99*time.Millisecond) / (100 * time.Millisecond) * 100))
	}
	ex := p.Send(ctx.CreateQueue(out.Queue).SetPutAsyncAllowed(jms20subset.Destination_PUT_ASYNC_ALLOWED_DISABLED), m)
	if ex != nil {
		return failure("MQPUT1", out.Queue, ex)
	}
	if s.handle.bytes == nil {
		return nil
	}
	// It is in the unit of work without a property: that must not be committed.
	s.tainted = true
	if s.handle.bytesErr == nil {
		s.handle.hooked, s.handle.bytesErr = false, errNoHook
	}
	return failure("MQSETMP of a byte property for", out.Queue, s.handle.bytesErr)
}

// setProperty sets one property. Names that belong to IBM, which a copy of a received message has, are set where mq-golang-jms20 can and left
// out where it cannot.
func (s *session) setProperty(m jms20subset.Message, out *jms.Outgoing, name string, value any) error {
	if strings.HasPrefix(name, "jms.") || strings.HasPrefix(name, "mcd.") || strings.HasPrefix(name, "Root.") {
		return nil // headers of the original
	}
	var ex jms20subset.JMSException
	switch v := value.(type) {
	case string:
		if name == PropertyFormat && (out.Text || v == "") {
			return nil
		}
		ex = m.SetStringProperty(name, &v)
	case bool:
		ex = m.SetBooleanProperty(name, v)
	case int:
		ex = m.SetIntProperty(name, v)
	case int64:
		ex = m.SetIntProperty(name, int(v))
	case float64:
		ex = m.SetDoubleProperty(name, v)
	case []byte:
		if s.handle.bytes == nil {
			s.handle.bytes = map[string][]byte{}
		}
		s.handle.bytes[name] = v
	}
	if ex != nil {
		return ex
	}
	return nil
}

var errNoHook = errors.New("the trace hook was replaced: install the result of TraceFuncs")

// errNotUTF8 is a text that would arrive garbled.
var errNotUTF8 = errors.New("the body is said to be text and is not valid UTF-8: name its character set in the property " + PropertyCharacterSet)

// checkText refuses a text in an unnamed character set. One that was received in another than UTF-8 has it named.
func checkText(out *jms.Outgoing) error {
	if _, named := out.Properties[PropertyCharacterSet]; !out.Text || named || utf8.Valid(out.Body) {
		return nil
	}
	return fmt.Errorf("%w: ibmmq: a message for queue %q: %w", jms.ErrConfig, out.Queue, errNotUTF8)
}
