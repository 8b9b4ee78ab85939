package rabbitmq_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/rabbitmq"
)

// Every way to lose the consumer closes Done while no call waits, and says why.
func TestLossIsNoticed(t *testing.T) {
	b := newBench(t)
	privateNode(t)
	for name, c := range map[string]struct {
		lose func(queue string)
		want string
	}{
		"an operator closes the connections": {
			func(string) { node(t, "ctl", "-q", "close_all_connections", "for the test") }, "320",
		},
		"the queue is deleted": {
			func(queue string) {
				if _, err := b.ch.QueueDelete(queue, false, false, false); err != nil {
					t.Fatal(err)
				}
				b.queueAgain(queue)
			}, "basic.cancel",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if b.conn.IsClosed() {
				b.dial()
			}
			q := b.queue(single("classic"))
			b.numbered(q, 3)
			conn := b.connect(rabbitmq.Factory{}, jms.Subscription{Queue: q})
			sessions, _ := b.take(conn, 2)
			idle := b.session(conn)
			c.lose(q)
			b.isDone(conn, 5*time.Second)
			if err := conn.Err(); !errors.Is(err, jms.ErrConnectionLost) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), q) {
				t.Errorf("Err() = %v; want ErrConnectionLost with %q and the queue's name", err, c.want)
			}
			if err := sessions[0].Commit(t.Context()); !errors.Is(err, jms.ErrConnectionLost) {
				t.Errorf("Commit = %v, want ErrConnectionLost", err)
			}
			if _, err := idle.Receive(b.bounded(5 * time.Second)); !errors.Is(err, jms.ErrConnectionLost) {
				t.Errorf("Receive = %v, want ErrConnectionLost", err)
			}
			if err := conn.Close(t.Context()); err != nil {
				t.Errorf("Close after the loss = %v, want nil", err)
			}
		})
	}
}

func (b *bench) queueAgain(name string) {
	if _, err := b.ch.QueueDeclare(name, true, false, false, false, single("classic")); err != nil {
		b.Fatal(err)
	}
}

// A channel exception alone is the end of the connection: what it held comes again, and nothing later came first.
func TestChannelExceptionIsALoss(t *testing.T) {
	onKinds(t, func(t *testing.T, kind string) {
		privateNode(t)
		b := newBench(t)
		q := b.queue(single(kind))
		b.numbered(q, 200)
		node(t, "ctl", "-q", "eval", "application:set_env(rabbit, consumer_timeout, 1000).")
		defer node(t, "ctl", "-q", "eval", "application:set_env(rabbit, consumer_timeout, 1800000).")
		c := b.connect(rabbitmq.Factory{ConsumerTimeout: time.Second}, jms.Subscription{Queue: q, MaxInFlight: 100})
		b.take(c, 10)
		b.eventually("the broker finds the messages held too long", func() bool {
			b.tick(q)
			return c.Err() != nil
		})
		b.isDone(c, 5*time.Second)
		if err := c.Err(); !errors.Is(err, jms.ErrConnectionLost) || !strings.Contains(err.Error(), "406") || !strings.Contains(err.Error(), "Factory.ConsumerTimeout") {
			t.Errorf("Err() = %v; want ErrConnectionLost with the reply code and what to do", err)
		}
		again := b.connect(rabbitmq.Factory{}, jms.Subscription{Queue: q})
		if _, bodies := b.take(again, 200); !slices.Equal(bodies, numbers(1, 200)) {
			t.Errorf("then came %v, want 1 to 200 in order", bodies)
		}
	})
}

// tick makes the channel that consumes from the queue look at once for messages held too long, which it does every minute.
func (b *bench) tick(queue string) {
	b.Helper()
	node(b, "ctl", "-q", "eval", fmt.Sprintf(`[proplists:get_value(channel_pid, C) ! tick || C <- rabbit_amqqueue:consumers_all(<<"/">>),
		{resource, _, queue, <<%q>>} <- [proplists:get_value(queue_name, C)]].`, queue))
}

// Kill -9 of the broker is noticed at once, and what was confirmed is there in order after the restart.
func TestBrokerKilledAndRestarted(t *testing.T) {
	privateNode(t)
	b := newBench(t)
	queues := map[string]string{}
	for _, kind := range kinds {
		queues[kind] = b.queue(single(kind))
		b.numbered(queues[kind], 100)
	}
	// A quorum queue younger than about a second does not survive a kill -9 on RabbitMQ 3.10.
	time.Sleep(2 * time.Second)
	conns := map[string]jms.Connection{}
	for _, kind := range kinds {
		conns[kind] = b.connect(rabbitmq.Factory{}, jms.Subscription{Queue: queues[kind]})
		sessions, _ := b.take(conns[kind], 10)
		if err := sessions[0].Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	// The acknowledgements have no answer; a question that follows on the same connection has, and comes after them.
	b.eventually("the acknowledgements are with the broker", func() bool {
		out := node(t, "ctl", "-q", "list_queues", "name", "messages_unacknowledged")
		return strings.Contains(out, queues["classic"]+"\t99") && strings.Contains(out, queues["quorum"]+"\t99")
	})
	node(t, "kill")
	for _, kind := range kinds {
		t.Logf("%s: noticed after %v: %v", kind, b.isDone(conns[kind], 5*time.Second), conns[kind].Err())
	}
	f := rabbitmq.Factory{URL: b.url}
	if _, err := f.Connect(t.Context(), jms.Subscription{Queue: queues["classic"], Logger: discard}); !errors.Is(err, jms.ErrConnectionLost) {
		t.Errorf("Connect to a broker that is down = %v, want ErrConnectionLost", err)
	}
	node(t, "start")
	b.dial()
	for _, kind := range kinds {
		c := b.connect(rabbitmq.Factory{}, jms.Subscription{Queue: queues[kind]})
		if _, bodies := b.take(c, 99); !slices.Equal(bodies, numbers(2, 100)) {
			t.Errorf("%s: after the restart came %v, want 2 to 100 in order", kind, bodies)
		}
	}
}

// A frozen broker answers nothing and refuses nothing: it is noticed within 1.5 heartbeats, and Close returns with its context.
func TestFrozenBroker(t *testing.T) {
	privateNode(t)
	b := newBench(t)
	q := b.queue(single("classic"))
	b.numbered(q, 1)
	const heartbeat = 2 * time.Second
	idle := b.connect(rabbitmq.Factory{Heartbeat: heartbeat}, jms.Subscription{Queue: q})
	closing := b.connect(rabbitmq.Factory{Heartbeat: heartbeat}, jms.Subscription{Queue: q})
	b.receive(b.session(idle))
	node(t, "pause")
	defer node(t, "resume")

	began := time.Now()
	if err := closing.Close(b.bounded(300 * time.Millisecond)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Close on a frozen broker = %v, want the context's error", err)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("Close took %v with a context of 300 ms", took)
	}
	f := rabbitmq.Factory{URL: b.url}
	began = time.Now()
	if _, err := f.Connect(b.bounded(300*time.Millisecond), jms.Subscription{Queue: q, Logger: discard}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Connect to a frozen broker = %v, want the context's error", err)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("Connect took %v with a context of 300 ms", took)
	}
	t.Logf("noticed after %v", b.isDone(idle, 3*heartbeat))
	if err := idle.Err(); !errors.Is(err, jms.ErrConnectionLost) {
		t.Errorf("Err() = %v, want ErrConnectionLost", err)
	}
}

// Two connections on a queue with a single active consumer: the second waits, gets the unsettled messages first and in order when the
// first is gone, and keeps their order (R2.02, R2.06, T6).
func TestStandbyTakesOver(t *testing.T) {
	onKinds(t, func(t *testing.T, kind string) {
		b := newBench(t)
		q := b.queue(single(kind))
		b.numbered(q, 12)
		active := b.connect(rabbitmq.Factory{}, jms.Subscription{Queue: q, SingleActiveConsumer: true, MaxInFlight: 5})
		sessions, _ := b.take(active, 5)
		if err := sessions[1].Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		standby := b.connect(rabbitmq.Factory{}, jms.Subscription{Queue: q, SingleActiveConsumer: true})
		s := b.session(standby)
		if m, err := s.Receive(b.bounded(300 * time.Millisecond)); m != nil {
			t.Fatalf("the standby received %s (%v) beside an active consumer", m.Body, err)
		}
		if err := active.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := append([]string{"1"}, numbers(3, 12)...)
		bodies := []string{string(b.receive(s).Body)}
		_, rest := b.take(standby, 10)
		if bodies = append(bodies, rest...); !slices.Equal(bodies, want) {
			t.Errorf("the standby received %v, want %v", bodies, want)
		}
	})
}
