package rabbitmq

import (
	"bytes"
	"errors"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/keyseq/keyseq/jms"
)

func TestMessageFields(t *testing.T) {
	sent := time.Unix(1_700_000_000, 0)
	m := message(&amqp.Delivery{
		MessageId: "id", CorrelationId: "co", ReplyTo: "re", Timestamp: sent, Expiration: "1500", Priority: 7, DeliveryMode: amqp.Persistent,
		Redelivered: true, ContentType: "text/plain; charset=utf-8", ContentEncoding: "utf-8", Type: "ty", UserId: "us", AppId: "ap",
		Exchange: "ex", RoutingKey: "ro", Body: []byte("grüß"),
		Headers: amqp.Table{"JMSXGroupID": "gr", "x-delivery-count": int64(2)},
	}, true)
	want := &jms.Message{
		ID: "id", CorrelationID: "co", GroupID: "gr", ReplyTo: "re", Timestamp: sent, Expiration: sent.Add(1500 * time.Millisecond), Priority: 7,
		Persistent: true, Redelivered: true, DeliveryCount: 3, Text: true, Body: []byte("grüß"),
		Properties: map[string]any{
			"JMSXGroupID": "gr", "x-delivery-count": int64(2), RoutingKey: "ro", Exchange: "ex", UserID: "us", AppID: "ap", Type: "ty",
			ContentType: "text/plain; charset=utf-8", ContentEncoding: "utf-8",
		},
	}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("message is\n%+v, want\n%+v", m, want)
	}
	m = message(&amqp.Delivery{}, false)
	if want := (&jms.Message{Properties: map[string]any{RoutingKey: ""}}); !reflect.DeepEqual(m, want) {
		t.Errorf("an empty delivery is\n%+v, want\n%+v", m, want)
	}
	if m := message(&amqp.Delivery{}, true); m.DeliveryCount != 1 {
		t.Errorf("the first delivery of a queue that counts has DeliveryCount %d, want 1", m.DeliveryCount)
	}
	if m := message(&amqp.Delivery{Timestamp: sent, Headers: amqp.Table{"timestamp_in_ms": int64(1_700_000_000_123)}}, false); m.Timestamp.UnixMilli() != 1_700_000_000_123 {
		t.Errorf("Timestamp is %v, want that of the broker's interceptor", m.Timestamp)
	}
}

func TestText(t *testing.T) {
	for _, c := range []struct {
		contentType, encoding, body string
		want                        bool
	}{
		{"text/plain", "", "a", true}, {"TEXT/XML; charset=utf-8", "UTF-8", "a", true}, {"application/json", "", "{}", true},
		{"application/vnd.x+json", "", "{}", true}, {"", "", "a", false}, {"application/octet-stream", "", "a", false},
		{"text/plain", "gzip", "a", false}, {"text/plain", "", "\xff", false}, {"text/;;", "", "a", false}, {"image/png", "", "a", false},
	} {
		if m := message(&amqp.Delivery{ContentType: c.contentType, ContentEncoding: c.encoding, Body: []byte(c.body)}, false); m.Text != c.want {
			t.Errorf("content type %q, encoding %q, body %q: Text %t, want %t", c.contentType, c.encoding, c.body, m.Text, c.want)
		}
	}
}

func TestHeadersBecomeProperties(t *testing.T) {
	when := time.Unix(1_700_000_000, 0)
	for _, c := range []struct{ header, want any }{
		{"s", "s"}, {"", ""}, {true, true}, {byte(200), int64(200)}, {int8(-3), int64(-3)}, {int16(-300), int64(-300)}, {uint16(60000), int64(60000)},
		{int32(-70000), int64(-70000)}, {uint32(4_000_000_000), int64(4_000_000_000)}, {int64(1) << 60, int64(1) << 60}, {float32(0.5), 0.5}, {0.1, 0.1},
		{[]byte{1, 2}, []byte{1, 2}}, {when, int64(1_700_000_000)},
		{amqp.Decimal{Scale: 2, Value: 1234}, "12.34"}, {amqp.Decimal{Scale: 3, Value: -5}, "-0.005"}, {amqp.Decimal{Value: 7}, "7"},
		{amqp.Decimal{Scale: 4, Value: -2147483648}, "-214748.3648"},
	} {
		m := message(&amqp.Delivery{Headers: amqp.Table{"h": c.header}}, false)
		if got := m.Properties["h"]; !reflect.DeepEqual(got, c.want) {
			t.Errorf("header %#v becomes %#v, want %#v", c.header, got, c.want)
		}
	}
	for _, header := range []any{nil, amqp.Table{"a": "b"}, []any{"a"}} {
		m := message(&amqp.Delivery{Headers: amqp.Table{"h": header}}, false)
		if err := m.PropertyErr("h"); !errors.Is(err, jms.ErrUnreadable) || !strings.Contains(err.Error(), `"h"`) {
			t.Errorf("header %#v becomes %v, want an error value that wraps ErrUnreadable and names it", header, m.Properties["h"])
		}
	}
}

// The broker's own fields win over headers of the same name, which anybody can send.
func TestHeadersCannotForgeFields(t *testing.T) {
	m := message(&amqp.Delivery{RoutingKey: "real", Headers: amqp.Table{RoutingKey: "forged"}}, false)
	if got, _ := m.Property(RoutingKey); got != "real" {
		t.Errorf("RoutingKey is %q, want %q", got, "real")
	}
}

func TestOutgoingFields(t *testing.T) {
	four := 4
	p, err := publishing(&jms.Outgoing{
		Queue: "q", CorrelationID: "co", GroupID: "gr", ReplyTo: "re", Text: true, Body: []byte("b"), Priority: &four, TTL: 1500*time.Microsecond + 1,
		Properties: map[string]any{
			"s": "s", "b": true, "i": 5, "l": int64(6), "f": 0.5, "y": []byte{1}, ContentType: "text/csv", ContentEncoding: "utf-8", Type: "ty", AppID: "ap",
			RoutingKey: "orders.eu", Exchange: "ex", UserID: "us", "x-delivery-count": int64(9),
		},
	}, 0)
	want := amqp.Publishing{
		CorrelationId: "co", ReplyTo: "re", DeliveryMode: amqp.Persistent, Body: []byte("b"), Priority: 4, Expiration: "2",
		ContentType: "text/csv", ContentEncoding: "utf-8", Type: "ty", AppId: "ap",
		Headers: amqp.Table{
			"s": "s", "b": true, "i": int64(5), "l": int64(6), "f": 0.5, "y": []byte{1}, "JMSXGroupID": "gr",
			"x-keyseq-routing-key": "orders.eu", "x-keyseq-exchange": "ex", "x-keyseq-user-id": "us",
		},
	}
	if err != nil || !reflect.DeepEqual(p, want) {
		t.Errorf("publishing is\n%+v, %v, want\n%+v", p, err, want)
	}
	p, err = publishing(&jms.Outgoing{Queue: "q", Text: true, NonPersistent: true}, 0)
	if want := (amqp.Publishing{DeliveryMode: amqp.Transient, ContentType: "text/plain"}); err != nil || !reflect.DeepEqual(p, want) {
		t.Errorf("publishing is\n%+v, %v, want\n%+v", p, err, want)
	}
}

// What the broker would answer by closing the channel, or the client library by breaking the connection, is refused before.
func TestOutgoingRefused(t *testing.T) {
	long, bad := strings.Repeat("x", 256), 256
	for name, o := range map[string]jms.Outgoing{
		"no queue": {}, "queue": {Queue: long}, "CorrelationID": {Queue: "q", CorrelationID: long}, "ReplyTo": {Queue: "q", ReplyTo: long},
		"Priority": {Queue: "q", Priority: &bad}, "TTL": {Queue: "q", TTL: -1}, "TTL is": {Queue: "q", TTL: 50 * 24 * time.Hour},
		"UTF-8": {Queue: "q", Text: true, Body: []byte("\xff")}, "name of a property": {Queue: "q", Properties: map[string]any{long: "v"}},
		"[]string": {Queue: "q", Properties: map[string]any{"p": []string{"v"}}}, "further queues": {Queue: "q", Properties: map[string]any{"CC": "v"}},
		"amqp.type": {Queue: "q", Properties: map[string]any{Type: long}}, "amqp.app_id": {Queue: "q", Properties: map[string]any{AppID: 5}},
		"in all": {Queue: "q", Properties: map[string]any{"a": strings.Repeat("x", 131072-4096)}},
		"error":  {Queue: "q", Properties: map[string]any{"p": jms.ErrUnreadable}},
	} {
		if _, err := publishing(&o, 131072); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: publishing = %v, want an error that says so", name, err)
		}
	}
	if _, err := publishing(&jms.Outgoing{Queue: strings.Repeat("q", 255), TTL: maxTTL, Properties: map[string]any{"a": strings.Repeat("x", 120000)}}, 131072); err != nil {
		t.Errorf("a message at the limits is refused: %v", err)
	}
}

// Whatever properties a message to send has, it is refused, or arrives as it was.
func FuzzProperties(f *testing.F) {
	f.Add("name", "value", int64(1), 0.5, []byte{1}, true)
	f.Add("amqp.routing_key", "", int64(-1), 0.0, []byte(nil), false)
	f.Add("JMSXGroupID", "\xff\x00", int64(1)<<62, -1e300, []byte("x"), true)
	f.Add("CC", "x", int64(0), 1.0, []byte{}, true)
	f.Fuzz(func(t *testing.T, name, s string, i int64, fl float64, y []byte, b bool) {
		if fl != fl {
			return // NaN equals nothing
		}
		for _, v := range []any{s, i, fl, y, b} {
			o := jms.Outgoing{Queue: "q", Properties: map[string]any{name: v}}
			p, err := publishing(&o, 0)
			if err != nil {
				continue
			}
			if err := p.Headers.Validate(); err != nil {
				t.Fatalf("headers that the client library refuses: %v", err)
			}
			m := message(&amqp.Delivery{
				Headers: maps.Clone(p.Headers), ContentType: p.ContentType, ContentEncoding: p.ContentEncoding, Type: p.Type, AppId: p.AppId, RoutingKey: "q",
			}, false)
			at := name
			if other, ok := asHeader[name]; ok {
				at = other
			}
			got := m.Properties[at]
			if name == deliveryCountHeader || name == "x-acquired-count" || v == "" && got == nil {
				continue
			}
			if raw, ok := v.([]byte); ok {
				back, ok := got.([]byte)
				if !ok || !bytes.Equal(raw, back) {
					t.Fatalf("%q: %#v arrives as %#v", name, v, got)
				}
			} else if got != v {
				t.Fatalf("%q: %#v arrives as %#v", name, v, got)
			}
		}
	})
}

// FuzzDifference: whatever the broker says, reading it does not panic, and what is read is a name.
func FuzzDifference(f *testing.F) {
	f.Add("PRECONDITION_FAILED - inequivalent arg 'x-max-length' for queue 'q1' in vhost '/': received none but current is the value '100' of type 'long'")
	f.Add("PRECONDITION_FAILED - inequivalent arg 'durable' for queue 'q1' in vhost '/': received 'false' but current is 'true'")
	f.Add("PRECONDITION_FAILED - inequivalent arg 'x' for queue 'q1' in vhost '/': received the value 'true' of type 'bool' but current is none")
	f.Fuzz(func(t *testing.T, reason string) {
		name, _, ok := difference(&amqp.Error{Code: amqp.PreconditionFailed, Reason: reason})
		if ok && name == "" {
			t.Fatal("an argument without a name")
		}
	})
}

func TestDifference(t *testing.T) {
	const of = " for queue 'it''s' in vhost '/': received none but current is "
	for _, c := range []struct {
		reason, name string
		value        any
		ok           bool
	}{
		{"inequivalent arg 'x-max-length'" + of + "the value '100' of type 'long'", "x-max-length", int64(100), true},
		{"inequivalent arg 'x-delivery-limit'" + of + "the value '50' of type 'signedint'", "x-delivery-limit", int64(50), true},
		{"inequivalent arg 'x-dead-letter-exchange'" + of + "the value '' of type 'longstr'", "x-dead-letter-exchange", "", true},
		{"inequivalent arg 'x-single-active-consumer'" + of + "the value 'true' of type 'bool'", "x-single-active-consumer", true, true},
		{"inequivalent arg 'x-single-active-consumer'" + of + "none", "x-single-active-consumer", nil, true},
		{"inequivalent arg 'durable'" + of + "'false'", "durable", "false", true},
		{"inequivalent arg 'x-odd'" + of + "the value '[1,2]' of type 'array'", "x-odd", int64(0), false},
		{"something else", "", nil, false},
	} {
		name, value, ok := difference(&amqp.Error{Code: amqp.PreconditionFailed, Reason: "PRECONDITION_FAILED - " + c.reason})
		if name != c.name || value != c.value || ok != c.ok {
			t.Errorf("%s: %q, %#v, %t; want %q, %#v, %t", c.reason, name, value, ok, c.name, c.value, c.ok)
		}
	}
}

func BenchmarkMessage(b *testing.B) {
	d := &amqp.Delivery{RoutingKey: "orders.eu", Exchange: "ex", ContentType: "application/json", Body: make([]byte, 1024), Headers: amqp.Table{"a": "b", "n": int64(1)}}
	b.ReportAllocs()
	for b.Loop() {
		message(d, true)
	}
}
