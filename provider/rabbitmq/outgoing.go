package rabbitmq

import (
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/keyseq/keyseq/jms"
	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	maxShortString = 255 // bytes of names and of the fields of a message
	// maxTTL is the longest time to live that RabbitMQ takes: 2^32-1 ms, 49 days.
	maxTTL = (1<<32 - 1) * time.Millisecond
	// headerRoom is left of a frame for everything but the headers: the protocol cannot split a message's properties over frames, and a
	// broker closes the connection on a frame that is too long. Eight fields of 255 bytes fit.
	headerRoom = 4096
	// defaultFrameSize is RabbitMQ's frame_max.
	defaultFrameSize = 131072
)

// asHeader says under which header a property travels that the broker would set, or refuse, itself.
var asHeader = map[string]string{
	RoutingKey: "x-keyseq-routing-key", Exchange: "x-keyseq-exchange", UserID: "x-keyseq-user-id",
}

// publishing maps a message to send, and refuses what the broker would answer by closing the channel or the connection. frame is the size
// agreed on with the broker; 0: its default.
func publishing(o *jms.Outgoing, frame int) (amqp.Publishing, error) {
	p := amqp.Publishing{
		CorrelationId: o.CorrelationID, ReplyTo: o.ReplyTo, DeliveryMode: amqp.Persistent, Body: o.Body,
	}
	var problems []error
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	short := func(what, s string) {
		if len(s) > maxShortString {
			wrong("%s has %d bytes: AMQP allows %d", what, len(s), maxShortString)
		}
	}
	if o.NonPersistent {
		p.DeliveryMode = amqp.Transient
	}
	if o.Queue == "" {
		wrong("it names no queue")
	}
	short("the queue's name", o.Queue)
	short("CorrelationID", o.CorrelationID)
	short("ReplyTo", o.ReplyTo)
	if o.Priority != nil {
		if *o.Priority < 0 || *o.Priority > 255 {
			wrong("Priority is %d: must be 0 to 255", *o.Priority)
		}
		p.Priority = uint8(*o.Priority)
	}
	switch {
	case o.TTL < 0 || o.TTL > maxTTL:
		wrong("TTL is %v: must be 0 to %v", o.TTL, maxTTL)
	case o.TTL > 0:
		p.Expiration = strconv.FormatInt(int64((o.TTL+time.Millisecond-1)/time.Millisecond), 10)
	}
	if o.Text {
		p.ContentType = "text/plain"
		if !utf8.Valid(o.Body) {
			wrong("Text is set, but Body is not valid UTF-8")
		}
	}
	size := 0
	header := func(name string, v any) {
		if p.Headers == nil {
			p.Headers = make(amqp.Table, len(o.Properties)+1)
		}
		short("the name of a property", name)
		p.Headers[name] = v
		size += len(name) + 16
		switch v := v.(type) {
		case string:
			size += len(v)
		case []byte:
			size += len(v)
		}
	}
	for name, v := range o.Properties {
		if err := put(&p, name, v, header); err != nil {
			problems = append(problems, err)
		}
	}
	if o.GroupID != "" {
		header(groupIDHeader, o.GroupID)
	}
	if frame <= 0 {
		frame = defaultFrameSize
	}
	if size > frame-headerRoom {
		wrong("its properties have %d bytes: AMQP allows about %d in all", size, frame-headerRoom)
	}
	return p, errors.Join(problems...)
}

// put stores one property: in its field, or by header.
func put(p *amqp.Publishing, name string, v any, header func(string, any)) error {
	var field *string
	switch name {
	case ContentType:
		field = &p.ContentType
	case ContentEncoding:
		field = &p.ContentEncoding
	case Type:
		field = &p.Type
	case AppID:
		field = &p.AppId
	}
	if field != nil {
		s, ok := v.(string)
		if !ok || len(s) > maxShortString {
			return fmt.Errorf("property %s must be a string of at most %d bytes", name, maxShortString)
		}
		*field = s
		return nil
	}
	switch name {
	case "CC", "BCC":
		return fmt.Errorf("property %s would send the message to further queues: rename it", name)
	case deliveryCountHeader, "x-acquired-count":
		return nil // they belong to the queue that the original came from
	}
	if other, ok := asHeader[name]; ok {
		name = other
	}
	switch v := v.(type) {
	case string, bool, int64, float64, []byte:
		header(name, v)
	case int:
		header(name, int64(v))
	default:
		return fmt.Errorf("property %q is of type %T: must be string, bool, int, int64, float64 or []byte", name, v)
	}
	return nil
}
