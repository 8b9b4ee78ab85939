package rabbitmq_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/rabbitmq"
	"github.com/keyseq/keyseq/provider/rabbitmq/internal/brokertest"
)

var exclusive = rabbitmq.Factory{Exclusive: true}

// elect lets a connection wait for the role, and gives AwaitActive's result.
func elect(ctx context.Context, c jms.Connection) <-chan error {
	done := make(chan error, 1)
	go func() { done <- c.(jms.Elector).AwaitActive(ctx) }()
	return done
}

// Exclusive is refused where it would prove nothing, and the error says what to do instead.
func TestExclusiveRefused(t *testing.T) {
	b := brokertest.New(t)
	plain, quorum, single := b.Queue(nil), b.Queue(amqp.Table{amqp.QueueTypeArg: "quorum"}), b.Queue(brokertest.Single("classic"))
	for name, c := range map[string]struct {
		queue string
		f     rabbitmq.Factory
		sac   bool
		want  string
	}{
		"not asked for":             {plain, exclusive, false, "without Config.SingleActiveConsumer"},
		"a quorum queue":            {quorum, exclusive, true, "is a quorum queue"},
		"a single active consumer":  {single, exclusive, true, "leave Exclusive out"},
		"a quorum queue asked for":  {plain, rabbitmq.Factory{Exclusive: true, Arguments: map[string]any{"x-queue-type": "quorum"}}, true, "only classic queues"},
		"both ways asked for":       {plain, rabbitmq.Factory{Exclusive: true, Arguments: map[string]any{"x-single-active-consumer": true}}, true, "use one of the two"},
		"a queue that is not there": {plain + "-typo", exclusive, true, "create the queue"},
	} {
		_, _, err := try(b, c.f, jms.Subscription{Queue: c.queue, SingleActiveConsumer: c.sac})
		if !errors.Is(err, jms.ErrConfig) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: Connect = %v, want ErrConfig that says %q", name, err, c.want)
		}
	}
	caps, log, err := try(b, exclusive, jms.Subscription{Queue: plain, SingleActiveConsumer: true})
	if err != nil || !caps.ReturnsAtOnce || caps.ReturnDelay != 0 || log != "" {
		t.Errorf("Connect = %v, %+v, log %q; want no error, ReturnsAtOnce, silence", err, caps, log)
	}
}

// One connection is active, the next waits and gets nothing; when the first has closed it takes over, first what was unsettled, in
// order. A third that waits ends with its context, and closes while it waits.
func TestExclusiveElection(t *testing.T) {
	b := brokertest.New(t)
	q := b.Queue(nil)
	b.Numbered(q, 12)
	sub := jms.Subscription{Queue: q, SingleActiveConsumer: true, MaxInFlight: 5}
	active := b.Connect(exclusive, sub)
	if err := <-elect(b.Bounded(10*time.Second), active); err != nil {
		t.Fatal(err)
	}
	sessions, _ := b.Take(active, 5)
	if err := sessions[1].Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	standby, third := b.Connect(exclusive, sub), b.Connect(exclusive, sub)
	if clean, err := standby.(jms.CleanStarter).CleanStart(t.Context()); clean || err != nil {
		t.Errorf("CleanStart of a standby = %t, %v; want false", clean, err)
	}
	elected := elect(b.Bounded(20*time.Second), standby)
	short, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond) // longer than it takes to ask again
	defer cancel()
	if err := <-elect(short, third); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("AwaitActive beside an active instance = %v, want its context's error", err)
	}
	if err := third.Close(t.Context()); err != nil {
		t.Errorf("Close of a standby = %v", err)
	}
	select {
	case err := <-elected:
		t.Fatalf("AwaitActive beside an active instance returned %v", err)
	default:
	}
	if n := b.Consumers(q); n != 1 {
		t.Errorf("%d consumers, want that of the active instance alone", n)
	}
	if err := active.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-elected; err != nil {
		t.Fatalf("AwaitActive after the active instance closed = %v", err)
	}
	if clean, err := standby.(jms.CleanStarter).CleanStart(t.Context()); !clean || err != nil {
		t.Errorf("CleanStart of the elected = %t, %v; want true", clean, err)
	}
	s := b.Session(standby)
	bodies := []string{string(b.Receive(s).Body)}
	_, rest := b.Take(standby, 4)
	if bodies = append(bodies, rest...); !slices.Equal(bodies, []string{"1", "3", "4", "5", "6"}) {
		t.Errorf("then came %v, want 1 3 4 5 6", bodies)
	}
}

// An ordinary consumer, of any program, keeps the role away; beside the active instance it is refused.
func TestExclusiveBesideOthers(t *testing.T) {
	b := brokertest.New(t)
	q := b.Queue(nil)
	other, err := b.Conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Consume(q, "", false, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	var log brokertest.Journal
	c := b.Connect(exclusive, jms.Subscription{Queue: q, SingleActiveConsumer: true, Logger: log.Logger()})
	elected := elect(b.Bounded(20*time.Second), c)
	b.Eventually("the candidate waits", func() bool { return strings.Contains(log.String(), "another consumer has the queue") })
	select {
	case err := <-elected:
		t.Fatalf("AwaitActive beside another consumer returned %v", err)
	default:
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-elected; err != nil {
		t.Fatalf("AwaitActive when the other consumer is gone = %v", err)
	}
	if other, err = b.Conn.Channel(); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Consume(q, "", false, false, false, false, nil); err == nil || !strings.Contains(err.Error(), "in exclusive use") {
		t.Errorf("another consumer beside the active instance = %v, want a refusal", err)
	}
}

// Candidates that ask in the same moment: one wins, the others wait on, and none is lost.
func TestExclusiveRace(t *testing.T) {
	b := brokertest.New(t)
	q := b.Queue(nil)
	const n = 6
	ctx := b.Bounded(30 * time.Second)
	won := make(chan jms.Connection, n)
	for range n {
		c := b.Connect(exclusive, jms.Subscription{Queue: q, SingleActiveConsumer: true})
		go func() {
			if err := c.(jms.Elector).AwaitActive(ctx); err != nil {
				t.Errorf("AwaitActive = %v", err)
			}
			won <- c
		}()
	}
	for i := range n {
		c := <-won
		select {
		case <-won:
			t.Fatal("two are active")
		case <-time.After(50 * time.Millisecond): // as long as the others need to find out
		}
		if i == 0 && b.Consumers(q) != 1 {
			t.Errorf("%d consumers, want 1", b.Consumers(q))
		}
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// The role is lost with the consumer, whoever takes it away, and that is the loss of the connection.
func TestExclusiveIsLost(t *testing.T) {
	b := brokertest.New(t)
	q := b.Queue(nil)
	c := b.Connect(exclusive, jms.Subscription{Queue: q, SingleActiveConsumer: true})
	if err := <-elect(b.Bounded(10*time.Second), c); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Ch.QueueDelete(q, false, false, false); err != nil {
		t.Fatal(err)
	}
	b.IsDone(c, 10*time.Second)
	if err := c.Err(); !errors.Is(err, jms.ErrConnectionLost) || !strings.Contains(err.Error(), "cancelled the consumer") {
		t.Errorf("Err() = %v, want ErrConnectionLost that tells of the broker's cancel", err)
	}
	if err := <-elect(t.Context(), c); !errors.Is(err, jms.ErrConnectionLost) {
		t.Errorf("AwaitActive on a lost connection = %v, want ErrConnectionLost", err)
	}
}
