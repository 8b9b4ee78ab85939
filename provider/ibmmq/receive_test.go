package ibmmq_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/ibmmq"
)

// Each reason code an MQGET can give, as its class says. What is not named here is in reason_test.go.
func TestReceiveReasons(t *testing.T) {
	for _, x := range []struct {
		code     int
		name     string
		sentinel error
		goesOn   bool // the session receives afterwards
	}{
		{2009, "MQRC_CONNECTION_BROKEN", jms.ErrSessionLost, false},
		{2016, "GET(ENABLED)", jms.ErrBusy, true},
		{2024, "MQRC_SYNCPOINT_LIMIT_REACHED", nil, true},
		{2035, "setmqaut", jms.ErrConfig, true},
		{2101, "AMQERR01.LOG", jms.ErrConfig, true},
		{2110, "MQRC_FORMAT_ERROR", nil, true},
		{2161, "MQRC_Q_MGR_QUIESCING", jms.ErrQuiescing, true},
		{2162, "MQRC_Q_MGR_STOPPING", jms.ErrConnectionLost, false},
		{2195, "FDC", jms.ErrSessionLost, false},
		{2202, "MQRC_CONNECTION_QUIESCING", jms.ErrQuiescing, true},
		{2203, "MQRC_CONNECTION_STOPPING", jms.ErrConnectionLost, false},
		{2010, "MaxMessageSize", jms.ErrConfig, true},
		{2499, "MQRC_MSG_HANDLE_IN_USE", nil, true},
		{2219, "MQRC_CALL_IN_PROGRESS", jms.ErrBusy, true},
		{2777, "", jms.ErrSessionLost, false}, // an unknown one
	} {
		t.Run(x.name, func(t *testing.T) {
			b := newBench(t)
			b.needsControls()
			b.send(b.queue, "1")
			s := b.session(b.connect(b.factory(), jms.Subscription{}))
			b.fail("MQGET", x.code, 1)
			_, err := s.Receive(t.Context())
			if err == nil {
				t.Fatal("Receive succeeded")
			}
			if x.sentinel != nil {
				b.is(err, x.sentinel, b.queue, x.name)
			} else if jms.EndsSession(err) || errors.Is(err, jms.ErrConfig) || errors.Is(err, jms.ErrBusy) || !strings.Contains(err.Error(), x.name) {
				t.Errorf("Receive = %v; want an error without a sentinel that names %s", err, x.name)
			}
			var reason *ibmmq.ReasonError
			if !errors.As(err, &reason) || reason.Code != x.code || reason.Call != "MQGET" || reason.Object != b.queue {
				t.Errorf("the error carries %+v", reason)
			}
			if x.goesOn {
				if m := b.receive(s); string(m.Body) != "1" {
					t.Errorf("received %s afterwards", m.Body)
				}
			} else if _, again := s.Receive(t.Context()); !errors.Is(again, x.sentinel) {
				t.Errorf("Receive afterwards = %v", again)
			}
		})
	}
}

// What passes by itself is no error: a backed-out unit of work, a stale object handle, a queue that was altered.
func TestReceiveBeginsAnew(t *testing.T) {
	for _, code := range []int{2003, 2019, 2041, 2460} {
		b := newBench(t)
		b.needsControls()
		b.send(b.queue, "1")
		s := b.session(b.connect(b.factory(), jms.Subscription{}))
		b.fail("MQGET", code, 2)
		if m := b.receive(s); string(m.Body) != "1" {
			t.Errorf("%d: received %s", code, m.Body)
		}
		b.fail("MQGET", code, 1000)
		if err := s.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Receive(t.Context()); err == nil || errors.Is(err, context.Canceled) {
			t.Errorf("%d for ever: Receive = %v", code, err)
		}
	}
}

// An operator inhibits the queue for reading, also while a Receive waits, and enables it again.
func TestInhibitedQueue(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	s := b.session(b.connect(b.factory(), jms.Subscription{}))
	waiting := make(chan error, 1)
	go func() {
		_, err := s.Receive(context.Background())
		waiting <- err
	}()
	b.soon("it waits", func() bool { return b.waiters(b.queue) == 1 })
	b.define(b.queue + ":get=0")
	b.is(<-waiting, jms.ErrBusy, "2016", "GET(ENABLED)")
	b.send(b.queue, "1")
	b.define(b.queue + ":get=1")
	if m := b.receive(s); string(m.Body) != "1" {
		t.Errorf("received %s", m.Body)
	}
}

// A queue that is deleted is a matter of configuration once opening it says so.
func TestReceiveFromADeletedQueue(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	s := b.session(b.connect(b.factory(), jms.Subscription{}))
	b.fail("MQGET", 2052, 1)
	b.fail("MQOPEN", 2085, 1)
	_, err := s.Receive(t.Context())
	b.is(err, jms.ErrConfig, b.queue, "2085")
}

// H3: the message is taken and the answer is lost. The session is lost, and nobody gets the message before the queue manager has noticed.
func TestLostReceive(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	b.detect(-1)
	b.send(b.queue, "1", "2")
	c := b.connect(b.factory(), jms.Subscription{})
	s := b.session(c)
	b.failAfter("MQGET", 2009, 1)
	_, err := s.Receive(t.Context())
	b.is(err, jms.ErrSessionLost)
	if got := string(b.receive(b.session(c)).Body); got != "2" {
		t.Fatalf("received %s while 1 is locked", got)
	}
	b.notice()
	if m := b.receive(b.session(c)); string(m.Body) != "1" || !m.Redelivered || m.DeliveryCount != 2 {
		t.Errorf("received %s, redelivered %t, delivery %d; want 1 for the second time", m.Body, m.Redelivered, m.DeliveryCount)
	}
}

// B24, 2080: a message that does not fit does not block the queue; the buffer grows up to its limit.
func TestOversizeMessageGrowsTheBuffer(t *testing.T) {
	b := newBench(t)
	big := strings.Repeat("x", 300_000)
	b.send(b.queue, "small", big, "last")
	s := b.session(b.connect(b.factory(func(f *ibmmq.Factory) { f.BufferSize = 1 << 10 }), jms.Subscription{}))
	for _, want := range []string{"small", big, "last"} {
		m := b.receive(s)
		if string(m.Body) != want {
			t.Fatalf("received %d bytes, want %d", len(m.Body), len(want))
		}
		if m.DeliveryCount != 1 {
			t.Errorf("delivery %d of a message of %d bytes, want 1", m.DeliveryCount, len(want))
		}
		if err := s.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// Beyond the limit there is no way on that keeps the order: the error ends the run and names the setting.
func TestMessageBeyondTheLimit(t *testing.T) {
	b := newBench(t)
	b.send(b.queue, strings.Repeat("x", 100_000), "behind")
	s := b.session(b.connect(b.factory(func(f *ibmmq.Factory) { f.MaxMessageSize = 50_000 }), jms.Subscription{}))
	_, err := s.Receive(t.Context())
	b.is(err, jms.ErrConfig, "Factory.MaxMessageSize", b.queue)
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := b.bodies(b.queue); !strings.HasSuffix(got, "x behind") {
		t.Errorf("%d bytes left, want both messages", len(got))
	}
}

// 2460: properties and body are right however often the garbage collector deletes message handles.
func TestPropertiesUnderGarbageCollection(t *testing.T) {
	for name, noHook := range map[string]bool{"with the hook": false, "without": true} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			stop := make(chan struct{})
			done := make(chan struct{})
			go func() {
				defer close(done)
				for {
					select {
					case <-stop:
						return
					default:
						runtime.GC()
					}
				}
			}()
			defer func() { close(stop); <-done }()
			const n = 200
			out := make([]jms.Outgoing, n)
			for i := range out {
				out[i] = jms.Outgoing{Body: []byte{byte(i)}, Properties: map[string]any{"account": numbers(0, n)[i], "count": i}}
			}
			b.sendAll(b.queue, out...)
			s := b.session(b.connect(b.factory(func(f *ibmmq.Factory) { f.NoTraceHook = noHook }), jms.Subscription{}))
			for i := range n {
				m := b.receive(s)
				account, _ := m.Property("account")
				count, _ := m.Property("count")
				if account != numbers(0, n)[i] || count != account || m.Body[0] != byte(i) {
					t.Fatalf("message %d: account %q, count %q, %v", i, account, count, m.Properties)
				}
				if err := s.Commit(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// A text property longer than mq-golang can read is unreadable, not absent (H9), and does not hide the others.
func TestUnreadableProperty(t *testing.T) {
	b := newBench(t)
	b.sendAll(b.queue, jms.Outgoing{Properties: map[string]any{"a": "1", "long": strings.Repeat("x", 2000), "z": true}})
	m := b.receive(b.session(b.connect(b.factory(), jms.Subscription{})))
	if err := m.PropertyErr("long"); !errors.Is(err, jms.ErrUnreadable) || !strings.Contains(err.Error(), "2469") {
		t.Errorf("the long property is %v, want ErrUnreadable with 2469", err)
	}
	if _, ok := m.Property("long"); ok || m.Properties["a"] != "1" || m.Properties["z"] != true {
		t.Errorf("properties are %v", m.Properties)
	}
}

// B14, user reports 5 and 17: a waiting Receive ends within a slice of Close, and within a slice of its context.
func TestReceiveEndsSoon(t *testing.T) {
	b := newBench(t)
	f := b.factory(func(f *ibmmq.Factory) { f.WaitSlice = 300 * time.Millisecond })
	c := b.connect(f, jms.Subscription{})
	s := b.session(c)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	began := time.Now()
	if _, err := s.Receive(ctx); !errors.Is(err, context.Canceled) || time.Since(began) > 2*time.Second {
		t.Errorf("Receive = %v after %v", err, time.Since(began))
	}
	done := make(chan error, 1)
	go func() {
		_, err := s.Receive(context.Background())
		done <- err
	}()
	b.soon("it waits", func() bool { return b.waiters == nil || b.waiters(b.queue) == 1 })
	began = time.Now()
	if err := c.Close(t.Context()); err != nil || time.Since(began) > 2*time.Second {
		t.Errorf("Close = %v after %v", err, time.Since(began))
	}
	b.is(<-done, jms.ErrConnectionLost)
}
