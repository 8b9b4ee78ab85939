package rabbitmq_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/rabbitmq"
	"github.com/keyseq/keyseq/provider/rabbitmq/internal/brokertest"
)

// try connects and closes at once.
func try(b *brokertest.Bench, f rabbitmq.Factory, sub jms.Subscription) (jms.Capabilities, string, error) {
	b.Helper()
	if f.URL == "" {
		f.URL = b.URL
	}
	var log brokertest.Journal
	sub.Logger = log.Logger()
	c, err := f.Connect(b.Context(), sub)
	if err != nil {
		return jms.Capabilities{}, log.String(), err
	}
	if err := c.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
	return c.Capabilities(), log.String(), nil
}

// What the broker is asked for must be what the queue is, and a difference says which argument and what to do (R2.03).
func TestQueueIsNotWhatWasAskedFor(t *testing.T) {
	brokertest.OnKinds(t, func(t *testing.T, kind string) {
		b := brokertest.New(t)
		plain := b.Queue(amqp.Table{amqp.QueueTypeArg: kind})
		rich := brokertest.Single(kind)
		rich["x-dead-letter-exchange"], rich["x-dead-letter-routing-key"], rich["x-max-length"] = "", "it's 'odd' of type 'x'", int64(1000)
		rich["x-overflow"] = "reject-publish" // or there is a warning
		q := b.Queue(rich)
		other := map[string]string{"classic": "quorum", "quorum": "classic"}[kind]
		for name, c := range map[string]struct {
			queue string
			f     rabbitmq.Factory
			sac   bool
			want  []string
		}{
			"no such queue":             {q + "-typo", rabbitmq.Factory{}, false, []string{"404", "create the queue"}},
			"no single active consumer": {plain, rabbitmq.Factory{}, true, []string{"406", "x-single-active-consumer", "declare it anew"}},
			"declared without it":       {plain, rabbitmq.Factory{Declare: true}, true, []string{"406", "x-single-active-consumer", "declare it anew"}},
			"another argument":          {q, rabbitmq.Factory{Arguments: map[string]any{"x-max-length": 999}}, true, []string{"406", "x-max-length", "999", "1000"}},
			"an argument it has not":    {q, rabbitmq.Factory{Arguments: map[string]any{"x-expires": 99999}}, true, []string{"406", "x-expires"}},
			"the other type":            {q, rabbitmq.Factory{Arguments: map[string]any{"x-queue-type": other}}, false, []string{"406", "x-queue-type"}},
		} {
			_, _, err := try(b, c.f, jms.Subscription{Queue: c.queue, SingleActiveConsumer: c.sac})
			if !errors.Is(err, jms.ErrConfig) {
				t.Errorf("%s: Connect = %v, want ErrConfig", name, err)
				continue
			}
			for _, part := range append(c.want, c.queue) {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s: the error does not say %q: %v", name, part, err)
				}
			}
		}
		// Arguments that nobody asked about do not matter, and are known afterwards.
		if caps, log, err := try(b, rabbitmq.Factory{Declare: true}, jms.Subscription{Queue: q, SingleActiveConsumer: true}); err != nil || !caps.ReturnsAtOnce || log != "" {
			t.Errorf("Connect to a queue with further arguments = %v, ReturnsAtOnce %t, log %q; want nil, true and silence", err, caps.ReturnsAtOnce, log)
		}
	})
}

func TestDeclare(t *testing.T) {
	brokertest.OnKinds(t, func(t *testing.T, kind string) {
		b := brokertest.New(t)
		name := b.Queue(nil)
		if _, err := b.Ch.QueueDelete(name, false, false, false); err != nil {
			t.Fatal(err)
		}
		f := rabbitmq.Factory{Declare: true, Arguments: map[string]any{"x-queue-type": kind, "x-max-length": 7}}
		for range 2 { // made, then met
			caps, _, err := try(b, f, jms.Subscription{Queue: name, SingleActiveConsumer: true})
			if err != nil || !caps.ReturnsAtOnce {
				t.Fatalf("Connect = %v, ReturnsAtOnce %t; want nil, true", err, caps.ReturnsAtOnce)
			}
		}
		want := brokertest.Single(kind)
		want["x-max-length"] = int64(7)
		if _, err := b.Ch.QueueDeclare(name, true, false, false, false, want); err != nil {
			t.Errorf("the queue is not as it was asked for: %v", err)
		}
	})
}

// The broker is not told to have promised what it has not: without a single active consumer it may keep messages of a dead connection
// for three heartbeats (H4), and a second reader is warned about.
func TestCapabilitiesFollowTheQueue(t *testing.T) {
	brokertest.OnKinds(t, func(t *testing.T, kind string) {
		b := brokertest.New(t)
		q := b.Queue(amqp.Table{amqp.QueueTypeArg: kind})
		caps, log, err := try(b, rabbitmq.Factory{Heartbeat: 4 * time.Second, ConsumerTimeout: time.Hour}, jms.Subscription{Queue: q, MaxInFlight: 50})
		want := jms.Capabilities{
			Broker: caps.Broker, MaxInFlight: 50, CheapSessions: true, ReturnDelay: 12 * time.Second, MaxHold: 30 * time.Minute, Push: true,
			DeliveryCount: kind == "quorum",
		}
		if err != nil || caps != want {
			t.Errorf("without a single active consumer: %+v, %v; want %+v", caps, err, want)
		}
		if !strings.HasPrefix(caps.Broker, "RabbitMQ ") {
			t.Errorf("Broker is %q", caps.Broker)
		}
		if !strings.Contains(log, "x-single-active-consumer") || strings.Contains(log, "somebody else") {
			t.Errorf("the log is %q; want a warning about the argument and none about others", log)
		}
		first := b.Connect(rabbitmq.Factory{}, jms.Subscription{Queue: q})
		_, _ = b.Session(first).Receive(b.Bounded(time.Millisecond))
		b.Eventually("the first consumer is there", func() bool { return b.Consumers(q) == 1 })
		if _, log, _ = try(b, rabbitmq.Factory{}, jms.Subscription{Queue: q}); !strings.Contains(log, "somebody else") {
			t.Errorf("the log beside another consumer is %q, want a warning", log)
		}
		caps, log, err = try(b, rabbitmq.Factory{}, jms.Subscription{Queue: b.Queue(brokertest.Single(kind))})
		want.ReturnsAtOnce, want.ReturnDelay, want.MaxInFlight, want.MaxHold = true, 0, 4096, 15*time.Minute
		if err != nil || caps != want || log != "" {
			t.Errorf("with a single active consumer: %+v, %v, log %q; want %+v and silence", caps, err, log, want)
		}
	})
}

// A delivery limit counts reconnects, so a small one loses messages that no task has seen (H19).
func TestDeliveryLimit(t *testing.T) {
	b := brokertest.New(t)
	for _, c := range []struct {
		limit   int
		accept  bool
		refused bool
	}{{20, false, true}, {999, false, true}, {1000, false, false}, {20, true, false}} {
		arguments := brokertest.Single("quorum")
		arguments["x-delivery-limit"] = int32(c.limit)
		_, _, err := try(b, rabbitmq.Factory{AcceptDeliveryLimit: c.accept}, jms.Subscription{Queue: b.Queue(arguments)})
		if (err != nil) != c.refused || c.refused && (!errors.Is(err, jms.ErrConfig) || !strings.Contains(err.Error(), "x-delivery-limit")) {
			t.Errorf("limit %d, accepted %t: Connect = %v; want refused %t", c.limit, c.accept, err, c.refused)
		}
	}
}

// A queue whose arguments have the broker remove or reorder messages that no task has seen is read, and warned about.
func TestHazardousArguments(t *testing.T) {
	b := brokertest.New(t)
	for name, c := range map[string]struct {
		arguments amqp.Table
		warned    string // "": not
	}{
		"length":           {amqp.Table{"x-max-length": int32(5)}, "x-overflow"},
		"bytes, drop-head": {amqp.Table{"x-max-length-bytes": int32(5000), "x-overflow": "drop-head"}, "x-overflow"},
		"length, rejected": {amqp.Table{"x-max-length": int32(5), "x-overflow": "reject-publish"}, ""},
		"time to live":     {amqp.Table{"x-message-ttl": int32(60_000)}, "x-message-ttl"},
		"expiry":           {amqp.Table{"x-expires": int32(60_000)}, "x-expires"},
		"priority":         {amqp.Table{"x-max-priority": int32(5)}, "x-max-priority"},
	} {
		t.Run(name, func(t *testing.T) {
			c.arguments["x-single-active-consumer"] = true
			_, log, err := try(b, rabbitmq.Factory{}, jms.Subscription{Queue: b.Queue(c.arguments)})
			if err != nil || c.warned == "" && log != "" || !strings.Contains(log, c.warned) {
				t.Errorf("Connect = %v, the log is %q; want a warning about %q", err, log, c.warned)
			}
		})
	}
}

// Without configure permission the arguments cannot be compared: the queue is read, nothing is promised, and the log says so. Without
// read or write permission there is an error that says which.
func TestPermissions(t *testing.T) {
	b := brokertest.NewVictim(t)
	q, target := b.Queue(brokertest.Single("classic")), b.Queue(brokertest.Single("classic"))
	b.Numbered(q, 1)
	b.Node("ctl", "-q", "add_user", "reader", "p@ss/word")
	defer b.Node("ctl", "-q", "delete_user", "reader")
	permit := func(configure, write, read string) {
		b.Node("ctl", "-q", "set_permissions", "reader", configure, write, read)
	}
	f := rabbitmq.Factory{URL: b.URL, Username: "reader", Password: "p@ss/word"}
	sub := jms.Subscription{Queue: q, SingleActiveConsumer: true}

	permit("^$", ".*", ".*")
	caps, log, err := try(b, f, sub)
	if err != nil || caps.ReturnsAtOnce || !strings.Contains(log, "not verified") {
		t.Errorf("without configure permission: %v, ReturnsAtOnce %t, log %q; want nil, false and a warning", err, caps.ReturnsAtOnce, log)
	}

	exclusive := f
	exclusive.Exclusive = true
	if _, _, err := try(b, exclusive, sub); !errors.Is(err, jms.ErrConfig) || !strings.Contains(err.Error(), "configure permission") {
		t.Errorf("exclusive without configure permission = %v, want ErrConfig: a quorum queue would ignore it", err)
	}

	permit("^$", "^$", ".*")
	c := b.Connect(f, sub)
	s := b.Session(c)
	b.Receive(s)
	if err := s.Commit(t.Context(), jms.Outgoing{Queue: target}); !errors.Is(err, jms.ErrConfig) || !strings.Contains(err.Error(), "403") || !strings.Contains(err.Error(), "write permission") {
		t.Errorf("Commit without write permission = %v, want ErrConfig with the code and what to do", err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	permit("^$", "^$", "^$")
	c = b.Connect(f, sub)
	if _, err := b.Session(c).Receive(b.Bounded(5 * time.Second)); !errors.Is(err, jms.ErrConfig) || !strings.Contains(err.Error(), "read permission") {
		t.Errorf("Receive without read permission = %v, want ErrConfig and what to do", err)
	}

	b.Node("ctl", "-q", "clear_permissions", "reader")
	if _, _, err := try(b, f, sub); !errors.Is(err, jms.ErrConfig) || !strings.Contains(err.Error(), "vhost") {
		t.Errorf("Connect without access to the vhost = %v, want ErrConfig", err)
	}
	f.VHost = "/"
	f.Password = "nope-17"
	if _, _, err := try(b, f, sub); !errors.Is(err, jms.ErrConfig) || !strings.Contains(err.Error(), "password") || strings.Contains(err.Error(), "nope-17") {
		t.Errorf("Connect with a wrong password = %v, want ErrConfig without the password", err)
	}
	f = rabbitmq.Factory{URL: b.URL, VHost: "nowhere"}
	if _, _, err := try(b, f, sub); !errors.Is(err, jms.ErrConfig) || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("Connect to a vhost that does not exist = %v, want ErrConfig that names it", err)
	}
}

// A first reader need not wait for a predecessor that never was; one beside a consumer must.
func TestCleanStart(t *testing.T) {
	brokertest.OnKinds(t, func(t *testing.T, kind string) {
		b := brokertest.New(t)
		q := b.Queue(amqp.Table{amqp.QueueTypeArg: kind})
		first := b.Connect(rabbitmq.Factory{}, jms.Subscription{Queue: q})
		for _, c := range []struct {
			when  string
			clean bool
		}{{"nobody has consumed", true}, {"another consumes", false}} {
			clean, err := b.Connect(rabbitmq.Factory{}, jms.Subscription{Queue: q}).(jms.CleanStarter).CleanStart(t.Context())
			if err != nil || clean != c.clean {
				t.Errorf("CleanStart when %s = %t, %v; want %t", c.when, clean, err, c.clean)
			}
			_, _ = b.Session(first).Receive(b.Bounded(time.Millisecond))
			b.Eventually("the first consumer is there", func() bool { return b.Consumers(q) == 1 })
		}
	})
}
