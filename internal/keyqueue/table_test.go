package keyqueue

import (
	"fmt"
	"hash/maphash"
	"sync"
	"testing"
)

// A lone key is not found, not even by who asks for its number and its name.
func TestALoneKeyIsNotFound(t *testing.T) {
	var table table[int]
	table.init()
	k := table.alone("a")
	if table.find(k.hash, "a") != nil || table.get(k.hash, "a") == k {
		t.Error("something could join a lone key")
	}
	table.remove(k)
	if table.live != 1 {
		t.Errorf("%d keys are live, want the one that get has made", table.live)
	}
}

// BenchmarkTable is what the table was chosen by: a key comes, gets an item, loses it and goes, beside the same with a Go map.
func BenchmarkTable(b *testing.B) {
	names := make([]string, 1<<16)
	for i := range names {
		names[i] = fmt.Sprintf("order-%08d", i)
	}
	seed := maphash.MakeSeed()
	b.Run("table", func(b *testing.B) {
		var t table[*int]
		t.init()
		for i := range b.N {
			name := names[i&(len(names)-1)]
			k := t.get(maphash.String(seed, name), name)
			t.push(k, nil, 1)
			t.pop(k)
			t.remove(k)
		}
	})
	b.Run("map", func(b *testing.B) {
		var t table[*int] // for the nodes
		keys := map[string]*Key[*int]{}
		k := &Key[*int]{}
		for i := range b.N {
			name := names[i&(len(names)-1)]
			if keys[name] == nil {
				keys[name] = k
			}
			t.push(k, nil, 1)
			t.pop(k)
			delete(keys, name)
		}
	})
}

// BenchmarkFloors is what a design with a goroutine or a wake-up per item cannot go below, and what one lock costs.
func BenchmarkFloors(b *testing.B) {
	b.Run("lock", func(b *testing.B) {
		var mu sync.Mutex
		n := 0
		for range b.N {
			mu.Lock()
			n++
			mu.Unlock()
		}
	})
	b.Run("goroutine", func(b *testing.B) {
		done := make(chan struct{}, 1)
		for range b.N {
			go func() { done <- struct{}{} }()
			<-done
		}
	})
	b.Run("two wakes", func(b *testing.B) {
		there, back := make(chan struct{}, 1), make(chan struct{}, 1)
		go func() {
			for range there {
				back <- struct{}{}
			}
		}()
		for range b.N {
			there <- struct{}{}
			<-back
		}
		close(there)
	})
}
