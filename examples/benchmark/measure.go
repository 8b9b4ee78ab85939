package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/orderaudit"
)

// result is one line of the table, and one element of the JSON output.
type result struct {
	Test       string  `json:"test"`
	Pattern    pattern `json:"pattern"`
	Messages   int     `json:"messages"`
	Workers    int     `json:"workers"`
	TaskMS     float64 `json:"task_ms"` // as asked for
	ElapsedMS  float64 `json:"elapsed_ms"`
	IdealMS    float64 `json:"ideal_ms"` // of tasks as long as they really were
	Efficiency float64 `json:"efficiency"`
	Ordered    bool    `json:"ordered"` // the audit's verdict

	publishedRate, publishedEfficiency float64
}

// measurement is one run of one load.
type measurement struct {
	test     test
	pattern  pattern
	workers  int
	task     time.Duration
	open     opener
	progress io.Writer

	audit  *orderaudit.Recorder
	mu     sync.Mutex
	tasks  int
	lasted time.Duration // all of them together: a sleep is longer than asked for
	left   int
	all    chan struct{}
}

const instance = "benchmark"

func (m *measurement) run(ctx context.Context) (r result, err error) {
	items := m.test.load(m.pattern)
	broker, err := m.open(ctx, items)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, broker.close()) }()
	m.audit, m.left, m.all = orderaudit.NewRecorder(), len(items), make(chan struct{})
	for _, it := range items {
		m.audit.Sent(it.key, it.seq)
	}
	workers := m.workers
	if m.pattern == sequential {
		workers = 1
	}
	manager, err := keyseq.NewSequenceManager(broker.queue, broker.factory, keyseq.ListenerFuncs{Task: m.doTask}, m.extractor(), func(c *keyseq.Config) {
		c.Workers = workers
		c.OnEmptyKey = keyseq.EmptyKeyUnordered
		c.Events = []keyseq.Events{{Committed: m.committed}}
		c.SingleActiveConsumer = broker.singleActive
	})
	if err != nil {
		return r, err
	}
	begin := time.Now()
	if err := manager.Start(ctx); err != nil {
		return r, err
	}
	m.await(ctx, manager, begin, len(items))
	elapsed := time.Since(begin)
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if err := errors.Join(manager.Shutdown(drain), ctx.Err()); err != nil {
		return r, err
	}
	ideal := time.Duration(m.test.ideal(m.pattern, workers)) * m.taskTime()
	return result{
		Test: m.test.name(), Pattern: m.pattern, Messages: len(items), Workers: workers, TaskMS: ms(m.task), ElapsedMS: ms(elapsed), IdealMS: ms(ideal),
		Efficiency: float64(ideal) / float64(elapsed), Ordered: m.audit.History().Check(orderaudit.Options{}).OK(),
		publishedRate: m.test.published[m.pattern], publishedEfficiency: m.test.publishedEfficiency(m.pattern),
	}, nil
}

// extractor takes the key, or none where order is not wanted.
func (m *measurement) extractor() keyseq.KeyExtractor {
	if m.pattern == unordered {
		return keyseq.KeyExtractorFunc(func(*keyseq.Message) (string, error) { return "", nil })
	}
	return keyseq.KeyFromProperty("key")
}

func keyAndSeq(m *keyseq.Message) (string, int64) {
	key, _ := m.Property("key")
	seq, _ := m.Properties["seq"].(int64)
	return key, seq
}

func (m *measurement) doTask(_ context.Context, d *keyseq.Delivery) error {
	key, seq := keyAndSeq(d.Message)
	begin := time.Now()
	a := m.audit.Start(instance, key, seq, d.Attempt)
	time.Sleep(m.task)
	a.Return(orderaudit.Settled)
	lasted := time.Since(begin)
	m.mu.Lock()
	m.tasks, m.lasted = m.tasks+1, m.lasted+lasted
	m.mu.Unlock()
	return nil
}

func (m *measurement) committed(e keyseq.MessageEvent) {
	key, seq := keyAndSeq(e.Delivery.Message)
	m.audit.End(instance, key, seq, orderaudit.Settled)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left--; m.left == 0 {
		close(m.all)
	}
}

// await waits for the last commit and shows how far it is.
func (m *measurement) await(ctx context.Context, manager *keyseq.SequenceManager, begin time.Time, messages int) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	defer fmt.Fprint(m.progress, "\r\x1b[K")
	for {
		select {
		case <-m.all:
			return
		case <-ctx.Done():
			return
		case <-manager.Done():
			return
		case <-tick.C:
			s := manager.Snapshot()
			fmt.Fprintf(m.progress, "\r%8s %-11s %5.1f s: %5d of %d settled, %3d running, %4d in flight ", m.test.name(), m.pattern, time.Since(begin).Seconds(), s.Committed, messages, s.Running, s.InFlight)
		}
	}
}

// taskTime is how long a task lasted, on average: the mean, for a few that overslept keep their workers as busy as the others did.
func (m *measurement) taskTime() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lasted / time.Duration(max(m.tasks, 1))
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
