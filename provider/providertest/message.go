package providertest

import (
	"bytes"
	"errors"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/keyseq/keyseq/jms"
)

var messageCases = []testCase{
	{2, "Bodies", "a body of any size and content arrives as it was sent, with its kind", messageBodies},
	{2, "Properties", "a property arrives with the type and value it was sent with, or is refused with ErrConfig (text never)", messageProperties},
	{2, "Headers", "a header arrives as it was sent, or is refused with ErrConfig, or left out where it cannot be read", messageHeaders},
	{2, "CompleteCopies", "a received message stays as it is whatever its session does later", completeCopies},
	{2, "Expiry", "a message whose TTL has passed is not received", expiry},
}

// echo sends one message with the commit of another, as a task does, and gives what comes of it; nil if it was refused.
func (c *kase) echo(from, to jms.Session, out jms.Outgoing) *jms.Message {
	c.Helper()
	c.numbers(0, 1)
	c.takeBody(from, "0")
	out.Queue = c.b.Other
	err := c.do("Commit with a send", func() error { return from.Commit(c.ctx, out) })
	if errors.Is(err, jms.ErrConfig) {
		c.commit(from) // without the send
		return nil
	}
	if err != nil {
		c.broken("Commit with a send returned %v: it must be sent, or refused with ErrConfig", err)
	}
	m := c.take(to)
	c.commit(to)
	return m
}

func messageBodies(c *kase) {
	from, to := c.open(c.connect()), c.open(c.connectTo(c.b.Other))
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for _, x := range []struct {
		name string
		text bool
		body []byte
	}{
		{"empty", false, nil}, {"empty text", true, nil}, {"one byte", false, []byte{0}}, {"all bytes", false, all},
		{"text", true, []byte("Grüße, 漢字, \u2028 end")}, {"32 KiB + 1", false, bytes.Repeat([]byte("k"), 32<<10+1)},
		{"text of 100 KB", true, []byte(strings.Repeat("ä", 50_000))}, {"1 MiB", false, bytes.Repeat(all, 4096)},
	} {
		m := c.echo(from, to, jms.Outgoing{Body: x.body, Text: x.text})
		if m == nil {
			c.broken("a message with body %q was refused", x.name)
		}
		if !bytes.Equal(m.Body, x.body) {
			c.broken("body %q of %d bytes arrived with %d bytes: %q", x.name, len(x.body), len(m.Body), short(m.Body))
		}
		if m.Text != x.text {
			c.broken("body %q was sent with Text %t and arrived with %t", x.name, x.text, m.Text)
		}
	}
}

func messageProperties(c *kase) {
	from, to := c.open(c.connect()), c.open(c.connectTo(c.b.Other))
	for _, x := range []struct {
		name       string
		sent, want any
	}{
		{"word", "Grüße", nil}, {"nothing", "", nil}, {"yes", true, nil}, {"no", false, nil}, {"count", 42, int64(42)},
		{"least", int64(math.MinInt64), nil}, {"most", int64(math.MaxInt64), nil}, {"tenth", 0.1, nil}, {"half", -0.5, nil},
		{"whole", 3.0, nil}, {"raw", []byte{0, 1, 254, 255}, nil},
	} {
		if x.want == nil {
			x.want = x.sent
		}
		m := c.echo(from, to, jms.Outgoing{Properties: map[string]any{x.name: x.sent, "account": "4711"}})
		if m == nil {
			if _, text := x.sent.(string); text {
				c.broken("a text property was refused: it may be the key of a message")
			}
			c.Logf("a property of type %T is refused", x.sent)
			continue
		}
		if got, there := m.Properties[x.name]; !there || !reflect.DeepEqual(got, x.want) {
			c.broken("property %s was sent as %T %v and arrived as %T %v (there: %t)", x.name, x.sent, x.sent, got, got, there)
		}
		if got := m.Properties["account"]; got != "4711" {
			c.broken("beside property %s, account arrived as %v", x.name, got)
		}
	}
}

func messageHeaders(c *kase) {
	from, to := c.open(c.connect()), c.open(c.connectTo(c.b.Other))
	seven := 7
	for _, x := range []struct {
		name string
		out  jms.Outgoing
		get  func(*jms.Message) any
		want []any
	}{
		{"CorrelationID", jms.Outgoing{CorrelationID: "corr-1"}, func(m *jms.Message) any { return m.CorrelationID }, []any{"corr-1", ""}},
		{"GroupID", jms.Outgoing{GroupID: "group-1"}, func(m *jms.Message) any { return m.GroupID }, []any{"group-1", ""}},
		{"ReplyTo", jms.Outgoing{ReplyTo: c.b.Queue}, func(m *jms.Message) any { return m.ReplyTo }, []any{c.b.Queue, ""}},
		{"Priority", jms.Outgoing{Priority: &seven}, func(m *jms.Message) any { return m.Priority }, []any{7}},
		{"Persistent", jms.Outgoing{}, func(m *jms.Message) any { return m.Persistent }, []any{true}},
		{"NonPersistent", jms.Outgoing{NonPersistent: true}, func(m *jms.Message) any { return m.Persistent }, []any{false}},
		{"no expiry", jms.Outgoing{}, func(m *jms.Message) any { return m.Expiration.IsZero() }, []any{true}},
		{"no CorrelationID", jms.Outgoing{}, func(m *jms.Message) any { return m.CorrelationID }, []any{""}},
	} {
		m := c.echo(from, to, x.out)
		if m == nil {
			c.Logf("%s is refused", x.name)
			continue
		}
		if got := x.get(m); !slices.Contains(x.want, got) {
			c.broken("%s arrived as %v, want one of %q", x.name, got, x.want)
		}
	}
}

func completeCopies(c *kase) {
	s := c.open(c.connect())
	c.send(c.b.Queue,
		jms.Outgoing{Body: []byte("first"), Properties: map[string]any{"n": "first", "raw": []byte("first")}},
		jms.Outgoing{Body: []byte("later"), Properties: map[string]any{"n": "later", "raw": []byte("later")}})
	m := c.take(s)
	copied := *m
	copied.Body, copied.Properties = bytes.Clone(m.Body), maps.Clone(m.Properties)
	if raw, ok := m.Properties["raw"].([]byte); ok {
		copied.Properties["raw"] = bytes.Clone(raw)
	}
	c.commit(s)
	c.take(s)
	c.commit(s)
	c.must("Close of the session", func() error { return s.Close(c.ctx) })
	if !reflect.DeepEqual(*m, copied) {
		c.broken("the message was\n%+v and became\n%+v after its session had received another one", copied, *m)
	}
}

func expiry(c *kase) {
	const ttl = 200 * time.Millisecond
	c.numbers(0, 1)
	s := c.open(c.connect())
	c.takeBody(s, "0")
	short := c.text("short-lived")
	short.TTL = ttl
	c.commit(s, short, c.text("lasting"))
	c.pause(5 * ttl)
	c.remaining(c.b.Other, "the first message lived for "+ttl.String(), []string{"lasting"})
}
