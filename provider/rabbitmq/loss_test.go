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
	"github.com/keyseq/keyseq/provider/rabbitmq/internal/brokertest"
)

// Every way to lose the consumer closes Done while no call waits, and says why.
func TestLossIsNoticed(t *testing.T) {
	b := brokertest.NewVictim(t)
	for name, c := range map[string]struct {
		lose func(queue string)
		want string
	}{
		"an operator closes the connections": {
			func(string) { b.Node("ctl", "-q", "close_all_connections", "for the test") }, "320",
		},
		"the queue is deleted": {
			func(queue string) {
				if _, err := b.Ch.QueueDelete(queue, false, false, false); err != nil {
					t.Fatal(err)
				}
				queueAgain(b, queue)
			}, "basic.cancel",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if b.Conn.IsClosed() {
				b.Dial()
			}
			q := b.Queue(brokertest.Single("classic"))
			b.Numbered(q, 3)
			conn := b.Connect(rabbitmq.Factory{}, jms.Subscription{Queue: q})
			sessions, _ := b.Take(conn, 2)
			idle := b.Session(conn)
			c.lose(q)
			b.IsDone(conn, 5*time.Second)
			if err := conn.Err(); !errors.Is(err, jms.ErrConnectionLost) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), q) {
				t.Errorf("Err() = %v; want ErrConnectionLost with %q and the queue's name", err, c.want)
			}
			if err := sessions[0].Commit(t.Context()); !errors.Is(err, jms.ErrConnectionLost) {
				t.Errorf("Commit = %v, want ErrConnectionLost", err)
			}
			if _, err := idle.Receive(b.Bounded(5 * time.Second)); !errors.Is(err, jms.ErrConnectionLost) {
				t.Errorf("Receive = %v, want ErrConnectionLost", err)
			}
			if err := conn.Close(t.Context()); err != nil {
				t.Errorf("Close after the loss = %v, want nil", err)
			}
		})
	}
}

func queueAgain(b *brokertest.Bench, name string) {
	if _, err := b.Ch.QueueDeclare(name, true, false, false, false, brokertest.Single("classic")); err != nil {
		b.Fatal(err)
	}
}

// A channel exception alone is the end of the connection: what it held comes again, and nothing later came first.
func TestChannelExceptionIsALoss(t *testing.T) {
	brokertest.OnKinds(t, func(t *testing.T, kind string) {
		b := brokertest.NewVictim(t)
		q := b.Queue(brokertest.Single(kind))
		b.Numbered(q, 200)
		b.Node("ctl", "-q", "eval", "application:set_env(rabbit, consumer_timeout, 1000).")
		defer b.Node("ctl", "-q", "eval", "application:set_env(rabbit, consumer_timeout, 1800000).")
		c := b.Connect(rabbitmq.Factory{ConsumerTimeout: time.Second}, jms.Subscription{Queue: q, MaxInFlight: 100})
		b.Take(c, 10)
		b.Eventually("the broker finds the messages held too long", func() bool {
			tick(b, q)
			return c.Err() != nil
		})
		b.IsDone(c, 5*time.Second)
		if err := c.Err(); !errors.Is(err, jms.ErrConnectionLost) || !strings.Contains(err.Error(), "406") || !strings.Contains(err.Error(), "Factory.ConsumerTimeout") {
			t.Errorf("Err() = %v; want ErrConnectionLost with the reply code and what to do", err)
		}
		again := b.Connect(rabbitmq.Factory{}, jms.Subscription{Queue: q})
		if _, bodies := b.Take(again, 200); !slices.Equal(bodies, numbers(1, 200)) {
			t.Errorf("then came %v, want 1 to 200 in order", bodies)
		}
	})
}

// tick makes the channel that consumes from the queue look at once for messages held too long, which it does every minute.
func tick(b *brokertest.Bench, queue string) {
	b.Helper()
	b.Node("ctl", "-q", "eval", fmt.Sprintf(`[proplists:get_value(channel_pid, C) ! tick || C <- rabbit_amqqueue:consumers_all(<<"/">>),
		{resource, _, queue, <<%q>>} <- [proplists:get_value(queue_name, C)]].`, queue))
}

// Kill -9 of the broker is noticed at once, and what was confirmed is there in order after the restart.
func TestBrokerKilledAndRestarted(t *testing.T) {
	b := brokertest.NewVictim(t)
	queues := map[string]string{}
	for _, kind := range brokertest.Kinds {
		queues[kind] = b.Queue(brokertest.Single(kind))
		b.Numbered(queues[kind], 100)
	}
	// A quorum queue younger than about a second does not survive a kill -9 on RabbitMQ 3.10.
	time.Sleep(2 * time.Second)
	conns := map[string]jms.Connection{}
	for _, kind := range brokertest.Kinds {
		conns[kind] = b.Connect(rabbitmq.Factory{}, jms.Subscription{Queue: queues[kind]})
		sessions, _ := b.Take(conns[kind], 10)
		if err := sessions[0].Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	// The acknowledgements have no answer; a question that follows on the same connection has, and comes after them.
	b.Eventually("the acknowledgements are with the broker", func() bool {
		out := b.Node("ctl", "-q", "list_queues", "name", "messages_unacknowledged")
		return strings.Contains(out, queues["classic"]+"\t99") && strings.Contains(out, queues["quorum"]+"\t99")
	})
	b.Node("kill")
	for _, kind := range brokertest.Kinds {
		t.Logf("%s: noticed after %v: %v", kind, b.IsDone(conns[kind], 5*time.Second), conns[kind].Err())
	}
	f := rabbitmq.Factory{URL: b.URL}
	if _, err := f.Connect(t.Context(), jms.Subscription{Queue: queues["classic"], Logger: brokertest.Discard}); !errors.Is(err, jms.ErrConnectionLost) {
		t.Errorf("Connect to a broker that is down = %v, want ErrConnectionLost", err)
	}
	b.Node("start")
	b.Dial()
	for _, kind := range brokertest.Kinds {
		c := b.Connect(rabbitmq.Factory{}, jms.Subscription{Queue: queues[kind]})
		if _, bodies := b.Take(c, 99); !slices.Equal(bodies, numbers(2, 100)) {
			t.Errorf("%s: after the restart came %v, want 2 to 100 in order", kind, bodies)
		}
	}
}

// A frozen broker answers nothing and refuses nothing: it is noticed within 1.5 heartbeats, and Close returns with its context.
func TestFrozenBroker(t *testing.T) {
	b := brokertest.NewVictim(t)
	q := b.Queue(brokertest.Single("classic"))
	b.Numbered(q, 1)
	const heartbeat = 2 * time.Second
	idle := b.Connect(rabbitmq.Factory{Heartbeat: heartbeat}, jms.Subscription{Queue: q})
	closing := b.Connect(rabbitmq.Factory{Heartbeat: heartbeat}, jms.Subscription{Queue: q})
	b.Receive(b.Session(idle))
	b.Node("pause")
	defer b.Node("resume")

	began := time.Now()
	if err := closing.Close(b.Bounded(300 * time.Millisecond)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Close on a frozen broker = %v, want the context's error", err)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("Close took %v with a context of 300 ms", took)
	}
	f := rabbitmq.Factory{URL: b.URL}
	began = time.Now()
	if _, err := f.Connect(b.Bounded(300*time.Millisecond), jms.Subscription{Queue: q, Logger: brokertest.Discard}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Connect to a frozen broker = %v, want the context's error", err)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("Connect took %v with a context of 300 ms", took)
	}
	t.Logf("noticed after %v", b.IsDone(idle, 3*heartbeat))
	if err := idle.Err(); !errors.Is(err, jms.ErrConnectionLost) {
		t.Errorf("Err() = %v, want ErrConnectionLost", err)
	}
}

// Two connections on a queue with a single active consumer: the second waits, gets the unsettled messages first and in order when the
// first is gone, and keeps their order (R2.02, R2.06, T6).
func TestStandbyTakesOver(t *testing.T) {
	brokertest.OnKinds(t, func(t *testing.T, kind string) {
		b := brokertest.New(t)
		q := b.Queue(brokertest.Single(kind))
		b.Numbered(q, 12)
		active := b.Connect(rabbitmq.Factory{}, jms.Subscription{Queue: q, SingleActiveConsumer: true, MaxInFlight: 5})
		sessions, _ := b.Take(active, 5)
		if err := sessions[1].Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		standby := b.Connect(rabbitmq.Factory{}, jms.Subscription{Queue: q, SingleActiveConsumer: true})
		s := b.Session(standby)
		if m, err := s.Receive(b.Bounded(300 * time.Millisecond)); m != nil {
			t.Fatalf("the standby received %s (%v) beside an active consumer", m.Body, err)
		}
		if err := active.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := append([]string{"1"}, numbers(3, 12)...)
		bodies := []string{string(b.Receive(s).Body)}
		_, rest := b.Take(standby, 10)
		if bodies = append(bodies, rest...); !slices.Equal(bodies, want) {
			t.Errorf("the standby received %v, want %v", bodies, want)
		}
	})
}
