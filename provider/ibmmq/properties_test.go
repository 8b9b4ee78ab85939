package ibmmq_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	mq "github.com/ibm-messaging/mq-golang/v5/ibmmq"

	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/ibmmq"
)

// An inquiry that fails is not the end of the properties: what was not read is not absent. The message is received anew.
func TestFailedInquiryIsNoAbsentProperty(t *testing.T) {
	for name, code := range map[string]int{"deleted early": 2460, "out of memory": 2071, "unexpected": 2469, "unknown": 2777} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.needsControls()
			b.sendAll(b.queue, jms.Outgoing{Properties: map[string]any{"account": "k", "n": 7}})
			s := b.session(b.connect(b.factory(), jms.Subscription{}))
			b.fail("MQINQMP", code, 2)
			m, err := s.Receive(t.Context())
			for errors.Is(err, jms.ErrBusy) {
				m, err = s.Receive(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			if m.Properties["account"] != "k" || m.Properties["n"] != int64(7) || m.DeliveryCount != 3 {
				t.Errorf("delivery %d with %v; want the third, complete", m.DeliveryCount, m.Properties)
			}
		})
	}
}

// A message whose properties can never be told is not handed over without them, and does not go round for ever: the run ends and says which one it is.
func TestMessageWhosePropertiesCannotBeTold(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	b.sendAll(b.queue, jms.Outgoing{Properties: map[string]any{"account": "k"}})
	s := b.session(b.connect(b.factory(), jms.Subscription{}))
	b.fail("MQINQMP", 2469, 4) // the first and three more
	_, err := s.Receive(t.Context())
	b.is(err, jms.ErrConfig, "2469", b.queue, "by hand")
	if !errors.Is(err, jms.ErrUnreadable) {
		t.Errorf("%v does not wrap ErrUnreadable", err)
	}
	if m := b.receive(s); m.Properties["account"] != "k" || !strings.Contains(err.Error(), m.ID) {
		t.Errorf("%v does not name %s", err, m.ID)
	}
}

// A connection that is lost in the inquiry is a lost session, whose message comes again.
func TestConnectionLostInTheInquiry(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	b.sendAll(b.queue, jms.Outgoing{Properties: map[string]any{"account": "k"}})
	c := b.connect(b.factory(), jms.Subscription{})
	s := b.session(c)
	b.fail("MQINQMP", 2009, 1)
	_, err := s.Receive(t.Context())
	b.is(err, jms.ErrSessionLost, "2009")
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if m := b.receive(b.session(c)); m.Properties["account"] != "k" {
		t.Errorf("properties are %v", m.Properties)
	}
}

// Without the hook one long property hides the names of all: that is said, with the way out, and with the hook the message is received.
func TestLongPropertyWithoutTheHook(t *testing.T) {
	b := newBench(t)
	b.sendAll(b.queue, jms.Outgoing{Properties: map[string]any{"account": "k", "long": strings.Repeat("x", 2000)}})
	mq.SetOtelFuncs(mq.MQOtelFuncs{})
	defer mq.SetOtelFuncs(ibmmq.TraceFuncs(mq.MQOtelFuncs{}))
	f := b.factory(func(f *ibmmq.Factory) { f.NoTraceHook = true })
	c, err := f.Connect(t.Context(), jms.Subscription{Queue: b.queue, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	_, err = b.session(c).Receive(t.Context())
	b.is(err, jms.ErrConfig, "TraceFuncs", b.queue)
	if !errors.Is(err, jms.ErrUnreadable) {
		t.Errorf("%v does not wrap ErrUnreadable", err)
	}

	mq.SetOtelFuncs(ibmmq.TraceFuncs(mq.MQOtelFuncs{}))
	m := b.receive(b.session(c))
	if m.Properties["account"] != "k" || !errors.Is(m.PropertyErr("long"), jms.ErrUnreadable) {
		t.Errorf("with the hook properties are %v", m.Properties)
	}
}
