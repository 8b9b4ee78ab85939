package keyseq_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/orderaudit"
	"github.com/keyseq/keyseq/provider/memory"
)

// Queues that every rig has.
const (
	inQueue   = "ORDERS"
	deadQueue = "ORDERS.DEAD"
	outQueue  = "LEDGER"
)

// longest is the (virtual) time after which a test that waits has failed.
const longest = 2 * time.Hour

type taskFunc = func(ctx context.Context, d *keyseq.Delivery) error

// rig is what a test works with: a broker, managers, and the audit of what they do. A message is "key.number", as its body. Times are those of the
// bubble: a wait of an hour costs nothing.
type rig struct {
	*testing.T
	broker  *memory.Broker
	profile memory.Profile
	audit   *orderaudit.Recorder
	spy     *spy                  // what managers did to the broker
	factory jms.ConnectionFactory // what managers connect to: the spied broker, unless the test wraps it first

	verdict  orderaudit.Options // for the judgement at the end
	unjudged bool               // set by tests that break the order or the bookkeeping on purpose

	onError func(d *keyseq.Delivery, err error, performed bool) // told of OnMessageError, if set before the manager starts

	managers []*subject
	mu       sync.Mutex
	open     map[string]orderaudit.Outcome // messages whose attempt has no end yet, with what the task intended
	errs     []messageError
}

// messageError is a call of OnMessageError.
type messageError struct {
	body      string
	attempt   int
	err       error
	performed bool
}

// subject is a manager under test; its name is the instance in the audit.
type subject struct {
	*keyseq.SequenceManager
	rig  *rig
	name string
}

// bubble runs a test on a fresh broker in a synctest bubble. options are further queues, or a profile; a queue named inQueue replaces the
// plain one. At the end it shuts down what runs and judges the run: order, two at once, losses, duplicates.
func bubble(t *testing.T, test func(r *rig), options ...memory.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, audit: orderaudit.NewRecorder(), open: map[string]orderaudit.Outcome{}}
		in := memory.Queue{Name: inQueue}
		all := []memory.Option{memory.Queue{Name: deadQueue}, memory.Queue{Name: outQueue}}
		for _, o := range options {
			switch o := o.(type) {
			case memory.Profile:
				r.profile = o
			case memory.Queue:
				if o.Name == inQueue {
					in = o
					continue
				}
			}
			all = append(all, o)
		}
		broker, err := memory.NewBroker(append(all, in)...)
		if err != nil {
			t.Fatal(err)
		}
		r.broker, r.spy = broker, &spy{inner: broker}
		r.factory = r.spy
		r.verdict.AckDelay = r.profile.AckDelay
		r.verdict.OutputsRepeat = r.profile.Prefetch > 0
		defer broker.Close()
		defer r.end()
		test(r)
	})
}

// profiles runs a test in a bubble for the plain broker and for each kind of real one.
func profiles(t *testing.T, test func(r *rig), options ...memory.Option) {
	t.Helper()
	for _, p := range []memory.Profile{{Name: "plain"}, memory.LikeIBMMQ(), memory.LikeRabbitMQ(), memory.LikeQuorum()} {
		t.Run(p.Name, func(t *testing.T) { bubble(t, test, append(options, p)...) })
	}
}

// end stops everything and judges the run.
func (r *rig) end() {
	r.Helper()
	for _, s := range r.managers {
		if err := s.shutdown(longest); err != nil {
			r.Errorf("Shutdown of %s at the end: %v", s.name, err)
		}
	}
	r.spy.mu.Lock()
	breaches := r.spy.breaches
	r.spy.mu.Unlock()
	for _, breach := range breaches {
		r.Errorf("breach of the contract with a provider: %s", breach)
	}
	if r.unjudged || r.Failed() {
		return
	}
	for _, body := range r.bodies(inQueue) {
		r.audit.Left(split(body))
	}
	if r.verdict.Outputs != nil {
		for _, body := range r.bodies(outQueue) {
			key, number := split(body)
			r.audit.Output(key, number, 1)
		}
	}
	if h := r.audit.History(); len(h.Records) > 0 {
		if v := h.Check(r.verdict); !v.OK() {
			r.Error(v)
		}
	}
}

// split takes "key.number" apart.
func split(body string) (key string, number int64) {
	at := strings.LastIndexByte(body, '.')
	number, _ = strconv.ParseInt(body[at+1:], 10, 64)
	return body[:at], number
}

// send puts messages of one key on the queue.
func (r *rig) send(key string, numbers ...int) {
	r.Helper()
	for _, n := range numbers {
		if _, err := r.broker.Send(keyseq.Outgoing{Queue: inQueue, Body: fmt.Appendf(nil, "%s.%d", key, n)}); err != nil {
			r.Fatal(err)
		}
		r.audit.Sent(key, int64(n))
	}
}

// interleaved sends the messages 0 to each-1 of the keys k0, k1 and so on: first all with number 0, then all with number 1.
func (r *rig) interleaved(keys, each int) {
	r.Helper()
	r.interleavedFrom(keys, 0, each)
}

// interleavedFrom is interleaved for the numbers from to to-1.
func (r *rig) interleavedFrom(keys, from, to int) {
	r.Helper()
	for n := from; n < to; n++ {
		for k := range keys {
			r.send(fmt.Sprint("k", k), n)
		}
	}
}

// manager makes a manager named "A" whose tasks and outcomes are audited. It has 20 workers, a window of 200, and retries each 100 ms.
func (r *rig) manager(task taskFunc, configure ...func(*keyseq.Config)) *subject {
	r.Helper()
	return r.instance("A", task, configure...)
}

// instance is manager with a name, for tests with several.
func (r *rig) instance(name string, task taskFunc, configure ...func(*keyseq.Config)) *subject {
	r.Helper()
	s := &subject{rig: r, name: name}
	listener := keyseq.ListenerFuncs{
		Task: func(ctx context.Context, d *keyseq.Delivery) error { return s.task(ctx, d, task) },
		Error: func(_ context.Context, d *keyseq.Delivery, err error, performed bool) {
			r.mu.Lock()
			r.errs = append(r.errs, messageError{string(d.Body), d.Attempt, err, performed})
			r.mu.Unlock()
			if r.onError != nil {
				r.onError(d, err, performed)
			}
		},
	}
	settings := func(c *keyseq.Config) {
		c.Workers, c.MaxInFlight = 20, 200
		c.Retry.Backoff = keyseq.FixedBackoff(100 * time.Millisecond)
		c.Reconnect = keyseq.FixedBackoff(20 * time.Millisecond)
		c.ClientName = name
		c.Events = []keyseq.Events{s.events()}
	}
	m, err := keyseq.NewSequenceManager(inQueue, r.factory, listener, keyseq.KeyFromBodyBefore("."), append([]func(*keyseq.Config){settings}, configure...)...)
	if err != nil {
		r.Fatal(err)
	}
	s.SequenceManager = m
	r.managers = append(r.managers, s)
	return s
}

// task records an attempt. A task that does not return, because it panics or ends its goroutine, is recorded as failed.
func (s *subject) task(ctx context.Context, d *keyseq.Delivery, task taskFunc) error {
	r, body := s.rig, string(d.Body)
	key, number := split(body)
	attempt := s.rig.audit.Start(s.name, key, number, d.Attempt)
	intent := orderaudit.Failed
	defer func() {
		r.mu.Lock()
		r.open[s.name+" "+body] = intent
		r.mu.Unlock()
		attempt.Return(intent)
	}()
	err := task(ctx, d)
	switch cause := context.Cause(ctx); {
	case err == nil:
		intent = orderaudit.Settled
	case errors.Is(cause, jms.ErrConnectionLost), errors.Is(cause, keyseq.ErrDrainTimeout):
		intent = orderaudit.GivenBack
	}
	return err
}

// events records what becomes of the messages that a task has seen.
func (s *subject) events() keyseq.Events {
	became := func(outcome orderaudit.Outcome) func(keyseq.MessageEvent) {
		return func(e keyseq.MessageEvent) {
			r, body, outcome := s.rig, string(e.Delivery.Body), outcome
			r.mu.Lock()
			defer r.mu.Unlock()
			intent, seen := r.open[s.name+" "+body]
			if outcome == orderaudit.Failed && (intent != orderaudit.Settled || errors.Is(e.Err, jms.ErrBusy)) {
				return // Retrying: only a commit that was refused for good undoes the task
			}
			if errors.Is(e.Err, jms.ErrCommitUnknown) && outcome == orderaudit.GivenBack {
				outcome = orderaudit.Unknown
			}
			if seen {
				delete(r.open, s.name+" "+body)
				key, number := split(body)
				r.audit.End(s.name, key, number, outcome)
			}
		}
	}
	return keyseq.Events{
		Retrying: became(orderaudit.Failed), Committed: became(orderaudit.Settled), DeadLettered: became(orderaudit.DeadLettered),
		Discarded: became(orderaudit.Discarded), RolledBack: became(orderaudit.GivenBack),
	}
}

// start starts the manager, which must succeed.
func (s *subject) start() *subject {
	s.rig.Helper()
	if err := s.Start(s.rig.Context()); err != nil {
		s.rig.Fatalf("Start: %v", err)
	}
	return s
}

// stop calls Stop with a limit of time.
func (s *subject) stop(limit time.Duration) error { return s.bounded(limit, s.Stop) }

// shutdown calls Shutdown with a limit of time.
func (s *subject) shutdown(limit time.Duration) error { return s.bounded(limit, s.Shutdown) }

func (s *subject) bounded(limit time.Duration, call func(context.Context) error) error {
	s.rig.audit.InstanceStopping(s.name)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.rig.Context()), limit)
	defer cancel()
	return call(ctx)
}

// until waits until ok says so. It looks when nothing else can move: each millisecond at first, later each hundredth of what it has waited.
func (r *rig) until(what string, ok func() bool) {
	r.Helper()
	for began := time.Now(); ; {
		synctest.Wait()
		if ok() {
			return
		}
		waited := time.Since(began)
		if waited > longest {
			for _, s := range r.managers {
				r.Logf("%s: %+v", s.name, s.Snapshot())
			}
			r.Fatalf("it never came to pass that %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// drained waits until the queue is empty: everything is settled.
func (r *rig) drained() {
	r.Helper()
	r.until("the queue is empty", func() bool { return r.broker.Depth(inQueue) == 0 })
}

// bodies lists what lies on a queue and is not held by anybody.
func (r *rig) bodies(queue string) (all []string) {
	r.Helper()
	messages, err := r.broker.Browse(queue)
	if err != nil {
		r.Fatal(err)
	}
	for _, m := range messages {
		all = append(all, string(m.Body))
	}
	return all
}

// messageErrors lists the calls of OnMessageError so far.
func (r *rig) messageErrors() []messageError {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]messageError(nil), r.errs...)
}

// hook has hook see every call to the broker, one after another: it must not wait, and may share variables with r.locked.
func (r *rig) hook(hook func(c memory.Call) error) {
	r.broker.SetHook(func(_ context.Context, c memory.Call) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		return hook(c)
	})
}

// locked runs f while no hook runs.
func (r *rig) locked(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

// losing records a loss of everything that a manager has in flight, while cause causes it.
func (r *rig) losing(what string, cause func()) {
	loss := r.audit.Loss("", what, 0)
	cause()
	loss.Done()
}

// lossFollows records a loss that what is done next brings about. What else happens in the same instant may come before or after it.
func (r *rig) lossFollows(instance, what string) {
	loss := r.audit.Loss(instance, what, 0)
	time.AfterFunc(time.Nanosecond, loss.Done)
}
