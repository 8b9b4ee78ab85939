package providertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/orderaudit"
)

// instance is the name of the one process that a case is, in the history.
const instance = "manager"

// audit is one case of RunManager: it records what managers do, in numbers and as a history for package orderaudit.
type audit struct {
	*kase
	limit   time.Duration // for a wait
	history *orderaudit.Recorder
	factory *tracked

	mu       sync.Mutex
	news     chan struct{} // closed and replaced when something has happened
	messages map[string]*track
	running  int
	held     int // received and not settled
	settled  int // messages that have left the queue, as far as is known
	bytes    int // of the held ones' bodies

	mostRunning, mostHeld, mostBytes int
}

// track is what is known of one message.
type track struct {
	tasks   int // begun
	open    bool
	intent  orderaudit.Outcome
	outcome orderaudit.Outcome
}

// errFailed is what a task returns that fails on purpose.
var errFailed = errors.New("failed on purpose")

func (a *audit) open() {
	a.history = orderaudit.NewRecorder()
	a.factory = &tracked{ConnectionFactory: a.b.Factory, name: a.named}
}

// name parses a body: key, dot, number, and perhaps padding behind a blank.
func name(body []byte) (key string, number int64) {
	head, _, _ := bytes.Cut(body, []byte(" "))
	key, digits, _ := strings.Cut(string(head), ".")
	number, _ = strconv.ParseInt(digits, 10, 64)
	return key, number
}

// load sends messages "key.number" for each key, the numbers from..to-1, interleaved: all keys' first messages come first.
func (a *audit) load(keys []string, from, to int) {
	a.Helper()
	var out []jms.Outgoing
	flush := func() {
		a.send(a.b.Queue, out...)
		for _, o := range out {
			a.history.Sent(name(o.Body))
		}
		out = out[:0]
	}
	for n := from; n < to; n++ {
		for _, key := range keys {
			out = append(out, jms.Outgoing{Text: true, Body: fmt.Appendf(nil, "%s.%d", key, n)})
			if len(out) == 100 {
				flush()
			}
		}
	}
	if len(out) > 0 {
		flush()
	}
}

// keys gives n names of keys.
func keys(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("k%d", i)
	}
	return all
}

// manager makes a manager whose tasks and events are recorded. n is how often the message's task has begun, this time included.
func (a *audit) manager(task func(ctx context.Context, d *keyseq.Delivery, n int) error, configure func(c *keyseq.Config)) *keyseq.SequenceManager {
	a.Helper()
	listener := keyseq.ListenerFuncs{Task: func(ctx context.Context, d *keyseq.Delivery) error { return a.task(ctx, d, task) }}
	m, err := keyseq.NewSequenceManager(a.b.Queue, a.factory, listener, keyseq.KeyFromBodyBefore("."), func(c *keyseq.Config) {
		c.Workers, c.MaxInFlight = 20, 200
		c.SingleActiveConsumer = a.single
		c.Retry = keyseq.RetryPolicy{MaxRetries: keyseq.Unlimited, Backoff: keyseq.FixedBackoff(5 * time.Millisecond)}
		c.Reconnect = keyseq.FixedBackoff(20 * time.Millisecond)
		c.Events = append(c.Events, a.events())
		if configure != nil {
			configure(c)
		}
		if a.h.Config != nil {
			a.h.Config(c)
		}
	})
	if err != nil {
		a.Fatalf("NewSequenceManager: %v", err)
	}
	a.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), a.h.Patience)
		defer cancel()
		_ = m.Shutdown(ctx)
	})
	return m
}

// started is manager, and starts it.
func (a *audit) started(task func(ctx context.Context, d *keyseq.Delivery, n int) error, configure func(c *keyseq.Config)) *keyseq.SequenceManager {
	a.Helper()
	m := a.manager(task, configure)
	a.start(m)
	return m
}

func (a *audit) start(m *keyseq.SequenceManager) {
	a.Helper()
	a.bounded("Start", a.limit, m.Start)
}

func (a *audit) shutdown(m *keyseq.SequenceManager) {
	a.Helper()
	a.history.InstanceStopping(instance)
	a.bounded("Shutdown", a.limit, m.Shutdown)
}

// bounded makes a call that must succeed in time.
func (a *audit) bounded(what string, limit time.Duration, call func(context.Context) error) {
	a.Helper()
	ctx, cancel := context.WithTimeout(a.ctx, limit)
	defer cancel()
	if _, err := within(a.kase, limit+a.h.Patience, what, func() (any, error) { return nil, call(ctx) }); err != nil {
		a.broken("%s returned %v", what, err)
	}
}

func (a *audit) task(ctx context.Context, d *keyseq.Delivery, task func(ctx context.Context, d *keyseq.Delivery, n int) error) error {
	key, number := name(d.Body)
	attempt := a.history.Start(instance, key, number, d.Attempt)
	var n int
	a.note(d.Message, func(t *track) {
		t.tasks++
		n = t.tasks
		t.open = true
		a.running++
		a.mostRunning = max(a.mostRunning, a.running)
	})
	intent := orderaudit.Failed // a panic
	defer func() {
		attempt.Return(intent)
		a.note(d.Message, func(t *track) { t.intent = intent; a.running-- })
	}()
	err := task(ctx, d, n)
	switch cause := context.Cause(ctx); {
	case err == nil:
		intent = orderaudit.Settled
	case errors.Is(cause, jms.ErrConnectionLost), errors.Is(cause, keyseq.ErrDrainTimeout):
		intent = orderaudit.GivenBack
	}
	return err
}

// note changes what is known of a message and wakes those who wait for news.
func (a *audit) note(m *jms.Message, change func(t *track)) {
	key, number := name(m.Body)
	id := fmt.Sprintf("%s.%d", key, number)
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.messages[id]
	if t == nil {
		t = &track{}
		a.messages[id] = t
	}
	change(t)
	close(a.news)
	a.news = make(chan struct{})
}

// events records outcomes. The manager tells them before it goes on.
func (a *audit) events() keyseq.Events {
	left := func(outcome func(e keyseq.MessageEvent, t *track) orderaudit.Outcome) func(keyseq.MessageEvent) {
		return func(e keyseq.MessageEvent) {
			key, number := name(e.Delivery.Body)
			a.note(e.Delivery.Message, func(t *track) {
				a.held--
				a.bytes -= len(e.Delivery.Body)
				if t.open { // its task has seen it
					before := settles(t.outcome)
					t.outcome, t.open = outcome(e, t), false
					if now := settles(t.outcome); now && !before {
						a.settled++
					} else if before && !now {
						a.settled--
					}
					a.history.End(instance, key, number, t.outcome)
				}
			})
		}
	}
	always := func(o orderaudit.Outcome) func(keyseq.MessageEvent, *track) orderaudit.Outcome {
		return func(keyseq.MessageEvent, *track) orderaudit.Outcome { return o }
	}
	return keyseq.Events{
		Received: func(e keyseq.MessageEvent) {
			a.note(e.Delivery.Message, func(*track) {
				a.held++
				a.bytes += len(e.Delivery.Body)
				a.mostHeld, a.mostBytes = max(a.mostHeld, a.held), max(a.mostBytes, a.bytes)
			})
		},
		Retrying: func(e keyseq.MessageEvent) {
			key, number := name(e.Delivery.Body)
			a.note(e.Delivery.Message, func(t *track) {
				if t.open && t.intent == orderaudit.Settled && !errors.Is(e.Err, jms.ErrBusy) { // the task will be repeated
					t.open = false
					a.history.End(instance, key, number, orderaudit.Failed)
				}
			})
		},
		Committed:    left(always(orderaudit.Settled)),
		DeadLettered: left(always(orderaudit.DeadLettered)),
		Discarded:    left(always(orderaudit.Discarded)),
		RolledBack: left(func(e keyseq.MessageEvent, _ *track) orderaudit.Outcome {
			if errors.Is(e.Err, jms.ErrCommitUnknown) {
				return orderaudit.Unknown
			}
			return orderaudit.GivenBack
		}),
	}
}

// until waits for news until ok says so; ok runs with a.mu held.
func (a *audit) until(what string, ok func() bool) {
	a.Helper()
	deadline := time.NewTimer(a.limit)
	defer deadline.Stop()
	for {
		a.mu.Lock()
		done, news := ok(), a.news
		a.mu.Unlock()
		if done {
			return
		}
		select {
		case <-news:
		case <-deadline.C:
			a.broken("not within %v: %s\n%s", a.limit, what, a.state())
		}
	}
}

// state describes the case for a message.
func (a *audit) state() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return fmt.Sprintf("%d messages settled of %d seen, %d held, %d running", a.settled, len(a.messages), a.held, a.running)
}

// settles reports whether an outcome takes the message off the queue.
func settles(o orderaudit.Outcome) bool {
	return o == orderaudit.Settled || o == orderaudit.DeadLettered || o == orderaudit.Discarded
}

// untilSettled waits until so many messages have left the queue.
func (a *audit) untilSettled(n int) {
	a.Helper()
	a.until(fmt.Sprintf("%d messages are settled", n), func() bool { return a.settled >= n })
}

// capabilities asks a connection that is closed again.
func (a *audit) capabilities() jms.Capabilities {
	a.Helper()
	l := a.connect()
	a.close(l)
	return l.caps
}

// cut breaks the manager's connection while at most so many messages are in flight.
func (a *audit) cut(most int) {
	if !a.factory.capabilities().AtomicSends {
		most = 0 // acknowledgements are on their way for an unknown number more
	}
	loss := a.history.Loss(instance, "connection cut", most)
	a.b.Break(a.factory.latest())
	loss.Done()
}

// judge looks at what is left on the queues and proves or refutes the history.
func (a *audit) judge(opts orderaudit.Options) {
	a.Helper()
	for _, body := range a.drain(a.b.Queue) {
		a.history.Left(name([]byte(body)))
	}
	if opts.Outputs != nil {
		for _, body := range a.drain(a.b.Other) {
			key, number := name([]byte(body))
			a.history.Output(key, number, 1)
		}
	}
	if !a.factory.capabilities().AtomicSends {
		opts.AckDelay, opts.OutputsRepeat = time.Second, true
	}
	if verdict := a.history.History().Check(opts); !verdict.OK() {
		a.broken("%v", verdict)
	} else {
		a.Log(verdict)
	}
}

// tracked is the provider's factory; it remembers connections.
type tracked struct {
	jms.ConnectionFactory
	name func(jms.Subscription) jms.Subscription

	mu     sync.Mutex
	conns  []jms.Connection
	refuse int // so many next calls fail as if no broker answered
	calls  int
}

func (f *tracked) Connect(ctx context.Context, sub jms.Subscription) (jms.Connection, error) {
	f.mu.Lock()
	f.calls++
	refuse := f.refuse > 0
	if refuse {
		f.refuse--
	}
	logger := sub.Logger
	sub = f.name(sub)
	sub.Logger = logger
	f.mu.Unlock()
	if refuse {
		return nil, fmt.Errorf("providertest: refused on purpose: %w", jms.ErrConnectionLost)
	}
	conn, err := f.ConnectionFactory.Connect(ctx, sub)
	if err == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.conns = append(f.conns, conn)
	}
	return conn, err
}

func (f *tracked) latest() jms.Connection {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.conns[len(f.conns)-1]
}

func (f *tracked) capabilities() jms.Capabilities { return f.latest().Capabilities() }

// texts sorts what came of a queue, for comparison.
func texts(all []string) []string {
	all = slices.Clone(all)
	slices.Sort(all)
	return all
}
