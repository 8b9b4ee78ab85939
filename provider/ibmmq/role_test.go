package ibmmq_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/ibmmq"
)

// active connects and becomes the active instance.
func (b *bench) active(name string) jms.Connection {
	b.t.Helper()
	c := b.contender(name)
	ctx, cancel := context.WithTimeout(b.t.Context(), 10*time.Second)
	defer cancel()
	if err := c.(jms.Elector).AwaitActive(ctx); err != nil {
		b.t.Fatalf("AwaitActive of %s: %v", name, err)
	}
	return c
}

func (b *bench) contender(name string) jms.Connection {
	b.t.Helper()
	return b.connect(b.factory(func(f *ibmmq.Factory) { f.LockQueue = b.lock }), jms.Subscription{SingleActiveConsumer: true, Client: name})
}

func (b *bench) orderly(c jms.Connection) bool {
	b.t.Helper()
	ok, err := c.(jms.Predecessor).EndedInOrder(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return ok
}

// The token of an orderly end is left by who closed in order, taken by the next, and by nobody else.
func TestOrderlyEndLeavesAToken(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	first := b.active("A")
	if b.orderly(first) {
		t.Error("the first one ever was told that its predecessor ended in order")
	}
	b.send(b.queue, "1", "2", "3")
	s := b.session(first)
	b.receive(s)
	if err := s.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	second := b.active("B")
	if !b.orderly(second) {
		t.Error("the second was not told that the first ended in order")
	}
	b.receive(b.session(second))
	if err := second.Close(t.Context()); err != nil { // with a message held: its task may still run
		t.Fatal(err)
	}

	third := b.active("C")
	if b.orderly(third) {
		t.Error("the third was told that the second ended in order, which held a message")
	}
	b.breakName("C", true)

	fourth := b.active("D")
	if b.orderly(fourth) {
		t.Error("the fourth was told that the third ended in order, whose connection broke")
	}
}

// An instance that ended before it had opened a session may have been waiting for the tasks of the one before it: it passes on how that ended.
func TestInstanceThatDidNotWorkPassesOn(t *testing.T) {
	for name, ordered := range map[string]bool{"in order": true, "by a broken connection": false} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.needsControls()
			first := b.active("A")
			b.session(first)
			if ordered {
				if err := first.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
			} else {
				b.breakName("A", true)
			}
			for _, waits := range []string{"B", "C"} {
				if err := b.active(waits).Close(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if got := b.orderly(b.active("D")); got != ordered {
				t.Errorf("EndedInOrder = %t, want %t", got, ordered)
			}
		})
	}
}

// One session whose call hangs while the control connection lives does not keep the role for ever: nobody would read. It is kept while the queue
// manager may still need to notice, and no token is left.
func TestRoleIsGivenUpPastASessionThatHangs(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	b.send(b.queue, "1", "2")
	first := b.active("A")
	s := b.session(first)
	b.receive(s)
	b.hold("MQCMIT", false)
	commit := make(chan error, 1)
	go func() { commit <- s.Commit(context.Background()) }()
	b.soon("the commit hangs", func() bool { return b.held() == 1 })
	closed := make(chan error, 1)
	go func() { closed <- first.Close(context.Background()) }()
	standby := b.contender("B")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := standby.(jms.Elector).AwaitActive(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("AwaitActive = %v before the queue manager could notice", err)
	}
	if err := standby.(jms.Elector).AwaitActive(t.Context()); err != nil {
		t.Fatal(err)
	}
	if b.orderly(standby) {
		t.Error("the standby was told that the first one ended in order")
	}
	if clean, err := standby.(jms.CleanStarter).CleanStart(t.Context()); err != nil || clean {
		t.Errorf("CleanStart = %t, %v while the commit is out", clean, err)
	}
	b.is(took(b, "Close returns", closed), jms.ErrSessionLost, "close")
	b.release()
	if err := took(b, "the commit returns", commit); err != nil {
		t.Errorf("the commit = %v", err)
	}
}

// H5: the connection that holds the lock breaks. Done tells within two probes, nothing can be committed any more, and Close rolls
// everything back while the standby is active already.
func TestLostRole(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	b.send(b.queue, "1", "2")
	first := b.active("A")
	s := b.session(first)
	b.receive(s)
	standby := b.contender("B")
	became := make(chan error, 1)
	go func() { became <- standby.(jms.Elector).AwaitActive(context.Background()) }()

	b.breakName("A control", true) // only the lock; the session stands
	began := time.Now()
	select {
	case <-first.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("Done is not closed")
	}
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("the loss was noticed after %v", took)
	}
	b.is(first.Err(), jms.ErrConnectionLost, "2009")
	b.is(s.Commit(t.Context()), jms.ErrConnectionLost)
	if err := <-became; err != nil {
		t.Fatal(err)
	}
	if clean, err := standby.(jms.CleanStarter).CleanStart(t.Context()); err != nil || clean {
		t.Errorf("CleanStart = %t, %v while the first one holds a message", clean, err)
	}
	if b.orderly(standby) {
		t.Error("the standby was told that the first one ended in order")
	}
	_ = first.Close(t.Context())
	if clean, err := standby.(jms.CleanStarter).CleanStart(t.Context()); err != nil || !clean {
		t.Errorf("CleanStart = %t, %v after everything was rolled back", clean, err)
	}
	if m := b.receive(b.session(standby)); string(m.Body) != "1" {
		t.Errorf("received %s", m.Body)
	}
}

// H5, H18: the control connection hangs, as on a link that has gone dark. The role is given up sooner than the queue manager could notice.
func TestHangingControlConnection(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	c := b.active("A")
	b.hold("MQBACK", false)
	select {
	case <-c.Done():
	case <-time.After(8 * time.Second):
		t.Fatal("Done is not closed")
	}
	b.is(c.Err(), jms.ErrConnectionLost, "in time")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	b.is(c.Close(ctx), jms.ErrConnectionLost)
	b.release()
}

// The role is given up also when a call on the control connection has hung for longer than Close waits: the next one is active as soon as it returns, and
// no connection is left behind.
func TestRoleIsGivenUpHoweverLate(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	before := b.connected()
	c := b.active("A")
	b.hold("MQBACK", false)
	select {
	case <-c.Done():
	case <-time.After(8 * time.Second):
		t.Fatal("Done is not closed")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	b.is(c.Close(ctx), jms.ErrConnectionLost)
	b.never(time.Second, "the control connection is closed while a call on it is out", func() bool { return b.connected() == before })
	b.release()
	b.soon("the control connection is closed", func() bool { return b.connected() == before })
	next := b.active("B")
	if b.orderly(next) {
		t.Error("the next one was told that the first ended in order, which was lost")
	}
}

// A reader that died without a word keeps the queue open until the queue manager notices: no clean start before.
func TestCleanStartAfterASilentDeath(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	b.detect(-1)
	b.send(b.queue, "1")
	first := b.connect(b.factory(), jms.Subscription{Client: "A"})
	b.receive(b.session(first))
	b.breakName("A", false)
	c := b.connect(b.factory(), jms.Subscription{Client: "B"})
	if clean, err := c.(jms.CleanStarter).CleanStart(t.Context()); err != nil || clean {
		t.Errorf("CleanStart = %t, %v; want false", clean, err)
	}
	b.notice()
	if clean, err := c.(jms.CleanStarter).CleanStart(t.Context()); err != nil || !clean {
		t.Errorf("CleanStart = %t, %v; want true", clean, err)
	}
}

// An inquiry that returns when nobody waits for it any more changes nothing (the race detector sees to that).
func TestInquiryThatReturnsLate(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	c := b.connect(b.factory(func(f *ibmmq.Factory) { f.Heartbeat = 10 * time.Second }), jms.Subscription{})
	b.hold("MQINQ", true)
	time.AfterFunc(200*time.Millisecond, b.release)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if clean, err := c.(jms.CleanStarter).CleanStart(ctx); clean || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("CleanStart = %t, %v", clean, err)
	}
	for end := time.Now().Add(400 * time.Millisecond); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		// A call to the stand-in would put this goroutine's past before what returns late, as the race detector sees it.
	}
	b.soon("the connection answers again", func() bool {
		clean, err := c.(jms.CleanStarter).CleanStart(t.Context())
		return clean && err == nil
	})
}

func TestLockQueueMissing(t *testing.T) {
	b := newBench(t)
	c := b.connect(b.factory(func(f *ibmmq.Factory) { f.LockQueue = b.unknown }), jms.Subscription{SingleActiveConsumer: true})
	b.is(c.(jms.Elector).AwaitActive(t.Context()), jms.ErrConfig, b.unknown, "DEFINE QLOCAL", "NOSHARE")
}

// Without a single active consumer there is no election, and the lock queue is not touched.
func TestNoElection(t *testing.T) {
	b := newBench(t)
	c := b.connect(b.factory(func(f *ibmmq.Factory) { f.LockQueue = b.unknown }), jms.Subscription{})
	if err := c.(jms.Elector).AwaitActive(t.Context()); err != nil {
		t.Error(err)
	}
}

// User report 6 without a single active consumer: a second reader is told that it is not alone.
func TestSecondReaderIsWarned(t *testing.T) {
	b := newBench(t)
	b.session(b.connect(b.factory(), jms.Subscription{}))
	var log strings.Builder
	var mu sync.Mutex
	second := b.connect(b.factory(), jms.Subscription{Logger: textLogger(&mu, &log)})
	if clean, err := second.(jms.CleanStarter).CleanStart(t.Context()); err != nil || clean {
		t.Errorf("CleanStart = %t, %v", clean, err)
	}
	mu.Lock()
	defer mu.Unlock()
	if !strings.Contains(log.String(), "SingleActiveConsumer") {
		t.Errorf("the log is %q", log.String())
	}
}

// A standby whose queue manager goes away hears of it.
func TestStandbyLosesItsConnection(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	b.active("A")
	standby := b.contender("B")
	became := make(chan error, 1)
	go func() { became <- standby.(jms.Elector).AwaitActive(context.Background()) }()
	b.soon("both are connected", func() bool { return b.connected() >= 2 })
	b.breakName("B", true)
	select {
	case err := <-became:
		if !errors.Is(err, jms.ErrConnectionLost) {
			t.Errorf("AwaitActive = %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("AwaitActive still waits")
	}
}
