package rabbitmq_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/rabbitmq"
	"github.com/keyseq/keyseq/provider/rabbitmq/internal/brokertest"
)

func numbers(from, to int) []string {
	var s []string
	for i := from; i <= to; i++ {
		s = append(s, fmt.Sprint(i))
	}
	return s
}

// R1.03: three in flight, only the second is settled, then the connection dies: exactly the first and the third come back, first
// and in order.
func TestEachMessageIsSettledAlone(t *testing.T) {
	brokertest.OnKinds(t, func(t *testing.T, kind string) {
		b := brokertest.New(t)
		q := b.Queue(brokertest.Single(kind))
		b.Numbered(q, 6)
		c := b.Connect(rabbitmq.Factory{}, jms.Subscription{Queue: q, SingleActiveConsumer: true, MaxInFlight: 5})
		sessions, bodies := b.Take(c, 3)
		if !slices.Equal(bodies, numbers(1, 3)) {
			t.Fatalf("received %v, want 1 2 3", bodies)
		}
		if err := sessions[1].Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		again := b.Connect(rabbitmq.Factory{}, jms.Subscription{Queue: q, SingleActiveConsumer: true})
		if _, bodies = b.Take(again, 5); !slices.Equal(bodies, []string{"1", "3", "4", "5", "6"}) {
			t.Errorf("after the close came %v, want 1 3 4 5 6", bodies)
		}
	})
}

// Messages that only waited in the client count as delivered, and say so.
func TestDeliveryCountAndRedelivered(t *testing.T) {
	brokertest.OnKinds(t, func(t *testing.T, kind string) {
		b := brokertest.New(t)
		q := b.Queue(brokertest.Single(kind))
		b.Numbered(q, 1)
		for round := 1; round <= 3; round++ {
			c := b.Connect(rabbitmq.Factory{}, jms.Subscription{Queue: q, SingleActiveConsumer: true})
			m := b.Receive(b.Session(c))
			want := 0
			if c.Capabilities().DeliveryCount {
				want = round
			}
			if m.DeliveryCount != want || m.Redelivered != (round > 1) {
				t.Errorf("delivery %d: DeliveryCount %d, Redelivered %t; want %d, %t", round, m.DeliveryCount, m.Redelivered, want, round > 1)
			}
			if err := c.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if c := b.Connect(rabbitmq.Factory{}, jms.Subscription{Queue: q}); c.Capabilities().DeliveryCount != (kind == "quorum") {
			t.Errorf("DeliveryCount declared as %t on a %s queue", c.Capabilities().DeliveryCount, kind)
		}
	})
}

func TestReceiveAndItsContext(t *testing.T) {
	b := brokertest.New(t)
	q := b.Queue(brokertest.Single("classic"))
	c := b.Connect(rabbitmq.Factory{}, jms.Subscription{Queue: q})
	s := b.Session(c)

	began := time.Now()
	if m, err := s.Receive(b.Bounded(200 * time.Millisecond)); m != nil || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Receive from an empty queue = %v, %v; want nothing and the context's error", m, err)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("Receive returned %v after the end of its context", took)
	}

	// Nothing may be lost to a context that has ended: either the message or the error, and the message comes with the next call.
	b.Numbered(q, 20)
	var got []string
	for len(got) < 20 {
		ended, cancel := context.WithCancel(t.Context())
		if len(got)%2 == 0 {
			cancel()
		}
		m, err := s.Receive(ended)
		cancel()
		if errors.Is(err, context.Canceled) {
			got = append(got, string(b.Receive(s).Body))
		} else if err != nil {
			t.Fatal(err)
		} else {
			got = append(got, string(m.Body))
		}
		if err := s.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(got, numbers(1, 20)) {
		t.Errorf("received %v, want 1 to 20 in order", got)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := b.Count(q); n != 0 {
		t.Errorf("%d messages are left, want 0: each was committed", n)
	}
}

// A message is held long after the context of its Receive has ended.
func TestNoContextIsKept(t *testing.T) {
	b := brokertest.New(t)
	q := b.Queue(brokertest.Single("classic"))
	b.Numbered(q, 2)
	c := b.Connect(rabbitmq.Factory{}, jms.Subscription{Queue: q})
	s := b.Session(c)
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := s.Receive(ctx); err != nil {
		t.Fatal(err)
	}
	cancel()
	if m := b.Receive(b.Session(c)); string(m.Body) != "2" {
		t.Errorf("received %s, want 2: the consumer ended with the first context", m.Body)
	}
	if err := s.Commit(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestReceiveEndsWithTheConnection(t *testing.T) {
	b := brokertest.New(t)
	q := b.Queue(brokertest.Single("classic"))
	c := b.Connect(rabbitmq.Factory{}, jms.Subscription{Queue: q})
	s, other := b.Session(c), b.Session(c)
	failed := make(chan error, 1)
	go func() {
		_, err := s.Receive(context.Background())
		failed <- err
	}()
	b.Eventually("a consumer is registered", func() bool { return b.Consumers(q) == 1 })
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-failed:
		if !errors.Is(err, jms.ErrConnectionLost) {
			t.Errorf("the waiting Receive failed with %v, want ErrConnectionLost", err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("the waiting Receive did not end with its connection")
	}
	for name, err := range map[string]error{
		"Commit": other.Commit(t.Context()), "Rollback": s.Rollback(t.Context()), "OpenSession": func() error { _, err := c.OpenSession(t.Context()); return err }(),
	} {
		if !errors.Is(err, jms.ErrConnectionLost) {
			t.Errorf("%s after Close = %v, want ErrConnectionLost", name, err)
		}
	}
	for range 2 {
		if err := errors.Join(s.Close(t.Context()), c.Close(t.Context())); err != nil {
			t.Errorf("closing again = %v, want nil", err)
		}
	}
}

// A message is never given back alone: the connection ends and everything comes again in order.
func TestGivingBackOneGivesBackAll(t *testing.T) {
	for name, giveBack := range map[string]func(context.Context, jms.Session) error{
		"Rollback": func(ctx context.Context, s jms.Session) error {
			if err := s.Rollback(ctx); !errors.Is(err, jms.ErrConnectionLost) {
				return fmt.Errorf("Rollback of a held message = %v, want ErrConnectionLost", err)
			}
			return nil
		},
		"Close": func(ctx context.Context, s jms.Session) error { return s.Close(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			brokertest.OnKinds(t, func(t *testing.T, kind string) {
				b := brokertest.New(t)
				q := b.Queue(brokertest.Single(kind))
				b.Numbered(q, 5)
				c := b.Connect(rabbitmq.Factory{}, jms.Subscription{Queue: q, MaxInFlight: 4})
				if err := b.Session(c).Rollback(t.Context()); err != nil {
					t.Errorf("Rollback without a message = %v, want nil", err)
				}
				sessions, _ := b.Take(c, 3)
				if err := giveBack(t.Context(), sessions[1]); err != nil {
					t.Fatal(err)
				}
				b.IsDone(c, time.Second)
				if err := sessions[0].Commit(t.Context()); !errors.Is(err, jms.ErrConnectionLost) {
					t.Errorf("Commit of another session = %v, want ErrConnectionLost", err)
				}
				again := b.Connect(rabbitmq.Factory{}, jms.Subscription{Queue: q})
				if _, bodies := b.Take(again, 5); !slices.Equal(bodies, numbers(1, 5)) {
					t.Errorf("then came %v, want 1 to 5 in order", bodies)
				}
			})
		})
	}
}

// A late settlement can not touch a message of a later connection, though the delivery tags are the same numbers.
func TestStaleCommitTouchesNothing(t *testing.T) {
	brokertest.OnKinds(t, func(t *testing.T, kind string) {
		b := brokertest.New(t)
		q := b.Queue(brokertest.Single(kind))
		b.Numbered(q, 3)
		old := b.Connect(rabbitmq.Factory{}, jms.Subscription{Queue: q})
		stale, _ := b.Take(old, 3)
		if err := old.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		c := b.Connect(rabbitmq.Factory{}, jms.Subscription{Queue: q})
		b.Take(c, 3)
		for _, s := range stale {
			if err := s.Commit(t.Context()); !errors.Is(err, jms.ErrConnectionLost) {
				t.Errorf("stale Commit = %v, want ErrConnectionLost", err)
			}
		}
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		again := b.Connect(rabbitmq.Factory{}, jms.Subscription{Queue: q})
		if _, bodies := b.Take(again, 3); !slices.Equal(bodies, numbers(1, 3)) {
			t.Errorf("%v are left, want 1 2 3", bodies)
		}
	})
}

// A session that was committed holds nothing: committing again must not acknowledge twice, which would cost the channel.
func TestCommitTwice(t *testing.T) {
	b := brokertest.New(t)
	q := b.Queue(brokertest.Single("classic"))
	b.Numbered(q, 2)
	c := b.Connect(rabbitmq.Factory{}, jms.Subscription{Queue: q})
	s := b.Session(c)
	b.Receive(s)
	for range 2 {
		if err := s.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if m := b.Receive(s); string(m.Body) != "2" {
		t.Errorf("received %s, want 2", m.Body)
	}
	if _, err := s.Receive(t.Context()); err == nil || jms.EndsSession(err) || !strings.Contains(err.Error(), "holds a message") {
		t.Errorf("Receive with a message held = %v, want a refusal that ends nothing", err)
	}
	if err := s.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// What was committed just before an orderly Close does not come again, however much it was. Every second message stays unsettled, so that no
// acknowledgement can speak for its neighbours and the broker gets each alone.
func TestCloseLosesNoAcknowledgement(t *testing.T) {
	brokertest.OnKinds(t, func(t *testing.T, kind string) {
		b := brokertest.New(t)
		q := b.Queue(brokertest.Single(kind))
		const total = 1000
		b.Numbered(q, total)
		c := b.Connect(rabbitmq.Factory{}, jms.Subscription{Queue: q})
		sessions, _ := b.Take(c, total)
		var unsettled []string
		var commits sync.WaitGroup
		for i, s := range sessions {
			if i%2 == 1 {
				unsettled = append(unsettled, strconv.Itoa(i+1))
				continue
			}
			commits.Go(func() {
				if err := s.Commit(context.Background()); err != nil {
					t.Errorf("Commit = %v", err)
				}
			})
		}
		commits.Wait()
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		again := b.Connect(rabbitmq.Factory{}, jms.Subscription{Queue: q})
		if _, bodies := b.Take(again, len(unsettled)); !slices.Equal(bodies, unsettled) {
			t.Errorf("then came %v, want every second one: what was committed must not come again", bodies)
		}
	})
}

// Close may come during Commits: each of them either settles its message for good, or fails and the message comes again. The broker
// ignores acknowledgements behind channel.close, so one that is written too late must not be called a success.
func TestCommitsDuringClose(t *testing.T) {
	brokertest.OnKinds(t, func(t *testing.T, kind string) {
		b := brokertest.New(t)
		// A send makes a Commit last until its confirmation, so that many acknowledgements fall into the close.
		q, out := b.Queue(brokertest.Single(kind)), b.Queue(amqp.Table{amqp.QueueTypeArg: kind})
		const total = 400
		for round := range 5 {
			b.Numbered(q, total)
			c := b.Connect(rabbitmq.Factory{}, jms.Subscription{Queue: q})
			if err := b.Session(c).Commit(t.Context(), jms.Outgoing{Queue: out}); err != nil { // opens the connection for sending
				t.Fatal(err)
			}
			sessions, bodies := b.Take(c, total)
			var mu sync.Mutex
			left := map[string]bool{}
			for _, body := range bodies {
				left[body] = true
			}
			var commits sync.WaitGroup
			half := make(chan struct{})
			for i, s := range sessions {
				commits.Go(func() {
					if i == total/(round+2) {
						close(half)
					}
					if err := s.Commit(context.Background(), jms.Outgoing{Queue: out}); err == nil {
						mu.Lock()
						delete(left, bodies[i])
						mu.Unlock()
					} else if !jms.EndsSession(err) {
						t.Errorf("Commit during Close = %v, want nil or an error that ends the session", err)
					}
				})
			}
			<-half
			if err := c.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			commits.Wait()
			again := b.Connect(rabbitmq.Factory{}, jms.Subscription{Queue: q})
			for {
				s := b.Session(again)
				quiet := 300 * time.Millisecond
				if len(left) > 0 { // they must come, and a busy broker takes its time
					quiet = 5 * time.Second
				}
				m, err := s.Receive(b.Bounded(quiet))
				if errors.Is(err, context.DeadlineExceeded) {
					break
				} else if err != nil {
					t.Fatal(err)
				}
				if body := string(m.Body); !left[body] {
					t.Errorf("round %d: message %s came again, though its Commit succeeded", round, body)
				}
				delete(left, string(m.Body))
				if err := s.Commit(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if len(left) > 0 {
				t.Errorf("round %d: %d messages are lost: their Commit failed, and they did not come again", round, len(left))
			}
			if err := again.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}
