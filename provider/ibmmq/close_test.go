package ibmmq_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/ibmmq"
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
			b.fail("MQBACK", code, 8) // the last more than a second later
			err := s.Close(t.Context())
			b.is(err, jms.ErrSessionLost, "commit", strconv.Itoa(code))
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

// While a closed session still holds a message nothing later is received, which could be of its key. It is rolled back as soon as that works, and then
// reading goes on where it was.
func TestNothingIsReceivedPastAStuckSession(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	b.send(b.queue, "k.1", "k.2")
	var log strings.Builder
	var mu sync.Mutex
	before := b.connected()
	c := b.connect(b.factory(func(f *ibmmq.Factory) { f.Heartbeat = 10 * time.Second }), jms.Subscription{Logger: textLogger(&mu, &log)})
	s, other := b.session(c), b.session(c)
	b.receive(s)
	b.fail("MQBACK", 2102, 5) // the sixth works, before the first probe of the connection
	b.is(s.Close(t.Context()), jms.ErrSessionLost, "commit")
	if m, err := other.Receive(t.Context()); m != nil || !errors.Is(err, jms.ErrBusy) {
		t.Errorf("Receive = %v, %v while k.1 is locked; want ErrBusy", m, err)
	}
	b.soon("k.1 is back", func() bool { return b.available(b.queue) == 2 })
	b.soon("it can be received", func() bool {
		m, err := other.Receive(t.Context())
		if m != nil && string(m.Body) != "k.1" {
			t.Errorf("received %s", m.Body)
		}
		return err == nil
	})
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
	b.soon("no connection is left", func() bool { return b.connected() <= before })
	mu.Lock()
	defer mu.Unlock()
	for _, want := range []string{"ERROR", "stays locked", "STOP CONN", "given back"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %q: %s", want, log.String())
		}
	}
}

// Back-outs that hang hold up no others, however many they are.
func TestHangingBackOutsHoldUpNoOthers(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	const sessions = 40
	c := b.connect(b.factory(), jms.Subscription{})
	for range sessions {
		b.session(c)
	}
	b.hold("MQBACK", false)
	closed := make(chan error, 1)
	go func() { closed <- c.Close(context.Background()) }()
	b.soon("all are on their way", func() bool { return b.held() >= sessions })
	b.release()
	if err := took(b, "it is closed", closed); err != nil {
		t.Error(err)
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

// A Shutdown does not wait for connects that are on their way; whatever they bring is closed when it comes, and no goroutine and no connection is left.
func TestConnectsOnTheirWayEndAfterShutdown(t *testing.T) {
	for name, done := range map[string]bool{"on the way": false, "on the way back": true} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.needsControls()
			running, hang := make(chan struct{}, 99), make(chan struct{})
			a := inMemory(func(ctx context.Context, d *keyseq.Delivery) error {
				running <- struct{}{}
				select {
				case <-hang:
				case <-ctx.Done():
				}
				return ctx.Err()
			})
			send := b.sender()
			fill := func(keys ...string) {
				for _, key := range keys {
					if err := send(t.Context(), b.queue, jms.Outgoing{Text: true, Body: []byte(key + ".1")}); err != nil {
						t.Fatal(err)
					}
				}
			}
			fill("a", "b", "c", "d")
			before, goroutines := b.connected(), goleak.IgnoreCurrent()
			m := b.manage(b.factory(), a)
			for range 4 {
				took(b, "a task runs", running)
			}
			b.hold("MQCONNX", done)
			fill("e", "f", "g", "h", "i", "j", "k", "l")
			b.soon("connects are on their way", func() bool { return b.held() >= 1 })
			close(hang)
			b.shutdown(m, a)
			b.release()
			b.soon("no connection is left", func() bool { return b.connected() <= before })
			if err := goleak.Find(goroutines); err != nil {
				t.Error(err)
			}
		})
	}
}
