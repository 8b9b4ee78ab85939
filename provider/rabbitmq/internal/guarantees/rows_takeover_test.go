package guarantees

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/orderaudit"
	"github.com/keyseq/keyseq/provider/rabbitmq"
	"github.com/keyseq/keyseq/provider/rabbitmq/internal/brokertest"
	"github.com/keyseq/keyseq/provider/rabbitmq/internal/faultproxy"
)

// failover is how long it may take until another instance works after kill -9 of the active one. Standbys of an exclusive consumer ask twice a
// second; the rest is for a busy machine.
const failover = 5 * time.Second

// R2.02: of three instances exactly one runs tasks; when it is killed another is active within the failover budget.
func TestR2_02_OneOfThreeWorksAndAnotherTakesOver(t *testing.T) {
	onElections(t, func(t *testing.T, e election) {
		b := brokertest.New(t)
		q := b.Queue(e.arguments)
		record, path := openRecord(b)
		producer := &run{Bench: b, queue: q, record: record}
		producer.load(10, 1, 400)
		began := make(chan *process, 100_000)
		paths := []string{path}
		all := map[*process]bool{}
		for i := range 3 {
			p := newProcess(b, spec{Name: fmt.Sprint("instance ", i), Queue: q, Exclusive: e.exclusive, Heartbeat: 5 * time.Second, Task: 20 * time.Millisecond})
			paths = append(paths, p.spec.Record)
			all[p] = true
			go func() {
				for range p.lines {
					began <- p
				}
			}()
		}
		next := func(limit time.Duration) *process {
			t.Helper()
			select {
			case p := <-began:
				return p
			case <-time.After(limit):
				t.Fatalf("nobody works within %v", limit)
			}
			return nil
		}
		for active := next(30 * time.Second); ; {
			for range 100 {
				if p := next(30 * time.Second); p != active {
					t.Fatalf("%s works beside %s", p.Name, active.Name)
				}
			}
			if delete(all, active); len(all) == 0 {
				active.signal(syscall.SIGTERM)
				record.InstanceStopping(active.Name)
				active.wait()
				break
			}
			killed := time.Now()
			active.kill(record)
			for dead := active; active == dead; {
				active = next(failover)
			}
			t.Logf("another works %v after the kill", time.Since(killed).Round(time.Millisecond))
		}
		judgeFiles(b, orderaudit.Options{AckDelay: time.Second, Incomplete: true}, record, paths...)
	})
}

// R2.03: the queue must have been created as it is asked for; a difference ends Start with an error that names the argument, and the broker
// itself refuses to change it.
func TestR2_03_AQueueThatIsNotAsAskedForIsRefused(t *testing.T) {
	brokertest.OnKindsAtOnce(t, func(t *testing.T, kind string) {
		b := brokertest.New(t)
		plain, single := b.Queue(amqp.Table{amqp.QueueTypeArg: kind}), b.Queue(brokertest.Single(kind))
		b.Numbered(plain, 1)
		b.Numbered(single, 1)
		start := func(queue string, f rabbitmq.Factory) error {
			f.URL = b.URL
			m, err := keyseq.NewSequenceManager(queue, &f, keyseq.ListenerFuncs{Task: func(context.Context, *keyseq.Delivery) error {
				t.Errorf("a task began on queue %q", queue)
				return nil
			}}, keyseq.KeyExtractorFunc(func(*keyseq.Message) (string, error) { return "one", nil }), func(c *keyseq.Config) { c.SingleActiveConsumer = true })
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = m.Shutdown(b.Bounded(10 * time.Second)) }()
			return m.Start(b.Bounded(20 * time.Second))
		}
		if err := start(plain, rabbitmq.Factory{}); !errors.Is(err, jms.ErrConfig) || !strings.Contains(err.Error(), "x-single-active-consumer") {
			t.Errorf("Start on a queue without the argument = %v, want ErrConfig that names it", err)
		}
		if err := start(single, rabbitmq.Factory{Arguments: map[string]any{"x-max-length": 10}}); !errors.Is(err, jms.ErrConfig) || !strings.Contains(err.Error(), "x-max-length") {
			t.Errorf("Start with an argument that the queue has not = %v, want ErrConfig that names it", err)
		}
		ch, err := b.Conn.Channel()
		if err != nil {
			t.Fatal(err)
		}
		if _, err = ch.QueueDeclare(single, true, false, false, false, amqp.Table{amqp.QueueTypeArg: kind}); err == nil || !strings.Contains(err.Error(), "x-single-active-consumer") {
			t.Errorf("declaring the queue anew without the argument = %v, want the broker's refusal", err)
		}
	})
}

// R2.04: an instance that waits stays connected and idle: nothing is delivered to it, and it has no session but the one that waits.
func TestR2_04_AStandbyIsIdle(t *testing.T) {
	onElections(t, func(t *testing.T, e election) {
		b := brokertest.New(t)
		q := b.Queue(e.arguments)
		record := orderaudit.NewRecorder()
		active := newInstance(b, "active", q, record, e.factory(b.URL), nil, nil)
		standby := newInstance(b, "standby", q, record, e.factory(b.URL), func(context.Context, *keyseq.Delivery) error {
			t.Error("the standby runs a task")
			return nil
		}, nil)
		active.load(10, 1, 10)
		active.start()
		active.until(active.sent)
		ctx, cancel := context.WithCancel(t.Context())
		started := make(chan error, 1)
		go func() { started <- standby.manager.Start(ctx) }() // where there is an election it waits for the role
		want := keyseq.StateUnconfirmed
		if e.exclusive {
			want = keyseq.StateStandby
		}
		b.Eventually("the standby waits", func() bool { return standby.manager.State() == want })
		active.load(10, 11, 110)
		active.until(active.sent)
		s := standby.manager.Snapshot()
		if s.State != want || s.Received != 0 || s.InFlight > 1 || s.Sessions > 1 || e.exclusive && s.Sessions > 0 {
			t.Errorf("the standby is %v, has received %d, has %d places taken and %d sessions; want %v and nothing but the place and the session of the Receive that waits", s.State, s.Received, s.InFlight, s.Sessions, want)
		}
		cancel()
		<-started
		standby.shutdown()
		active.judge(orderaudit.Options{})
	})
}

// R2.05, R2.20: the TCP connection drops in the middle of a task: its context ends, work goes on by itself, nothing is lost, and
// what comes again is marked.
func TestR2_05_TheConnectionDropsInATask(t *testing.T) {
	onElections(t, func(t *testing.T, e election) {
		b := brokertest.New(t)
		proxy, err := faultproxy.New(hostOf(b.URL))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(proxy.Close)
		running := make(chan struct{})
		var once sync.Once
		var cut atomic.Pointer[keyseq.Delivery]
		r := newInstance(b, "manager", b.Queue(e.arguments), orderaudit.NewRecorder(), e.factory(strings.Replace(b.URL, hostOf(b.URL), proxy.Addr(), 1)),
			func(ctx context.Context, d *keyseq.Delivery) (err error) {
				if first := cut.Load(); first != nil && bytes.Equal(first.Body, d.Body) && !d.Redelivered {
					t.Error("the message of the task that was cut comes again, and is not marked as redelivered")
				}
				once.Do(func() {
					cut.Store(d)
					close(running)
					select {
					case <-ctx.Done():
						err = context.Cause(ctx)
					case <-time.After(10 * time.Second):
						t.Error("the context of a task still stands 10 s after its connection was cut")
					}
					if !errors.Is(err, jms.ErrConnectionLost) {
						t.Errorf("the task's context ended with %v, want ErrConnectionLost", err)
					}
				})
				return err
			}, nil)
		r.load(20, 1, 20)
		r.start()
		<-running
		loss := r.record.Loss("manager", "the link is cut in a task", 0)
		proxy.Cut()
		r.until(r.sent)
		loss.Done()
		r.judge(orderaudit.Options{AckDelay: time.Second})
	})
}

// R2.05: an instance whose machine stands still is replaced when the broker has missed its heartbeats. When it goes on it begins and settles nothing.
func TestR2_05_AFrozenInstanceIsReplaced(t *testing.T) {
	onElections(t, func(t *testing.T, e election) {
		b := brokertest.New(t)
		q := b.Queue(e.arguments)
		record, path := openRecord(b)
		producer := &run{Bench: b, queue: q, record: record}
		producer.load(3, 1, 5)
		p := newProcess(b, spec{Name: "frozen", Queue: q, Exclusive: e.exclusive, Heartbeat: time.Second, Hold: true})
		for range 3 {
			p.task()
		}
		next := newInstance(b, "next", q, record, e.factory(b.URL), nil, nil)
		loss := record.Loss("frozen", "SIGSTOP", 0)
		p.signal(syscall.SIGSTOP)
		began := time.Now()
		next.start()
		next.until(producer.sent)
		took := time.Since(began)
		t.Logf("all is done %v after the freeze, at a heartbeat of 1 s", took.Round(time.Millisecond))
		if took > 15*time.Second { // three heartbeats, and a busy machine
			t.Errorf("all is done %v after the freeze, at a heartbeat of 1 s", took)
		}
		p.signal(syscall.SIGCONT)
		select {
		case line := <-p.lines:
			t.Errorf("the instance that was frozen has begun message %s", line)
		case <-time.After(time.Second): // it has time for what it must not do
		}
		p.signal(syscall.SIGTERM)
		p.wait()
		loss.Done()
		next.shutdown()
		judgeFiles(b, orderaudit.Options{}, record, path, p.Record)
	})
}

// inherit lets a process hold k messages of one key, kills it, and gives what the next instance is given.
func inherit(t *testing.T, e election, k int64) (numbers []int64, flagged int) {
	b := brokertest.New(t)
	q := b.Queue(e.arguments)
	record, path := openRecord(b)
	producer := &run{Bench: b, queue: q, record: record}
	producer.load(1, 1, k)
	p := newProcess(b, spec{Name: "first", Queue: q, Exclusive: e.exclusive, Heartbeat: 5 * time.Second, Hold: true})
	p.task()
	b.Eventually("all messages are with the first instance", func() bool { return b.Count(q) == 0 })
	next := newInstance(b, "next", q, record, e.factory(b.URL), func(_ context.Context, d *keyseq.Delivery) error {
		numbers = append(numbers, number(d)) // one key: never two at once
		if d.Redelivered {
			flagged++
		}
		return nil
	}, nil)
	started := make(chan error, 1)
	go func() { started <- next.manager.Start(next.Bounded(30 * time.Second)) }()
	p.kill(record)
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	next.until(int(k))
	next.shutdown()
	judgeFiles(b, orderaudit.Options{}, record, path, p.Record)
	return numbers, flagged
}

// R2.06: what a dead instance had read and not settled comes to the next one, all of it, in order, and marked as redelivered.
func TestR2_06_WhatADeadInstanceHeldComesInOrder(t *testing.T) {
	onElections(t, func(t *testing.T, e election) {
		const k = 200
		numbers, flagged := inherit(t, e, k)
		if len(numbers) != k || !slices.IsSorted(numbers) || flagged != k {
			t.Errorf("the next instance was given %v, %d of them marked; want 1 to %d, all marked", numbers, flagged, k)
		}
	})
}

// T6: an instance that holds five messages of a key dies, and the next handles 1 to 5 in order. A reader that gives one message back
// alone, as other consumers do, gets another order from this broker, and the order checker reports it.
func TestT06_ADeadInstancesMessagesAreNotRotated(t *testing.T) {
	onElections(t, func(t *testing.T, e election) {
		if numbers, _ := inherit(t, e, 5); !slices.Equal(numbers, []int64{1, 2, 3, 4, 5}) {
			t.Errorf("the next instance handled %v, want 1 to 5", numbers)
		}
		b := brokertest.New(t)
		q := b.Queue(e.arguments)
		ch, err := b.Conn.Channel()
		if err != nil {
			t.Fatal(err)
		}
		if err := ch.Qos(5, 0, false); err != nil {
			t.Fatal(err)
		}
		careless := &run{Bench: b, queue: q, record: orderaudit.NewRecorder()}
		careless.load(1, 1, 5)
		deliveries, err := ch.Consume(q, "", false, e.exclusive, false, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 6 {
			d := <-deliveries
			_, digits, _ := strings.Cut(strings.Fields(string(d.Body))[0], ".")
			n, err := strconv.ParseInt(digits, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			a := careless.record.Start("careless", "k0", n, 0)
			if i == 0 {
				err = d.Nack(false, true)
				a.End(orderaudit.GivenBack)
			} else {
				err = d.Ack(false)
				a.End(orderaudit.Settled)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		verdict := careless.record.History().Check(orderaudit.Options{})
		if !slices.ContainsFunc(verdict.Violations, func(v orderaudit.Violation) bool { return v.Rule == orderaudit.G1 }) {
			t.Errorf("the checker says of a reader that gives back alone: %v; want a violation of G1", verdict)
		}
	})
}

// T8: 500 messages, random pauses, two receivers that hand the role to each other: each key in order.
func TestT08_TwoReceiversAndRandomPauses(t *testing.T) {
	onElections(t, func(t *testing.T, e election) {
		b := brokertest.New(t)
		q := b.Queue(e.arguments)
		record := orderaudit.NewRecorder()
		var instances []*run
		done := make(chan struct{}, 1000)
		for _, name := range []string{"A", "B"} {
			r := newInstance(b, name, q, record, e.factory(b.URL), func(context.Context, *keyseq.Delivery) error {
				time.Sleep(rand.N(10 * time.Millisecond))
				return nil
			}, func(c *keyseq.Config) {
				c.Workers, c.MaxInFlight = 10, 50
				c.Events = append(c.Events, keyseq.Events{Committed: func(keyseq.MessageEvent) { done <- struct{}{} }})
			})
			instances = append(instances, r)
		}
		instances[0].load(25, 1, 20)
		var starts sync.WaitGroup
		var ending atomic.Bool
		begin := func(r *run) {
			starts.Go(func() { // where there is an election it waits for the role
				if err := r.manager.Start(r.Bounded(time.Minute)); err != nil && !ending.Load() {
					t.Errorf("Start: %v", err)
				}
			})
		}
		begin(instances[0])
		begin(instances[1])
		for n := 1; n <= 500; n++ {
			select {
			case <-done:
			case <-time.After(30 * time.Second):
				t.Fatalf("nothing moves after %d messages", n-1)
			}
			if n%100 == 0 && n < 500 {
				for i, r := range instances {
					if r.manager.State() == keyseq.StateActive {
						r.record.InstanceStopping(r.consumer.Instance)
						if err := r.manager.Stop(b.Bounded(20 * time.Second)); err != nil {
							t.Fatal(err)
						}
						b.Eventually("the other has taken over", func() bool { return instances[1-i].manager.State() == keyseq.StateActive })
						begin(r)
						break
					}
				}
			}
		}
		if instances[0].consumer.Gone.Load() == 0 || instances[1].consumer.Gone.Load() == 0 {
			t.Error("one of the two has done everything")
		}
		ending.Store(true)
		instances[1].shutdown()
		instances[0].judge(orderaudit.Options{})
		starts.Wait()
	})
}
