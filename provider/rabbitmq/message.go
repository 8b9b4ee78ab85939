package rabbitmq

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/keyseq/keyseq/jms"
	amqp "github.com/rabbitmq/amqp091-go"
)

// Properties of a message that are fields of the protocol, not headers.
const (
	// RoutingKey is what the message was published with, and the key of most queues: keyseq.KeyFromProperty(rabbitmq.RoutingKey). It is
	// always there. On a message to send it becomes the header x-keyseq-routing-key, because the queue's name routes it.
	RoutingKey = "amqp.routing_key"
	// Exchange is where the message was published; absent for the default exchange. On a message to send it becomes the
	// header x-keyseq-exchange.
	Exchange = "amqp.exchange"
	// UserID is the publisher's user, verified by the broker; absent if the publisher did not set it. On a message to send it becomes the
	// header x-keyseq-user-id, because the broker refuses any user but the sender's own.
	UserID = "amqp.user_id"
	// ContentType, ContentEncoding, Type and AppID are strings in both directions; absent where "".
	ContentType     = "amqp.content_type"
	ContentEncoding = "amqp.content_encoding"
	Type            = "amqp.type"
	AppID           = "amqp.app_id"
)

const (
	// groupIDHeader carries jms.Message.GroupID: AMQP 0-9-1 has no such field, and JMS clients use this name.
	groupIDHeader = "JMSXGroupID"
	// deliveryCountHeader is set by quorum queues; absent on the first delivery.
	deliveryCountHeader = "x-delivery-count"
	// timestampHeader is set by the broker's message timestamp interceptor and is finer than the field, which has seconds.
	timestampHeader = "timestamp_in_ms"
)

// message copies a delivery. DeliveryCount is set if the queue counts (counted).
func message(d *amqp.Delivery, counted bool) *jms.Message {
	m := &jms.Message{
		ID:            d.MessageId,
		CorrelationID: d.CorrelationId,
		ReplyTo:       d.ReplyTo,
		Timestamp:     d.Timestamp,
		Priority:      int(d.Priority),
		Persistent:    d.DeliveryMode == amqp.Persistent,
		Redelivered:   d.Redelivered,
		Body:          d.Body,
		Properties:    make(map[string]any, len(d.Headers)+2),
	}
	for name, v := range d.Headers {
		m.Properties[name] = property(name, v)
	}
	m.Properties[RoutingKey] = d.RoutingKey
	set := func(name, v string) {
		if v != "" {
			m.Properties[name] = v
		}
	}
	set(Exchange, d.Exchange)
	set(UserID, d.UserId)
	set(ContentType, d.ContentType)
	set(ContentEncoding, d.ContentEncoding)
	set(Type, d.Type)
	set(AppID, d.AppId)
	m.GroupID, _ = d.Headers[groupIDHeader].(string)
	if n, ok := number(d.Headers[timestampHeader]); ok && n > 0 {
		m.Timestamp = time.UnixMilli(n)
	}
	if counted {
		m.DeliveryCount = 1
		if n, ok := number(d.Headers[deliveryCountHeader]); ok && n > 0 {
			m.DeliveryCount += int(n)
		}
	}
	m.Expiration = expiration(d.Expiration, m.Timestamp)
	m.Text = isText(d.ContentType, d.ContentEncoding) && utf8.Valid(d.Body)
	return m
}

// property maps a header value to the types of jms.Message.Properties.
func property(name string, v any) any {
	switch v := plain(v).(type) {
	case string, bool, int64, float64, []byte:
		return v
	case nil:
		return fmt.Errorf("%w: header %q is void", jms.ErrUnreadable, name)
	default:
		return fmt.Errorf("%w: header %q is of type %T", jms.ErrUnreadable, name, v)
	}
}

// plain widens numbers and spells out what has no counterpart but is one value.
func plain(v any) any {
	switch v := v.(type) {
	case byte:
		return int64(v)
	case int8:
		return int64(v)
	case int16:
		return int64(v)
	case uint16:
		return int64(v)
	case int32:
		return int64(v)
	case uint32:
		return int64(v)
	case int:
		return int64(v)
	case float32:
		return float64(v)
	case time.Time:
		return v.Unix()
	case amqp.Decimal:
		return decimal(v)
	}
	return v
}

// decimal writes Value / 10^Scale exactly.
func decimal(d amqp.Decimal) string {
	digits, sign := strconv.FormatInt(int64(d.Value), 10), ""
	if d.Value < 0 {
		digits, sign = digits[1:], "-"
	}
	scale := int(d.Scale)
	if scale == 0 {
		return sign + digits
	}
	if missing := scale + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	return sign + digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
}

// expiration is when a message with this TTL (milliseconds) is dropped at the latest: the broker counts from when it arrived, so from
// its timestamp if it has one, else from now.
func expiration(ttl string, sent time.Time) time.Time {
	ms, err := strconv.ParseInt(ttl, 10, 64)
	if err != nil || ms < 0 || ms > maxTTL.Milliseconds() {
		return time.Time{}
	}
	if sent.IsZero() {
		sent = time.Now()
	}
	return sent.Add(time.Duration(ms) * time.Millisecond)
}

// isText says that the content type is one of text in UTF-8 or ASCII.
func isText(contentType, encoding string) bool {
	if contentType == "" || (encoding != "" && !strings.EqualFold(encoding, "utf-8")) {
		return false
	}
	kind, _, _ := strings.Cut(contentType, ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	return len(kind) > len("text/") && strings.HasPrefix(kind, "text/") || kind == "application/json" || kind == "application/xml" ||
		strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml")
}
