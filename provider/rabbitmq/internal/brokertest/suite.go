package brokertest

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/providertest"
	"github.com/keyseq/keyseq/provider/rabbitmq"
	"github.com/keyseq/keyseq/provider/rabbitmq/internal/faultproxy"
)

// Harness makes the brokers that package providertest needs: queues with these arguments, each connection over a proxy.
func Harness(arguments amqp.Table, heartbeat time.Duration) providertest.Harness {
	kind := arguments[amqp.QueueTypeArg].(string)
	return providertest.Harness{
		New: func(t testing.TB) providertest.Broker {
			if strings.HasSuffix(t.Name(), "/declared/MaxInFlight") { // it looks what a second reader gets beside the first
				return suiteBroker(t, amqp.Table{amqp.QueueTypeArg: kind}, rabbitmq.Factory{Heartbeat: heartbeat})
			}
			return suiteBroker(t, arguments, rabbitmq.Factory{Heartbeat: heartbeat})
		},
		NewSingleActive: func(t testing.TB) providertest.Broker {
			return suiteBroker(t, Single(kind), rabbitmq.Factory{Heartbeat: heartbeat})
		},
	}
}

// besideAnother are the cases that read with a second connection while a first one consumes, which an exclusive consumer forbids.
var besideAnother = []string{"/rule02/HeldIsInvisible", "/rule07/AfterErrConfig", "/rule07/AfterErrBusy", "/declared/MaxInFlight", "/declared/CleanStarter"}

// ExclusiveHarness is Harness for classic queues without an argument, read with Factory.Exclusive.
func ExclusiveHarness(heartbeat time.Duration) providertest.Harness {
	plain := amqp.Table{amqp.QueueTypeArg: amqp.QueueTypeClassic}
	h := Harness(plain, heartbeat)
	shared := h.New
	h.NewSingleActive = func(t testing.TB) providertest.Broker {
		return suiteBroker(t, plain, rabbitmq.Factory{Heartbeat: heartbeat, Exclusive: true})
	}
	h.New = func(t testing.TB) providertest.Broker {
		if slices.ContainsFunc(besideAnother, func(name string) bool { return strings.HasSuffix(t.Name(), name) }) {
			return shared(t)
		}
		return h.NewSingleActive(t)
	}
	return h
}

// proxied makes each connection over a proxy of its own, so that a test can cut one of them.
type proxied struct {
	rabbitmq.Factory
	mu   sync.Mutex
	idle []*faultproxy.Proxy // made before the suite counts goroutines
	used map[jms.Connection]*faultproxy.Proxy
}

func (f *proxied) Connect(ctx context.Context, sub jms.Subscription) (jms.Connection, error) {
	p, err := f.proxy()
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(f.URL)
	if err != nil {
		return nil, err
	}
	u.Host = p.Addr()
	through := f.Factory
	through.URL = u.String()
	sub.SingleActiveConsumer = sub.SingleActiveConsumer || f.Exclusive // which wants it
	c, err := through.Connect(ctx, sub)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.idle = append(f.idle, p)
		return nil, err
	}
	f.used[c] = p
	return c, nil
}

func (f *proxied) proxy() (*faultproxy.Proxy, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.idle); n > 0 {
		p := f.idle[n-1]
		f.idle = f.idle[:n-1]
		return p, nil
	}
	u, err := url.Parse(f.URL)
	if err != nil {
		return nil, err
	}
	return faultproxy.New(u.Host)
}

func (f *proxied) of(c jms.Connection) *faultproxy.Proxy {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.used[c]
}

func (f *proxied) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.used {
		p.Close()
	}
	for _, p := range f.idle {
		p.Close()
	}
}

func suiteBroker(t testing.TB, arguments amqp.Table, factory rabbitmq.Factory) providertest.Broker {
	b := New(t)
	factory.URL = b.URL
	f := &proxied{Factory: factory, used: map[jms.Connection]*faultproxy.Proxy{}}
	t.Cleanup(f.close)
	for range 4 {
		p, err := f.proxy()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { f.idle = append(f.idle, p) }()
	}
	q, other := b.Queue(arguments), b.Queue(arguments)
	sender := b.Session(b.Connect(rabbitmq.Factory{}, jms.Subscription{Queue: other}))
	broker := providertest.Broker{
		Factory: f, Queue: q, Other: other, Unknown: q + "-unknown",
		Send: func(ctx context.Context, queue string, out ...jms.Outgoing) error {
			for i := range out {
				out[i].Queue = queue
			}
			return sender.Commit(ctx, out...)
		},
		Break:       func(c jms.Connection) { f.of(c).Cut() },
		Unreachable: &rabbitmq.Factory{URL: "amqp://guest:guest@127.0.0.1:1/"},
	}
	if !b.Controlled() {
		return broker
	}
	// The tool takes a quarter of a second on an idle machine: who asks while another asks gets the answer before.
	var asking sync.Mutex
	var last atomic.Int64
	broker.Unsettled = func(_ context.Context, queue string) (int, error) {
		if !asking.TryLock() {
			return int(last.Load()), nil
		}
		defer asking.Unlock()
		for line := range strings.Lines(b.Node("ctl", "-q", "list_queues", "name", "messages_unacknowledged")) {
			if f := strings.Fields(line); len(f) == 2 && f[0] == queue {
				n, err := strconv.Atoi(f[1])
				last.Store(int64(n))
				return n, err
			}
		}
		return 0, nil
	}
	if arguments[amqp.QueueTypeArg] == "classic" { // a quorum queue takes one message more than its length allows
		broker.Fill = func(queue string) func() {
			b.Node("ctl", "-q", "set_policy", queue, "^"+queue+"$", `{"max-length":0,"overflow":"reject-publish"}`)
			return func() { b.Node("ctl", "-q", "clear_policy", queue) }
		}
	}
	return broker
}
