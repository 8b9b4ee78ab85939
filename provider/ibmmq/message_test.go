package ibmmq_test

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	mq "github.com/ibm-messaging/mq-golang/v5/ibmmq"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/ibmmq"
)

// echo sends one message and receives it.
func (b *bench) echo(out jms.Outgoing, configure ...func(*ibmmq.Factory)) *jms.Message {
	b.t.Helper()
	b.sendAll(b.queue, out)
	s := b.session(b.connect(b.factory(configure...), jms.Subscription{}))
	m := b.receive(s)
	if err := s.Commit(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	return m
}

func TestCorrelationIDs(t *testing.T) {
	b := newBench(t)
	for _, id := range []string{"twelve chars", "c1", "deadbeef", "414d5120514d312020202020202020206b0d8eb6000001bb", "0001", "x"} {
		if m := b.echo(jms.Outgoing{CorrelationID: id}); m.CorrelationID != id {
			t.Errorf("%q arrived as %q", id, m.CorrelationID)
		}
	}
}

func TestHeaders(t *testing.T) {
	b := newBench(t)
	two := 2
	began := time.Now()
	m := b.echo(jms.Outgoing{Text: true, Body: []byte("x"), TTL: 90 * time.Second, Priority: &two, GroupID: "group", ReplyTo: b.other, NonPersistent: true})
	if len(m.ID) != 48 || m.GroupID != "group" || m.ReplyTo != b.other || m.Priority != 2 || m.Persistent || !m.Text {
		t.Errorf("%+v", m)
	}
	if d := m.Timestamp.Sub(began); d < -time.Minute || d > time.Minute {
		t.Errorf("the timestamp is %v", m.Timestamp)
	}
	if d := m.Expiration.Sub(began); d < 80*time.Second || d > 100*time.Second {
		t.Errorf("it expires in %v, want 90 s", d)
	}
	if m.DeliveryCount != 1 || m.Redelivered || m.Properties[ibmmq.PropertyFormat] != "MQSTR" || m.Properties[ibmmq.PropertyCharacterSet] == nil {
		t.Errorf("%+v", m)
	}
}

// A text in another character set is passed on as it is, named, and survives the way to a backout queue, with its key.
func TestCharacterSetIsPassedOn(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	ebcdic := []byte{0xc8, 0x85, 0x93, 0x93, 0x96} // "Hello"
	b.sendAll(b.queue, jms.Outgoing{Text: true, Body: ebcdic, Properties: map[string]any{ibmmq.PropertyCharacterSet: int64(500), "raw": []byte{0, 255}}})
	a := inMemory(func(_ context.Context, d *keyseq.Delivery) error { return keyseq.DeadLetter(errors.New("no good")) })
	m, err := keyseq.NewSequenceManager(b.queue, b.factory(), a, keyseq.KeyExtractorFunc(func(m *keyseq.Message) (string, error) { return string(m.Body), nil }),
		func(c *keyseq.Config) { c.Events = append(c.Events, a.events()) })
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.finished(a, 1)
	b.shutdown(m, a)
	got := b.receive(b.session(b.connect(b.factory(), jms.Subscription{Queue: b.other})))
	if !got.Text || !bytes.Equal(got.Body, ebcdic) || got.Properties[ibmmq.PropertyCharacterSet] != int64(500) {
		t.Errorf("the dead letter is %+v", got)
	}
	if key, _ := got.Properties["keyseq_key"].([]byte); !bytes.Equal(key, ebcdic) || !reflect.DeepEqual(got.Properties["raw"], []byte{0, 255}) {
		t.Errorf("its properties are %v", got.Properties)
	}
}

// A text is sent as what it is, UTF-8, and not as what IBM's client takes the locale of the process for, unless its character set is named.
func TestTextIsSentAsUTF8(t *testing.T) {
	b := newBench(t)
	b.sender() // the first connection of a process sets the trace functions
	var sets []int32
	mq.SetOtelFuncs(ibmmq.TraceFuncs(mq.MQOtelFuncs{
		PutTraceBefore: func(_ mq.OtelOpts, _ *mq.MQQueueManager, md *mq.MQMD, _ *mq.MQPMO, _ []byte) {
			sets = append(sets, md.CodedCharSetId)
		},
	}))
	defer mq.SetOtelFuncs(ibmmq.TraceFuncs(mq.MQOtelFuncs{}))
	two := 2
	b.sendAll(b.queue,
		jms.Outgoing{Text: true, Body: []byte("Grüße"), ReplyTo: b.other, Priority: &two, NonPersistent: true, TTL: time.Minute},
		jms.Outgoing{Text: true, Body: []byte{0xc8}, Properties: map[string]any{ibmmq.PropertyCharacterSet: int64(500)}},
		jms.Outgoing{Body: []byte{1, 2}})
	if !reflect.DeepEqual(sets, []int32{1208, 500, mq.MQCCSI_Q_MGR}) {
		t.Errorf("the character sets are %v, want 1208, 500 and none", sets)
	}
	m := b.receive(b.session(b.connect(b.factory(), jms.Subscription{})))
	if string(m.Body) != "Grüße" || m.ReplyTo != b.other || m.Priority != 2 || m.Persistent || m.Expiration.IsZero() {
		t.Errorf("%+v", m)
	}
}

func TestPropertyTypes(t *testing.T) {
	b := newBench(t)
	m := b.echo(jms.Outgoing{Properties: map[string]any{"s": "x", "n": 7, "f": 0.5, "t": true}})
	for name, want := range map[string]any{"s": "x", "n": int64(7), "f": 0.5, "t": true} {
		if m.Properties[name] != want {
			t.Errorf("%s is %v", name, m.Properties[name])
		}
	}
}

// TraceFuncs calls the program's own functions, and works as the built-in hook does.
func TestTraceFuncs(t *testing.T) {
	b := newBench(t)
	var gets, puts, opens int
	mq.SetOtelFuncs(ibmmq.TraceFuncs(mq.MQOtelFuncs{
		GetTraceAfter:  func(mq.OtelOpts, *mq.MQObject, *mq.MQGMO, *mq.MQMD, []byte, bool) int { gets++; return 0 },
		PutTraceBefore: func(mq.OtelOpts, *mq.MQQueueManager, *mq.MQMD, *mq.MQPMO, []byte) { puts++ },
		Open:           func(*mq.MQObject, *mq.MQOD, int32) { opens++ },
	}))
	defer mq.SetOtelFuncs(ibmmq.TraceFuncs(mq.MQOtelFuncs{}))
	m := b.echo(jms.Outgoing{Properties: map[string]any{"raw": []byte{1}, "n": 7}}, func(f *ibmmq.Factory) { f.NoTraceHook = true })
	if gets != 1 || puts != 1 || opens == 0 {
		t.Errorf("%d gets, %d puts, %d opens were traced", gets, puts, opens)
	}
	if !reflect.DeepEqual(m.Properties["raw"], []byte{1}) || m.Properties["n"] != int64(7) {
		t.Errorf("properties are %v", m.Properties)
	}

	// Functions that are set by somebody who does not know of this package: the fallback reads.
	mq.SetOtelFuncs(mq.MQOtelFuncs{})
	m = b.echo(jms.Outgoing{Properties: map[string]any{"s": "x", "n": 7, "t": true}})
	for name, want := range map[string]string{"s": "x", "n": "7", "t": "true"} {
		if got, _ := m.Property(name); got != want {
			t.Errorf("without the hook %s is %q", name, got)
		}
	}
	if m.DeliveryCount != 1 || m.Timestamp.IsZero() || !m.Persistent {
		t.Errorf("%+v", m)
	}
	s := b.session(b.connect(b.factory(func(f *ibmmq.Factory) { f.NoTraceHook = true }), jms.Subscription{}))
	b.is(s.Commit(t.Context(), jms.Outgoing{Queue: b.other, Properties: map[string]any{"raw": []byte{1}}}), jms.ErrConfig, "raw", "hook")
}
