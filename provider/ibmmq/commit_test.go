package ibmmq_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/keyseq/keyseq/jms"
)

// Each reason code an MQCMIT can give: two say what happened, for all others the outcome is in doubt (H1).
func TestCommitReasons(t *testing.T) {
	for _, x := range []struct {
		code     int
		done     bool // the code comes after the commit
		sentinel error
	}{
		{2003, false, jms.ErrRolledBack}, {2018, false, jms.ErrSessionLost},
		{2009, false, jms.ErrCommitUnknown}, {2009, true, jms.ErrCommitUnknown}, {2162, false, jms.ErrCommitUnknown}, {2203, true, jms.ErrCommitUnknown},
		{2123, false, jms.ErrCommitUnknown}, {2124, false, jms.ErrCommitUnknown}, {2549, true, jms.ErrCommitUnknown}, {2195, false, jms.ErrCommitUnknown},
		{2777, false, jms.ErrCommitUnknown},
	} {
		b := newBench(t)
		b.needsControls()
		b.send(b.queue, "1")
		c := b.connect(b.factory(), jms.Subscription{})
		s := b.session(c)
		b.receive(s)
		if x.done {
			b.failAfter("MQCMIT", x.code, 1)
		} else {
			b.fail("MQCMIT", x.code, 1)
		}
		err := s.Commit(t.Context(), jms.Outgoing{Queue: b.other, Body: []byte("sent")})
		b.is(err, x.sentinel, b.queue, "MQCMIT")
		if again := s.Commit(t.Context()); !errors.Is(again, x.sentinel) {
			t.Errorf("%d: Commit afterwards = %v", x.code, again)
		}
		_ = s.Close(t.Context())
		left, sent := "1", ""
		if x.done {
			left, sent = "", "sent"
		}
		if got := b.bodies(b.queue); got != left {
			t.Errorf("%d, done %t: %q is left, want %q", x.code, x.done, got, left)
		}
		if got := b.bodies(b.other); got != sent {
			t.Errorf("%d, done %t: %q was sent, want %q", x.code, x.done, got, sent)
		}
	}
}

// A second send that can never succeed takes the first one along in a rollback. When the message comes again that is known before anything is sent, or its task
// would run for ever; then it is tried again, because an administrator may have mended it.
func TestSecondSendThatIsTooLong(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	b.define(b.other + ":maxmsgl=100")
	b.send(b.queue, "1")
	c := b.connect(b.factory(), jms.Subscription{})
	out := []jms.Outgoing{{Queue: b.other, Body: []byte("short")}, {Queue: b.other, Body: make([]byte, 200)}}
	s := b.session(c)
	b.receive(s)
	b.is(s.Commit(t.Context(), out...), jms.ErrRolledBack, "2030", b.other)
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	s = b.session(c)
	b.receive(s)
	b.is(s.Commit(t.Context(), out...), jms.ErrConfig, "2030", b.other)
	if n := b.available(b.other); n != 0 {
		t.Errorf("%d messages were sent", n)
	}
	b.define(b.other + ":maxmsgl=1000")
	if err := s.Commit(t.Context(), out...); err != nil { // it is still held
		t.Errorf("after the queue was altered: %v", err)
	}
	if n := b.available(b.other); n != 2 {
		t.Errorf("%d messages were sent, want 2", n)
	}
}

// H12: what a put can meet. With the first one nothing was done and the get is still held; a later one takes the whole unit of work along.
func TestSendReasons(t *testing.T) {
	for _, x := range []struct {
		code     int
		sentinel error // of the first send; a second one that fails is always ErrRolledBack, or the loss
	}{
		{2051, jms.ErrBusy}, {2053, jms.ErrBusy}, {2056, jms.ErrBusy}, {2192, jms.ErrBusy}, {2161, jms.ErrBusy}, {2102, jms.ErrBusy}, {2219, jms.ErrBusy},
		{2030, jms.ErrConfig}, {2031, jms.ErrConfig}, {2048, jms.ErrConfig}, {2085, jms.ErrConfig}, {2035, jms.ErrConfig}, {2087, jms.ErrConfig},
		{2003, jms.ErrRolledBack}, {2009, jms.ErrSessionLost}, {2162, jms.ErrConnectionLost},
	} {
		b := newBench(t)
		b.needsControls()
		b.send(b.queue, "1")
		s := b.session(b.connect(b.factory(), jms.Subscription{}))
		b.receive(s)
		b.fail("MQPUT1", x.code, 1)
		out := []jms.Outgoing{{Queue: b.other, Body: []byte("a")}, {Queue: b.other, Body: []byte("b")}}
		err := s.Commit(t.Context(), out...)
		b.is(err, x.sentinel, b.other, "MQPUT1")
		if !jms.EndsSession(err) { // the same call may be repeated
			if err := s.Commit(t.Context(), out...); err != nil {
				t.Errorf("%d: the same commit again = %v", x.code, err)
			}
			if got := b.bodies(b.other); got != "a b" {
				t.Errorf("%d: %q was sent", x.code, got)
			}
			if got := b.bodies(b.queue); got != "" {
				t.Errorf("%d: %q is left", x.code, got)
			}
			continue
		}
		_ = s.Close(t.Context())
		if got := b.bodies(b.queue) + b.bodies(b.other); got != "1" {
			t.Errorf("%d: found %q, want the message back and nothing sent", x.code, got)
		}
	}
}

func TestSecondSendFails(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	b.send(b.queue, "1", "2")
	c := b.connect(b.factory(), jms.Subscription{})
	s := b.session(c)
	b.receive(s)
	b.define("FULL:maxdepth=1")
	err := s.Commit(t.Context(), jms.Outgoing{Queue: b.other, Body: []byte("a")}, jms.Outgoing{Queue: "FULL", Body: []byte("b")},
		jms.Outgoing{Queue: "FULL", Body: []byte("c")})
	b.is(err, jms.ErrRolledBack, "FULL", "2053", "MAXDEPTH")
	if again := s.Commit(t.Context()); !errors.Is(again, jms.ErrRolledBack) {
		t.Errorf("Commit afterwards = %v", again)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if m := b.receive(b.session(c)); string(m.Body) != "1" {
		t.Errorf("received %s, want 1 at its place", m.Body)
	}
	if got := b.bodies(b.other) + b.bodies("FULL"); got != "" {
		t.Errorf("%q was sent", got)
	}
}

// 2460 on a send is mq-golang-jms20's early deletion of a message handle: the message is built anew, and sent once.
func TestSendIsBuiltAnew(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	s := b.session(b.connect(b.factory(), jms.Subscription{}))
	b.fail("MQPUT1", 2460, 3)
	out := jms.Outgoing{Queue: b.other, Body: []byte("a"), Properties: map[string]any{"n": 1, "raw": []byte{1}}}
	if err := s.Commit(t.Context(), out); err != nil {
		t.Fatal(err)
	}
	b.fail("MQPUT1", 2460, 1000)
	b.is(s.Commit(t.Context(), out), jms.ErrBusy, "2460")
	m := b.receive(b.session(b.connect(b.factory(), jms.Subscription{Queue: b.other})))
	if m.Properties["n"] != int64(1) || len(m.Properties["raw"].([]byte)) != 1 {
		t.Errorf("properties are %v", m.Properties)
	}
}

// A wrong name behind a right one is found before anything is sent: the message stays held.
func TestUnknownSecondTarget(t *testing.T) {
	b := newBench(t)
	b.send(b.queue, "1")
	s := b.session(b.connect(b.factory(), jms.Subscription{}))
	b.receive(s)
	good := jms.Outgoing{Queue: b.other, Body: []byte("a")}
	b.is(s.Commit(t.Context(), good, jms.Outgoing{Queue: b.unknown, Body: []byte("b")}), jms.ErrConfig, b.unknown, "2085")
	if err := s.Commit(t.Context(), good, good); err != nil {
		t.Fatal(err)
	}
	if got := b.bodies(b.other) + "|" + b.bodies(b.queue); got != "a a|" {
		t.Errorf("found %q", got)
	}
}

// A rollback that fails is a loss, and never a commit by MQDISC (T11).
func TestRollbackReasons(t *testing.T) {
	for _, x := range []struct {
		code, count int
		sentinel    error
	}{{2009, 1, jms.ErrSessionLost}, {2162, 1, jms.ErrConnectionLost}, {2003, 1, nil}, {2195, 1, jms.ErrSessionLost}, {2102, 1, jms.ErrSessionLost}} {
		b := newBench(t)
		b.needsControls()
		b.send(b.queue, "1")
		c := b.connect(b.factory(), jms.Subscription{})
		s := b.session(c)
		b.receive(s)
		b.fail("MQBACK", x.code, x.count)
		err := s.Rollback(t.Context())
		if x.sentinel == nil && err != nil || x.sentinel != nil && !errors.Is(err, x.sentinel) {
			t.Errorf("%d: Rollback = %v, want %v", x.code, err, x.sentinel)
		}
		_ = s.Close(t.Context())
		if got := b.bodies(b.queue); got != "1" {
			t.Errorf("%d: %q is left, want 1", x.code, got)
		}
	}
}

// A commit that hangs does not hang Close beyond its context, and its late success is no loss (H18).
func TestCloseBesideAHangingCommit(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	b.send(b.queue, "1")
	c := b.connect(b.factory(), jms.Subscription{})
	s := b.session(c)
	b.receive(s)
	b.hold("MQCMIT", true)
	done := make(chan error, 1)
	go func() { done <- s.Commit(context.Background()) }()
	b.soon("the commit hangs", func() bool { return b.available(b.queue) == 0 && b.unsettled() == 0 })
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	b.is(c.Close(ctx), jms.ErrConnectionLost, "close")
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("Close took %v", took)
	}
	b.release()
	if err := <-done; err != nil {
		t.Errorf("the commit = %v", err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Errorf("Close afterwards = %v", err)
	}
}

// What cannot be sent as it is is refused before anything is sent.
func TestRefusedSends(t *testing.T) {
	b := newBench(t)
	s := b.session(b.connect(b.factory(), jms.Subscription{}))
	ten := 10
	for name, out := range map[string]jms.Outgoing{
		"49": {Queue: strings.Repeat("Q", 49)}, "no name": {}, "my queue": {Queue: "my queue"},
		"correlation": {Queue: b.other, CorrelationID: "thirteen char"}, "priority": {Queue: b.other, Priority: &ten},
		"TTL": {Queue: b.other, TTL: -1}, "chan": {Queue: b.other, Properties: map[string]any{"p": make(chan int)}},
		"ReplyTo": {Queue: b.other, ReplyTo: "a b"}, "UTF-8": {Queue: b.other, Text: true, Body: []byte{0xff}},
	} {
		err := s.Commit(t.Context(), jms.Outgoing{Queue: b.other, Body: []byte("first")}, out)
		b.is(err, jms.ErrConfig, name)
	}
	if got := b.bodies(b.other); got != "" {
		t.Errorf("%q was sent", got)
	}
}
