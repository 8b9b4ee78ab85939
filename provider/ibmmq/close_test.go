package ibmmq_test

import (
	"context"
	"testing"
	"time"

	"github.com/keyseq/keyseq/jms"
)

// MQDISC commits an open unit of work: a session that cannot be rolled back is not disconnected, unless it is certain that its connection is gone.
func TestCloseNeverCommits(t *testing.T) {
	for name, code := range map[string]int{"short of a resource": 2102, "unexpected error": 2195, "interrupted": 2549, "outcome pending": 2124, "unknown": 2777} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.needsControls()
			b.send(b.queue, "1")
			c := b.connect(b.factory(), jms.Subscription{})
			s := b.session(c)
			b.receive(s)
			before := b.calls("MQDISC")
			b.fail("MQBACK", code, 4) // mq-golang-jms20 tries once more by itself before MQDISC
			err := s.Close(t.Context())
			b.is(err, jms.ErrSessionLost, "commit")
			if n := b.calls("MQDISC"); n != before {
				t.Errorf("MQDISC was called %d times", n-before)
			}
			if n := b.unsettled(); n != 1 {
				t.Errorf("%d messages are in units of work, want 1", n)
			}
			b.breakName("test", true)
			b.soon("the message is back", func() bool { return b.available(b.queue) == 1 })
		})
	}
}

// A back-out that fails and then works leaves nothing behind.
func TestCloseTriesAgain(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	b.send(b.queue, "1")
	before := b.connected()
	c := b.connect(b.factory(), jms.Subscription{})
	s := b.session(c)
	b.receive(s)
	b.fail("MQBACK", 2195, 1)
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if n := b.available(b.queue); n != 1 {
		t.Errorf("%d messages are back, want 1", n)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
	b.soon("no connection is left", func() bool { return b.connected() == before })
}

// Commits that hang, however many, keep no other session from giving back: its message would stay locked for longer than ReturnDelay says.
func TestCloseGoesPastSessionsThatHang(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	const hanging = 40
	b.send(b.queue, numbers(1, hanging+5)...)
	c := b.connect(b.factory(), jms.Subscription{})
	var all []jms.Session
	for range hanging + 5 {
		s := b.session(c)
		b.receive(s)
		all = append(all, s)
	}
	b.hold("MQCMIT", false)
	done := make(chan error, hanging)
	for _, s := range all[:hanging] {
		go func() { done <- s.Commit(context.Background()) }()
	}
	b.soon("the commits hang", func() bool { return b.held() == hanging })
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	b.is(c.Close(ctx), jms.ErrConnectionLost, "close")
	b.soon("the others have given back", func() bool { return b.available(b.queue) == 5 })
	b.release()
	for range hanging {
		if err := <-done; err != nil {
			t.Errorf("a commit that hung = %v", err)
		}
	}
	if err := c.Close(t.Context()); err != nil {
		t.Errorf("Close afterwards = %v", err)
	}
}
