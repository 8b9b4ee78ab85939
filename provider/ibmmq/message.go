package ibmmq

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/ibm-messaging/mq-golang-jms20/jms20subset"
	mqi "github.com/ibm-messaging/mq-golang/v5/ibmmq"

	"github.com/keyseq/keyseq/jms"
)

// Properties that this package adds to what the sender set. They have IBM's names; those of the character set, the encoding and the format
// are also honoured in jms.Outgoing.
const (
	// PropertyCharacterSet is the coded character set of the body (int64), for example 1208 for UTF-8 and 500 for EBCDIC.
	PropertyCharacterSet = "JMS_IBM_Character_Set"
	// PropertyEncoding is how numbers in the body are encoded (int64).
	PropertyEncoding = "JMS_IBM_Encoding"
	// PropertyFormat is the format of the body, for example MQSTR; "" for none.
	PropertyFormat = "JMS_IBM_Format"
	// PropertyGroupID carries Outgoing.GroupID, because mq-golang-jms20 cannot set the group of a message descriptor.
	PropertyGroupID = "keyseq_group_id"
	// propertyGID is where JMS senders repeat their JMSXGroupID.
	propertyGID = "jms.Gid"
)

// mostProperties stops an inquiry that would go round for ever.
const mostProperties = 10_000

// errHandle says that a message handle was deleted early: the message must be received again.
var errHandle = errors.New("the message's properties were deleted while they were read (mq-golang-jms20 issue 79)")

// inquire reads all properties of a message handle. One that cannot be read is an error that wraps jms.ErrUnreadable; when it cannot be told which
// there are, that is the error of the inquiry. It takes a call for each property and one that finds no more: nothing in MQGET's answer says how many there
// are, or that there are none. impo and pd are the caller's to use again.
func inquire(handle *mqi.MQMessageHandle, impo *mqi.MQIMPO, pd *mqi.MQPD) (map[string]any, error) {
	all := make(map[string]any, 8)
	impo.Options = mqi.MQIMPO_CONVERT_VALUE | mqi.MQIMPO_INQ_FIRST
	for range mostProperties {
		name, value, err := handle.InqMP(impo, pd, "%")
		impo.Options = mqi.MQIMPO_CONVERT_VALUE | mqi.MQIMPO_INQ_NEXT
		if err == nil {
			all[name] = plain(value)
			continue
		}
		switch codeOf(err) {
		case int(mqi.MQRC_PROPERTY_NOT_AVAILABLE): // no more of them
			return all, nil
		case mqi2460:
			return nil, errHandle
		}
		if _, again := all[impo.ReturnedName]; again || impo.ReturnedName == "" { // the inquiry does not get past it
			return nil, unreadable(err)
		}
		all[impo.ReturnedName] = fmt.Errorf("%w: ibmmq: property %q: %w", jms.ErrUnreadable, impo.ReturnedName, failure("MQINQMP", impo.ReturnedName, err))
	}
	return nil, fmt.Errorf("%w: more than %d properties", jms.ErrUnreadable, mostProperties)
}

// unreadable says that nobody knows which properties a message has.
func unreadable(err error) error {
	return fmt.Errorf("%w: %w", jms.ErrUnreadable, failure("MQINQMP", "the properties", err))
}

// plain is a property's value in the types of package jms.
func plain(value any) any {
	switch v := value.(type) {
	case int8:
		return int64(v)
	case int16:
		return int64(v)
	case int32:
		return int64(v)
	case float32:
		return float64(v)
	case nil:
		return ""
	}
	return value
}

// message copies a received message out of mq-golang-jms20's.
func (s *session) message(from jms20subset.Message) (*jms.Message, error) {
	m := &jms.Message{ID: from.GetJMSMessageID(), CorrelationID: from.GetJMSCorrelationID(), Priority: from.GetJMSPriority()}
	if to := from.GetJMSReplyTo(); to != nil {
		m.ReplyTo = to.GetDestinationName()
	}
	switch body := from.(type) {
	case jms20subset.TextMessage:
		m.Text = true
		if text := body.GetText(); text != nil {
			m.Body = bytesOf(*text)
		}
	case jms20subset.BytesMessage:
		m.Body = bytes.Clone(*body.ReadBytes()) // it is a slice of the whole receive buffer
	default:
		return nil, fmt.Errorf("mq-golang-jms20 gave a message of type %T", from)
	}
	found, err := s.handle.seen, error(nil)
	if found == nil {
		if found, err = fallback(from); err != nil {
			return nil, err
		}
	}
	s.handle.seen = nil
	if found.err != nil {
		return nil, found.err
	}
	md := found.md
	m.Properties = found.properties
	m.Persistent = md.Persistence == mqi.MQPER_PERSISTENT
	m.DeliveryCount = int(md.BackoutCount) + 1
	m.Redelivered = md.BackoutCount > 0
	m.Timestamp = putTime(md.PutDate, md.PutTime)
	if md.Expiry > 0 { // the get says how much of it is left, in tenths of a second
		m.Expiration = time.Now().Add(time.Duration(md.Expiry) * 100 * time.Millisecond)
	}
	stripExtension(m, md)
	m.Properties[PropertyCharacterSet], m.Properties[PropertyEncoding] = int64(md.CodedCharSetId), int64(md.Encoding)
	m.Properties[PropertyFormat] = strings.TrimSpace(md.Format)
	m.GroupID = groupID(m.Properties, md.GroupId)
	return m, nil
}

// bytesOf is the text of a message as a body. mq-golang-jms20 has copied it out of its buffer, and only its message, which ends here, knows that copy: a
// second one is not needed. Short texts are copied, because those of one byte may be the runtime's own.
func bytesOf(text string) []byte {
	if len(text) < 64 {
		return []byte(text)
	}
	return unsafe.Slice(unsafe.StringData(text), len(text))
}

func groupID(properties map[string]any, group []byte) string {
	for _, name := range []string{PropertyGroupID, propertyGID} {
		if id, ok := properties[name].(string); ok && id != "" {
			return id
		}
	}
	if len(bytes.Trim(group, "\x00")) > 0 {
		return hex.EncodeToString(group)
	}
	return ""
}

// putTime reads YYYYMMDD and HHMMSSTH, which are in GMT. It runs for each message, hence without the layouts of package time.
func putTime(date, clock string) time.Time {
	if len(date) != 8 || len(clock) != 8 {
		return time.Time{}
	}
	var n [8]int // two digits each
	text := date + clock
	for i := range text {
		d := text[i] - '0'
		if d > 9 {
			return time.Time{}
		}
		n[i/2] = 10*n[i/2] + int(d)
	}
	t := time.Date(100*n[0]+n[1], time.Month(n[2]), n[3], n[4], n[5], n[6], n[7]*int(10*time.Millisecond), time.UTC)
	if t.Month() != time.Month(n[2]) || t.Day() != n[3] || n[4] > 23 || n[5] > 59 || n[6] > 59 {
		return time.Time{} // no such date
	}
	return t
}

// extension is the length of MQMDE version 2: what a queue manager puts before the body of a message with a group or segment when the
// getter asked for version 1 of the descriptor, as mq-golang-jms20 does.
const extension = 72

// stripExtension takes an MQMDE off the body: its fields say how the rest is to be read.
func stripExtension(m *jms.Message, md *mqi.MQMD) {
	if strings.TrimSpace(md.Format) != "MQHMDE" || len(m.Body) < extension || string(m.Body[:4]) != "MDE " {
		return
	}
	order := binary.ByteOrder(binary.LittleEndian)
	if md.Encoding&0xf == 1 { // MQENC_INTEGER_NORMAL
		order = binary.BigEndian
	}
	h := m.Body[:extension]
	if order.Uint32(h[8:]) != extension {
		return
	}
	md.Encoding, md.CodedCharSetId = int32(order.Uint32(h[12:])), int32(order.Uint32(h[16:]))
	md.Format = string(h[20:28])
	md.GroupId = bytes.Clone(h[32:56])
	m.Body = bytes.Clone(m.Body[extension:])
	m.Text = strings.TrimSpace(md.Format) == mqi.MQFMT_STRING
}

// fallback reads what the hook would have, from a message whose properties may be gone at any moment.
func fallback(from jms20subset.Message) (*seen, error) {
	found := &seen{md: &mqi.MQMD{}, properties: map[string]any{}}
	if md := descriptor(from); md.IsValid() {
		number := func(name string) int32 {
			if f := md.FieldByName(name); f.IsValid() && f.CanInt() {
				return int32(f.Int())
			}
			return 0
		}
		text := func(name string) string {
			if f := md.FieldByName(name); f.IsValid() && f.Kind() == reflect.String {
				return f.String()
			}
			return ""
		}
		*found.md = mqi.MQMD{
			Persistence: number("Persistence"), BackoutCount: number("BackoutCount"), Expiry: number("Expiry"), Encoding: number("Encoding"),
			CodedCharSetId: number("CodedCharSetId"), Format: text("Format"), PutDate: text("PutDate"), PutTime: text("PutTime"),
		}
		if f := md.FieldByName("GroupId"); f.IsValid() && f.Kind() == reflect.Slice {
			found.md.GroupId = bytes.Clone(f.Bytes())
		}
	}
	names, ex := from.GetPropertyNames()
	if ex != nil {
		if codeOf(ex) == mqi2460 {
			return nil, errHandle
		}
		return nil, fmt.Errorf("%w (without the trace hook one property of more than 1,024 bytes is enough: pass your functions through ibmmq.TraceFuncs)", unreadable(ex))
	}
	for _, name := range names {
		value, err := textProperty(from, name)
		if errors.Is(err, errHandle) {
			return nil, err
		}
		if err != nil {
			found.properties[name] = fmt.Errorf("%w: ibmmq: property %q: %w", jms.ErrUnreadable, name, err)
		} else if value != nil {
			found.properties[name] = *value
		}
	}
	return found, nil
}

const mqi2460 = int(mqi.MQRC_HMSG_ERROR)

// textProperty reads a property as text. Small integers need another getter.
func textProperty(from jms20subset.Message, name string) (*string, error) {
	value, ex := from.GetStringProperty(name)
	if ex == nil {
		return value, nil
	}
	if codeOf(ex) == mqi2460 {
		return nil, errHandle
	}
	n, again := from.GetIntProperty(name)
	if again == nil {
		text := strconv.Itoa(n)
		return &text, nil
	}
	if codeOf(again) == mqi2460 {
		return nil, errHandle
	}
	return nil, failure("MQINQMP", name, ex)
}

// descriptor is the message descriptor in a message of mq-golang-jms20, which shows only parts of it.
func descriptor(from jms20subset.Message) reflect.Value {
	v := reflect.ValueOf(from)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return reflect.Value{}
	}
	impl := v.Elem().FieldByName("MessageImpl")
	if impl.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	md := impl.FieldByName("mqmd")
	if md.Kind() != reflect.Pointer || md.IsNil() {
		return reflect.Value{}
	}
	return md.Elem()
}
