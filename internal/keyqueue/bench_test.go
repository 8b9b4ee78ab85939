package keyqueue_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/keyseq/keyseq/internal/keyqueue"
)

// message stands for a received message: the smallest item, a pointer to it.
type message struct{}

// wide is an item of the size that the manager keeps by value.
type wide [12]uintptr

// loads are sequences of keys, repeated as often as needed. Each message has a key string of its own, in the order in which they lie in
// memory, as the messages that a client has just read do.
var loads = []struct {
	name string
	keys func() []string
}{
	{"1key", func() []string { return uniform(1) }},
	{"1k", func() []string { return uniform(1000) }},
	{"100k", func() []string { return uniform(100_000) }},
	{"distinct", func() []string { return numbered(1 << 20) }}, // a key has left long before it comes again
	{"zipf", zipf},
}

func numbered(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("order-%08d", i)
	}
	return keys
}

func uniform(n int) []string {
	names, random := numbered(n), rand.New(rand.NewPCG(1, 2))
	keys := make([]string, 1<<18)
	for i := range keys {
		keys[i] = strings.Clone(names[random.IntN(n)])
	}
	return keys
}

func zipf() []string {
	names, random := numbered(100_000), rand.New(rand.NewPCG(1, 2))
	z := rand.NewZipf(random, 1.1, 1, uint64(len(names)-1))
	keys := make([]string, 1<<18)
	for i := range keys {
		keys[i] = strings.Clone(names[z.Uint64()])
	}
	return keys
}

// BenchmarkDispatch is one item through an empty task, admitted as the manager does it: a place is reserved first, and the window is 4,000 of
// 100 workers. cpu-ns/op counts the time of all cores, which a busy machine does not change.
func BenchmarkDispatch(b *testing.B) {
	for _, l := range loads {
		keys := l.keys()
		b.Run(l.name, func(b *testing.B) {
			items := make([]message, len(keys))
			benchmarkDispatch(b, keys, func(i int) *message { return &items[i] })
		})
	}
	b.Run("alone", func(b *testing.B) { // without keys: each item has one of its own, that nothing joins
		benchmarkAdding(b, func(d *keyqueue.Dispatcher[*message, int], _ int) { d.AddAlone("", nil, 100) })
	})
	b.Run("wide/1k", func(b *testing.B) {
		benchmarkDispatch(b, uniform(1000), func(int) wide { return wide{} })
	})
}

func benchmarkDispatch[T any](b *testing.B, keys []string, item func(int) T) {
	benchmarkAdding(b, func(d *keyqueue.Dispatcher[T, int], i int) {
		at := i & (len(keys) - 1)
		d.Add(keys[at], item(at), 100)
	})
}

func benchmarkAdding[T any](b *testing.B, add func(d *keyqueue.Dispatcher[T, int], i int)) {
	done, all := atomic.Int64{}, make(chan struct{})
	d := keyqueue.New(100, func(*keyqueue.Worker[T, int], *keyqueue.Key[T], *T) keyqueue.Turn {
		if done.Add(1) == int64(b.N) {
			close(all)
		}
		return keyqueue.Done()
	})
	d.SetLimits(keyqueue.Limits{Items: 4000, Bytes: 1 << 40})
	b.ReportAllocs()
	b.ResetTimer()
	before := cpuTime()
	for i := range b.N {
		for !d.Reserve() {
			<-d.Room()
		}
		add(d, i)
	}
	<-all
	b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op")
	b.StopTimer()
	<-d.Close()
}
