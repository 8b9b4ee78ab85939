package keyqueue_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyseq/keyseq/internal/keyqueue"
)

// model says in the simplest words what a dispatcher must do: a map of lists. After each operation the two are compared.
type model struct {
	*bed
	random *rand.Rand
	halted bool

	mu   sync.Mutex
	keys map[string]*modelKey
	ours []*queue // listed: to be given back by us
}

type modelKey struct {
	items                  []int
	running                bool
	until                  time.Time // end of the pause
	blocked, listed, again bool
}

// live is whether the dispatcher has to know the key.
func (k *modelKey) live() bool { return len(k.items) > 0 || k.blocked }

func (k *modelKey) ready() bool {
	return len(k.items) > 0 && !k.running && !k.blocked && !time.Now().Before(k.until)
}

func (m *model) key(name string) *modelKey {
	if m.keys[name] == nil {
		m.keys[name] = &modelKey{}
	}
	return m.keys[name]
}

// turn is what a worker does: it checks that the item may run, takes its time, and ends in one of all ways.
func (m *model) turn(w *worker, _ *queue, i *item) keyqueue.Turn {
	m.mu.Lock()
	k := m.key(i.key)
	if k.running || k.blocked || m.halted || time.Now().Before(k.until) || len(k.items) == 0 || k.items[0] != i.n {
		m.Errorf("%v runs (halted: %t), but its key is %+v", i, m.halted, *k)
	}
	k.running = true
	length := time.Duration(m.random.IntN(3000)) * time.Millisecond
	m.mu.Unlock()
	time.Sleep(length)
	m.mu.Lock()
	defer m.mu.Unlock()
	k.running, k.until = false, time.Time{}
	leave := func() {
		k.again = k.again || k.listed
		k.blocked, k.listed = true, true
	}
	switch p := m.random.IntN(100); {
	case p < 65:
		k.items = k.items[1:]
		return keyqueue.Done()
	case p < 85:
		pause := time.Duration(m.random.IntN(3000)-500) * time.Millisecond
		if !k.blocked {
			k.until = time.Now().Add(pause)
		}
		return keyqueue.Again(pause)
	case p < 90:
		k.items = k.items[1:]
		leave()
		return keyqueue.Left()
	case p < 95:
		leave()
		return keyqueue.Stay()
	case p < 98:
		w.Exit = keyqueue.Done()
		k.items = k.items[1:]
	}
	runtime.Goexit()
	return keyqueue.Done()
}

// step does one operation on both.
func (m *model) step() {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch m.random.IntN(9) {
	case 0, 1, 2, 3:
		for range m.random.IntN(6) {
			name := string(rune('a' + m.random.IntN(12)))
			m.add(name)
			k := m.key(name)
			k.items = append(k.items, m.next[name])
		}
	case 4:
		m.halted = !m.halted
		if m.halted {
			m.Halt()
		} else {
			m.Resume()
		}
	case 5:
		m.block()
	case 6, 7:
		m.giveBack()
	case 8:
		if m.random.IntN(5) == 0 {
			m.dropAll()
		}
	}
}

func (m *model) block() {
	var want []string
	chosen := func(name string) bool { return int(name[0])%3 == len(m.began)%3 }
	for name, k := range m.keys {
		if len(k.items) > 0 && !k.blocked && chosen(name) {
			k.blocked, k.listed, k.until = true, true, time.Time{}
			want = append(want, name)
		}
	}
	slices.Sort(want)
	keys := m.BlockWhere(func(v view) bool { return chosen(v.Name) })
	if got := names(keys); !slices.Equal(got, want) {
		m.Errorf("BlockWhere chose %v, want %v", got, want)
	}
	m.ours = append(m.ours, keys...)
}

func (m *model) giveBack() {
	m.ours = append(m.ours, m.Leaving()...)
	keys := m.ours
	m.ours = nil
	for _, q := range keys {
		k := m.key(q.Name())
		keep := 0
		if k.running {
			keep = 1
		}
		want := slices.Clone(k.items[keep:])
		slices.Reverse(want)
		k.items = k.items[:keep]
		var got []int
		for _, i := range m.TakeBack(q) {
			got = append(got, i.n)
		}
		if !slices.Equal(got, want) {
			m.Errorf("TakeBack of %q gave %v, want %v", q.Name(), got, want)
		}
		m.Returned(len(got))
		name := q.Name() // a released key may be used for another
		released := m.Release(q)
		if released == k.again {
			m.Errorf("Release of %q returned %t, blocked once more: %t", name, released, k.again)
		}
		if !released {
			m.ours = append(m.ours, q)
			k.again = false
			continue
		}
		k.blocked, k.listed = false, false
	}
}

func (m *model) dropAll() {
	var want, got []string
	for name, k := range m.keys {
		keep := 0
		if k.running {
			keep = 1
		}
		for _, n := range k.items[keep:] {
			want = append(want, item{name, n}.String())
		}
		*k = modelKey{items: k.items[:keep], running: k.running}
	}
	got = texts(m.DropAll())
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		m.Errorf("DropAll gave %v, want %v", got, want)
	}
	m.ours = nil
}

func (m *model) locked(f func()) { m.mu.Lock(); defer m.mu.Unlock(); f() }

// compare looks when nothing but time can move.
func (m *model) compare() {
	m.mu.Lock()
	defer m.mu.Unlock()
	var want keyqueue.Stats
	for _, k := range m.keys {
		want.Held += len(k.items)
		switch {
		case k.running:
			want.Running++
		case k.ready():
			want.Ready++
		case len(k.items) > 0 && !k.blocked:
			want.Paused++
		}
		if k.blocked {
			want.Blocked++
		}
		if k.live() {
			want.Keys++
		}
	}
	s := m.Stats()
	got := keyqueue.Stats{Held: s.Held, Running: s.Running, Ready: s.Ready, Paused: s.Paused, Blocked: s.Blocked, Keys: s.Keys}
	if got != want {
		m.Errorf("the dispatcher says %+v, want %+v", got, want)
	}
	if s.Bytes != int64(10*want.Held) {
		m.Errorf("%d bytes for %d items of 10", s.Bytes, want.Held)
	}
	if !m.halted && want.Ready > 0 && want.Running < m.workers {
		m.Errorf("%d keys are ready while %d of %d workers run", want.Ready, want.Running, m.workers)
	}
	m.Each(func(v view) {
		k := m.keys[v.Name]
		if v.Items != len(k.items) || v.Running != k.running || v.Blocked != k.blocked {
			m.Errorf("%q shows %+v, want %+v", v.Name, v, *k)
		}
	})
}

// Random operations with all kinds of ends of a turn. KEYSEQ_SEED repeats one run.
func TestAgainstAModel(t *testing.T) {
	first, runs := uint64(1), uint64(60)
	if s, err := strconv.ParseUint(os.Getenv("KEYSEQ_SEED"), 10, 64); err == nil {
		first, runs = s, 1
	}
	for seed := first; seed < first+runs && !t.Failed(); seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 7))
				m := &model{random: random, keys: map[string]*modelKey{}}
				m.bed = newBed(t, cmp.Or(random.IntN(5), 1), m.turn)
				for range 300 {
					m.step()
					m.wait()
					m.compare()
					if t.Failed() {
						break
					}
					var pause time.Duration
					m.locked(func() { pause = time.Duration(random.IntN(1500)) * time.Millisecond })
					time.Sleep(pause)
					m.wait()
					m.compare()
				}
				m.locked(func() { m.halted = true; m.Halt() })
				<-m.Close()
			})
		})
	}
}
