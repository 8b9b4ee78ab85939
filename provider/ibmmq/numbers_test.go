//go:build mqistandin && numbers

package ibmmq_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ibm-messaging/mq-golang-jms20/jms20subset"
	"github.com/ibm-messaging/mq-golang-jms20/mqjms"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/faulty"
	"github.com/keyseq/keyseq/provider/ibmmq/internal/mqistandin"
)

// These tests measure for some minutes, and are in a build of their own for that:
//
//	go test -tags 'mqistandin numbers' -count=1 -timeout 270s -run TestNumbers -v .

// numbersBench is on a queue manager in this process, which is faster than one behind a socket.
func numbersBench(t *testing.T) *bench {
	mqistandin.Use("")
	t.Cleanup(func() { mqistandin.Use("tcp:") })
	b := newBench(t)
	b.define(b.queue + ":maxdepth=1000000")
	return b
}

// fill puts n messages, each of a key of its own out of many, or in runs.
func (b *bench) fill(n int, key func(i int) int) {
	b.t.Helper()
	mqistandin.Latency(0)
	send := b.sender()
	for from := 0; from < n; from += 500 {
		var out []jms.Outgoing
		for i := from; i < min(from+500, n); i++ {
			out = append(out, jms.Outgoing{Text: true, Body: fmt.Appendf(make([]byte, 0, 1024), "k%d.%d%1000d", key(i), i, 0)})
		}
		if err := send(b.t.Context(), b.queue, out...); err != nil {
			b.t.Fatal(err)
		}
	}
}

// bare is a factory of mq-golang-jms20 alone.
func (b *bench) bare(sessions int) []bareSession {
	b.t.Helper()
	f := b.factory()
	cf := mqjms.ConnectionFactoryImpl{QMName: f.QueueManager, Hostname: "localhost", PortNumber: 1414, ChannelName: f.Channel, UserName: f.User, Password: f.Password}
	all := make([]bareSession, sessions)
	for i := range all {
		ctx, ex := cf.CreateContextWithSessionMode(jms20subset.JMSContextSESSIONTRANSACTED)
		if ex != nil {
			b.t.Fatal(ex)
		}
		b.t.Cleanup(ctx.Close)
		consumer, ex := ctx.CreateConsumer(ctx.CreateQueue(b.queue))
		if ex != nil {
			b.t.Fatal(ex)
		}
		all[i] = bareSession{ctx, consumer}
	}
	return all
}

type bareSession struct {
	ctx      jms20subset.JMSContext
	consumer jms20subset.JMSConsumer
}

func (s bareSession) receive() bool {
	m, ex := s.consumer.Receive(20)
	return ex == nil && m != nil
}

func (s bareSession) commit() { s.ctx.Commit() }

// readingSession also asks jms20 for what a jms.Message has, as a program does that takes its key from a property.
type readingSession struct{ bareSession }

func (s readingSession) receive() bool {
	m, ex := s.consumer.Receive(20)
	if ex != nil || m == nil {
		return false
	}
	text := m.(jms20subset.TextMessage).GetText()
	names, ex := m.GetPropertyNames()
	return ex == nil && text != nil && len(names) == 0 && m.GetJMSMessageID() != "" && m.GetJMSCorrelationID() == "" && m.GetJMSTimestamp() > 0
}

// providers are sessions of this package, without a manager.
func (b *bench) providers(sessions int) []providerSession {
	b.t.Helper()
	conn := b.connect(b.factory(), jms.Subscription{})
	all := make([]providerSession, sessions)
	for i := range all {
		all[i] = providerSession{b.session(conn)}
	}
	return all
}

type providerSession struct{ jms.Session }

func (s providerSession) receive() bool {
	m, err := s.Receive(context.Background())
	return err == nil && m != nil
}

func (s providerSession) commit() { _ = s.Commit(context.Background()) }

// serially is the fastest that keeps the order of receipt: one goroutine receives, and each message is committed on its own session by
// another.
func serially[S interface {
	receive() bool
	commit()
}](sessions []S, n int) {
	free, full := make(chan S, len(sessions)), make(chan S, len(sessions))
	var workers sync.WaitGroup
	for _, s := range sessions {
		free <- s
		workers.Go(func() {
			for s := range full {
				s.commit()
				free <- s
			}
		})
	}
	for range n {
		s := <-free
		for !s.receive() {
		}
		full <- s
	}
	close(full)
	workers.Wait()
}

// parallelBare lets every session receive and commit by itself, without any order.
func parallelBare(sessions []bareSession, n int) {
	var left atomic.Int64
	left.Store(int64(n))
	var all sync.WaitGroup
	for _, s := range sessions {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				if s.receive() {
					s.commit()
				}
			}
		})
	}
	all.Wait()
}

// managed handles n messages with a task that does nothing, and says how long that took and how much was allocated.
func (b *bench) managed(f jms.ConnectionFactory, workers, inFlight, n int, task func()) (time.Duration, float64, keyseq.Snapshot) {
	b.t.Helper()
	var done atomic.Int64
	var first sync.Once
	var began time.Time
	end := make(chan struct{})
	listener := keyseq.ListenerFuncs{Task: func(context.Context, *keyseq.Delivery) error {
		if task != nil {
			task()
		}
		return nil
	}}
	m, err := keyseq.NewSequenceManager(b.queue, f, listener, keyseq.KeyFromBodyBefore("."), func(c *keyseq.Config) {
		c.Workers, c.MaxInFlight = workers, inFlight
		c.Events = append(c.Events, keyseq.Events{
			Received: func(keyseq.MessageEvent) { first.Do(func() { began = time.Now() }) }, // after ReturnDelay
			Committed: func(keyseq.MessageEvent) {
				if done.Add(1) == int64(n) {
					close(end)
				}
			},
		})
	})
	if err != nil {
		b.t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := m.Start(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	<-end
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	snapshot := m.Snapshot()
	if err := m.Shutdown(context.Background()); err != nil {
		b.t.Fatal(err)
	}
	return took, float64(after.TotalAlloc-before.TotalAlloc) / float64(n), snapshot
}

func TestNumbers(t *testing.T) {
	b := numbersBench(t)
	for _, latency := range []time.Duration{0, 500 * time.Microsecond} {
		for _, sessions := range []int{1, 10, 100} {
			n := 20_000
			if latency > 0 {
				n = 3000
			}
			rate := func(took time.Duration) float64 { return float64(n) / took.Seconds() }
			var serial, reading, parallel, provider, manager, bytes, bareBytes float64
			for range 3 { // the best of three: the machine is shared
				bare := b.bare(sessions)
				b.fill(n, func(i int) int { return i })
				mqistandin.Latency(latency)
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				began := time.Now()
				serially(bare, n)
				serial = max(serial, rate(time.Since(began)))
				runtime.ReadMemStats(&after)
				bareBytes = float64(after.TotalAlloc-before.TotalAlloc) / float64(n)

				asking := make([]readingSession, len(bare))
				for i := range bare {
					asking[i] = readingSession{bare[i]}
				}
				b.fill(n, func(i int) int { return i })
				mqistandin.Latency(latency)
				began = time.Now()
				serially(asking, n)
				reading = max(reading, rate(time.Since(began)))

				b.fill(n, func(i int) int { return i })
				mqistandin.Latency(latency)
				began = time.Now()
				parallelBare(bare, n)
				parallel = max(parallel, rate(time.Since(began)))

				own := b.providers(sessions)
				b.fill(n, func(i int) int { return i })
				mqistandin.Latency(latency)
				began = time.Now()
				serially(own, n)
				provider = max(provider, rate(time.Since(began)))

				b.fill(n, func(i int) int { return i })
				mqistandin.Latency(latency)
				var took time.Duration
				took, bytes, _ = b.managed(b.factory(), sessions, sessions, n, nil)
				manager = max(manager, rate(took))
			}
			t.Logf("latency %v, %3d sessions: manager %.0f/s; bare, received serially %.0f/s (ratio %.2f); the same with what a Message has %.0f/s (ratio %.2f); bare, unordered %.0f/s (ratio %.2f); the provider's sessions alone, received serially %.0f/s (ratio %.2f); bytes a message %.0f, bare %.0f",
				latency, sessions, manager, serial, manager/serial, reading, manager/reading, parallel, manager/parallel, provider, manager/provider, bytes, bareBytes)
		}
	}
	mqistandin.Latency(0)
}

// 480 keys with 24 messages each, grouped by key: with a window of 100 a few keys fill it; the window that sizes itself keeps 100 workers busy, if the
// queue manager gives as many connections as that takes, and opens them while it reads.
func TestNumbersGrouped(t *testing.T) {
	b := numbersBench(t)
	const keys, each, workers, work = 480, 24, 100, 10 * time.Millisecond
	grouped, interleaved := func(i int) int { return i / each }, func(i int) int { return i % keys }
	for _, x := range []struct {
		name     string
		key      func(i int) int
		inFlight int
		channels int           // 0: as many as there are by default
		connect  time.Duration // added to each
	}{
		{"grouped, window 100", grouped, 100, 0, 0},
		{"grouped, self-sizing", grouped, 0, 0, 0},
		{"grouped, self-sizing, connects of 10 ms", grouped, 0, 0, 10 * time.Millisecond},
		{"grouped, self-sizing, MaxChannels 500", grouped, 0, 500, 0},
		{"interleaved, self-sizing", interleaved, 0, 0, 0},
		{"interleaved, self-sizing, connects of 10 ms", interleaved, 0, 0, 10 * time.Millisecond},
	} {
		b.fill(keys*each, x.key)
		f := b.factory()
		f.MaxChannels = x.channels
		var factory jms.ConnectionFactory = f
		if x.connect > 0 {
			factory = faulty.New(f, faulty.On(faulty.OpenSession).Delay(x.connect))
		}
		took, _, s := b.managed(factory, workers, x.inFlight, keys*each, func() { time.Sleep(work) })
		ideal := time.Duration(keys*each/workers) * work
		t.Logf("%s: %v, %.0f %% of the ideal %v; %d sessions", x.name, took.Round(time.Millisecond), 100*ideal.Seconds()/took.Seconds(), ideal, s.Sessions)
	}
}
