package rabbitmq_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/rabbitmq"
	"github.com/keyseq/keyseq/provider/rabbitmq/internal/brokertest"
)

// What is sent with a commit is there in order when Commit returns, and the message is gone.
func TestCommitSendsThenAcknowledges(t *testing.T) {
	brokertest.OnKinds(t, func(t *testing.T, kind string) {
		b := brokertest.New(t)
		q, target := b.Queue(brokertest.Single(kind)), b.Queue(brokertest.Single(kind))
		b.Numbered(q, 1)
		c := b.Connect(rabbitmq.Factory{}, jms.Subscription{Queue: q})
		s := b.Session(c)
		b.Receive(s)
		var out []jms.Outgoing
		for _, n := range numbers(1, 50) {
			out = append(out, jms.Outgoing{Queue: target, Body: []byte(n)})
		}
		if err := s.Commit(t.Context(), out...); err != nil {
			t.Fatal(err)
		}
		if err := s.Commit(t.Context(), jms.Outgoing{Queue: target, Body: []byte("51")}); err != nil {
			t.Fatalf("Commit without a received message = %v, want that it sends", err)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if m, _ := b.Session(b.Connect(rabbitmq.Factory{}, jms.Subscription{Queue: q})).Receive(b.Bounded(300 * time.Millisecond)); m != nil {
			t.Errorf("message %s came again, want that it was settled", m.Body)
		}
		r := b.Connect(rabbitmq.Factory{}, jms.Subscription{Queue: target})
		if _, bodies := b.Take(r, 51); strings.Join(bodies, " ") != strings.Join(numbers(1, 51), " ") {
			t.Errorf("sent %v, want 1 to 51 in order", bodies)
		}
	})
}

// A missing target is a failure though the broker would confirm the message: nothing is sent, the message is held, the same commit
// works once the queue is there (H8).
func TestSendToAMissingQueue(t *testing.T) {
	b := brokertest.New(t)
	q, target := b.Queue(brokertest.Single("classic")), b.Queue(brokertest.Single("quorum"))
	b.Numbered(q, 1)
	c := b.Connect(rabbitmq.Factory{}, jms.Subscription{Queue: q})
	s := b.Session(c)
	b.Receive(s)
	missing := target + "-late"
	out := []jms.Outgoing{{Queue: target, Body: []byte("a")}, {Queue: missing, Body: []byte("b")}}
	err := s.Commit(t.Context(), out...)
	if !errors.Is(err, jms.ErrConfig) || jms.EndsSession(err) || !strings.Contains(err.Error(), missing) || !strings.Contains(err.Error(), "404") {
		t.Fatalf("Commit = %v; want ErrConfig that names the queue and the reply code", err)
	}
	if n := b.Count(target); n != 0 {
		t.Errorf("%d messages were sent to the other queue, want 0", n)
	}
	if _, err := b.Ch.QueueDeclare(missing, true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(t.Context(), out...); err != nil {
		t.Fatalf("the same commit with the queue there = %v", err)
	}
	if n := b.Count(missing); n != 1 {
		t.Errorf("%d messages in the late queue, want 1", n)
	}

	// The queue goes away after it was seen: now only the broker's return tells.
	if _, err := b.Ch.QueueDelete(missing, false, false, false); err != nil {
		t.Fatal(err)
	}
	b.Numbered(q, 1)
	b.Receive(s)
	if err = s.Commit(t.Context(), out[1]); !errors.Is(err, jms.ErrConfig) || !strings.Contains(err.Error(), "312") {
		t.Errorf("Commit = %v; want ErrConfig with the code of the return", err)
	}
	// Of two messages one is stored: that is no longer "nothing was done".
	if _, err := b.Ch.QueueDeclare(missing, true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(t.Context(), out[1]); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Ch.QueueDelete(missing, false, false, false); err != nil {
		t.Fatal(err)
	}
	b.Numbered(q, 1)
	b.Receive(s)
	if err = s.Commit(t.Context(), out...); !errors.Is(err, jms.ErrCommitUnknown) {
		t.Errorf("Commit of which one half is stored = %v; want ErrCommitUnknown", err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := b.Count(q); n != 1 {
		t.Errorf("%d messages in the queue, want 1: the last commit failed", n)
	}
}

func TestSendToAFullQueue(t *testing.T) {
	brokertest.OnKinds(t, func(t *testing.T, kind string) {
		b := brokertest.New(t)
		full := brokertest.Single(kind)
		full["x-max-length"], full["x-overflow"] = int32(3), amqp.QueueOverflowRejectPublish
		q, target := b.Queue(brokertest.Single(kind)), b.Queue(full)
		b.Numbered(q, 1)
		c := b.Connect(rabbitmq.Factory{}, jms.Subscription{Queue: q})
		s := b.Session(c)
		b.Receive(s)
		var err error
		for range 6 { // a quorum queue takes one more than its length
			if err = s.Commit(t.Context(), jms.Outgoing{Queue: target, Body: []byte("x")}); err != nil {
				break
			}
		}
		if !errors.Is(err, jms.ErrBusy) || jms.EndsSession(err) {
			t.Fatalf("Commit to a full queue = %v, want ErrBusy", err)
		}
		if _, err := b.Ch.QueuePurge(target, false); err != nil {
			t.Fatal(err)
		}
		b.Eventually("the queue takes messages again", func() bool {
			return s.Commit(t.Context(), jms.Outgoing{Queue: target, Body: []byte("y")}) == nil
		})
	})
}

// While the broker has an alarm, commits with sends end with their context or at once, and nothing is acknowledged; commits
// without sends go on, because they use another connection.
func TestMemoryAlarm(t *testing.T) {
	b := brokertest.NewVictim(t)
	q, target := b.Queue(brokertest.Single("classic")), b.Queue(brokertest.Single("classic"))
	b.Numbered(q, 4)
	c := b.Connect(rabbitmq.Factory{}, jms.Subscription{Queue: q})
	sessions, _ := b.Take(c, 4)
	if err := sessions[0].Commit(t.Context(), jms.Outgoing{Queue: target, Body: []byte("before")}); err != nil {
		t.Fatal(err)
	}
	b.Node("ctl", "-q", "set_vm_memory_high_watermark", "absolute", "1MB")
	off := func() { b.Node("ctl", "-q", "set_vm_memory_high_watermark", "absolute", "2GB") }
	defer off()

	began := time.Now()
	err := sessions[1].Commit(b.Bounded(500*time.Millisecond), jms.Outgoing{Queue: target, Body: []byte("during")})
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("Commit took %v with a context of 500 ms", took)
	}
	// The first to send is the one that finds out: its message may be stored when the alarm ends.
	if !errors.Is(err, jms.ErrCommitUnknown) && !errors.Is(err, jms.ErrBusy) {
		t.Errorf("Commit during the alarm = %v, want ErrCommitUnknown or ErrBusy", err)
	}
	if err := sessions[2].Commit(b.Bounded(5*time.Second), jms.Outgoing{Queue: target, Body: []byte("during")}); !errors.Is(err, jms.ErrBusy) || !strings.Contains(err.Error(), "memory") {
		t.Errorf("the next Commit during the alarm = %v, want ErrBusy and the reason", err)
	}
	if err := sessions[3].Commit(b.Bounded(5 * time.Second)); err != nil {
		t.Errorf("Commit without sends during the alarm = %v, want nil", err)
	}
	off()
	b.Eventually("the commit works after the alarm", func() bool {
		err := sessions[2].Commit(t.Context(), jms.Outgoing{Queue: target, Body: []byte("after")})
		if err != nil && !errors.Is(err, jms.ErrBusy) {
			t.Fatal(err)
		}
		return err == nil
	})
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := b.Count(q); n != 1 {
		t.Errorf("%d messages are left, want 1: that of the commit in doubt", n)
	}
}

// The publishing connection may go: commits in the middle are in doubt, later ones open another, and the consumer is not touched.
func TestPublishingConnectionLost(t *testing.T) {
	b := brokertest.NewVictim(t)
	q, target := b.Queue(brokertest.Single("classic")), b.Queue(brokertest.Single("classic"))
	b.Numbered(q, 3)
	c := b.Connect(rabbitmq.Factory{Name: "split"}, jms.Subscription{Queue: q})
	s := b.Session(c)
	for i := range 3 {
		b.Receive(s)
		if err := s.Commit(t.Context(), jms.Outgoing{Queue: target, Body: []byte("x")}); err != nil {
			t.Fatalf("commit %d: %v", i, err)
		}
		b.Node("ctl", "-q", "eval", `[rabbit_networking:close_connection(P, "test") || P <- rabbit_networking:connections(),
			[{client_properties, L}] <- [rabbit_networking:connection_info(P, [client_properties])],
			{<<"connection_name">>, _, <<"split publisher">>} <- L].`)
		if err := c.Err(); err != nil {
			t.Fatalf("the consuming connection is lost too: %v", err)
		}
	}
	if n := b.Count(target); n != 3 {
		t.Errorf("%d messages were sent, want 3", n)
	}
}

func TestMessageTooLarge(t *testing.T) {
	b := brokertest.NewVictim(t)
	q, target := b.Queue(brokertest.Single("classic")), b.Queue(brokertest.Single("classic"))
	b.Numbered(q, 1)
	b.Node("ctl", "-q", "eval", "application:set_env(rabbit, max_message_size, 100000), persistent_term:put(max_message_size, 100000).")
	defer b.Node("ctl", "-q", "eval", "application:set_env(rabbit, max_message_size, 134217728), persistent_term:put(max_message_size, 134217728).")
	c := b.Connect(rabbitmq.Factory{}, jms.Subscription{Queue: q})
	s := b.Session(c)
	b.Receive(s)
	err := s.Commit(t.Context(), jms.Outgoing{Queue: target, Body: make([]byte, 100001)})
	if !errors.Is(err, jms.ErrConfig) || !strings.Contains(err.Error(), "max_message_size") {
		t.Errorf("Commit of a message above the limit = %v, want ErrConfig that names max_message_size", err)
	}
	if err := s.Commit(t.Context(), jms.Outgoing{Queue: target, Body: make([]byte, 100000)}); err != nil {
		t.Errorf("Commit of a message at the limit = %v, want nil", err)
	}
}

func TestCheckQueue(t *testing.T) {
	b := brokertest.New(t)
	q := b.Queue(brokertest.Single("classic"))
	checker, ok := b.Connect(rabbitmq.Factory{}, jms.Subscription{Queue: q}).(jms.QueueChecker)
	if !ok {
		t.Fatal("the connection is no QueueChecker")
	}
	if err := checker.CheckQueue(t.Context(), q); err != nil {
		t.Errorf("CheckQueue of a queue that exists = %v", err)
	}
	if err := checker.CheckQueue(t.Context(), q+"-typo"); !errors.Is(err, jms.ErrConfig) || !strings.Contains(err.Error(), "404") {
		t.Errorf("CheckQueue of a missing queue = %v, want ErrConfig with the reply code", err)
	}
	if err := checker.CheckQueue(t.Context(), ""); !errors.Is(err, jms.ErrConfig) {
		t.Errorf("CheckQueue without a name = %v, want ErrConfig", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := checker.CheckQueue(ended, q+"-other"); !errors.Is(err, context.Canceled) {
		t.Errorf("CheckQueue with an ended context = %v, want its error", err)
	}
}
