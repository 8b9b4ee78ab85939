package keyqueue_test

import (
	"os"
	"runtime"
	"strconv"
	"testing"

	"github.com/keyseq/keyseq/internal/keyqueue"
)

type bare = keyqueue.Dispatcher[*message, int]

func newBare() *bare {
	d := keyqueue.New(100, func(*keyqueue.Worker[*message, int], *keyqueue.Key[*message], **message) keyqueue.Turn {
		return keyqueue.Done()
	})
	d.SetLimits(keyqueue.Limits{Items: 1 << 30, Bytes: 1 << 60})
	return d
}

// heap is what is in use after a collection.
func heap() int64 {
	var s runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

// A waiting item costs at most 32 bytes and a live key at most 160, its first item and its share of the table included; neither a goroutine.
// The item itself, a pointer here, is counted, what it points to is not.
func TestMemoryOfWhatWaits(t *testing.T) {
	const n = 200_000
	m, keys := &message{}, numbered(n)
	for _, c := range []struct {
		name string
		key  func(i int) string
		most float64
	}{
		{"item", func(int) string { return keys[0] }, 32},
		{"key", func(i int) string { return keys[i] }, 160},
	} {
		d := newBare()
		d.Halt()
		before, goroutines := heap(), runtime.NumGoroutine()
		for i := range n {
			d.Reserve()
			d.Add(c.key(i), m, 1)
		}
		each := float64(heap()-before) / n
		if each > c.most || runtime.NumGoroutine() > goroutines {
			t.Errorf("a waiting %s costs %.1f bytes, want at most %.0f; %d goroutines more", c.name, each, c.most, runtime.NumGoroutine()-goroutines)
		}
		t.Logf("a waiting %s costs %.1f bytes", c.name, each)
		d.DropAll()
		<-d.Close()
	}
	runtime.KeepAlive(keys)
}

// Keys that have come and gone leave nothing behind, however many there were. KEYSEQ_SOAK: ten million instead of one.
func TestKeysThatAreGoneCostNothing(t *testing.T) {
	n := 1_000_000
	if os.Getenv("KEYSEQ_SOAK") != "" {
		n *= 10
	}
	d := newBare()
	d.SetLimits(keyqueue.Limits{Items: 8192, Bytes: 1 << 60})
	m, name := &message{}, make([]byte, 0, 32)
	pass := func(from, to int) {
		for i := from; i < to; i++ {
			for !d.Reserve() {
				<-d.Room()
			}
			name = strconv.AppendInt(append(name[:0], "order-"...), int64(i), 10)
			d.Add(string(name), m, 1)
		}
		for d.Stats().Held > 0 {
			<-d.Quiet()
		}
	}
	pass(0, n/10)
	before := heap()
	pass(n/10, n)
	if grown := heap() - before; grown > 2<<20 {
		t.Errorf("%d keys have left %d bytes behind", n, grown)
	} else {
		t.Logf("%d keys have left %d bytes behind", n, grown)
	}
	if s := d.Stats(); s.Keys != 0 {
		t.Errorf("%d keys are left", s.Keys)
	}
	<-d.Close()
}

// A burst far beyond the usual number of keys is not paid for for ever.
func TestABurstOfKeysIsGivenBack(t *testing.T) {
	d := newBare()
	before := heap()
	d.Halt()
	for _, k := range numbered(300_000) {
		d.Reserve()
		d.Add(k, nil, 1)
	}
	d.DropAll()
	if grown := heap() - before; grown > 1<<20 {
		t.Errorf("a burst of 300,000 keys has left %d bytes", grown)
	}
	<-d.Close()
}

// In the steady state an item costs no allocation, whether its key is new or not.
func TestNoAllocationAnItem(t *testing.T) {
	keys := numbered(1 << 16)
	for _, spread := range []int{1, 100, len(keys)} {
		done := make(chan struct{})
		d := keyqueue.New(4, func(*keyqueue.Worker[*message, int], *keyqueue.Key[*message], **message) keyqueue.Turn {
			done <- struct{}{}
			return keyqueue.Done()
		})
		d.SetLimits(keyqueue.Limits{Items: 100, Bytes: 1 << 60})
		m, i := &message{}, 0
		if n := testing.AllocsPerRun(5000, func() {
			i++
			d.Reserve()
			d.Add(keys[i%spread], m, 1)
			<-done
		}); n != 0 {
			t.Errorf("%v allocations an item with %d keys, want none", n, spread)
		}
		<-d.Close()
	}
}
