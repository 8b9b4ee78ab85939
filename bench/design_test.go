package bench

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What is compared does what it says: all messages, never more workers than allowed, and those that keep an order keep it.
func TestDesigns(t *testing.T) {
	loads := Loads()
	for _, d := range Designs() {
		for _, l := range loads {
			var done, running atomic.Int64
			var broken atomic.Bool
			var mu sync.Mutex
			last, busy := map[string]int{}, map[string]bool{}
			const n = 5000
			d.Run(l.Messages, n, workers, func(m *Message) {
				if running.Add(1) > workers {
					t.Errorf("%s: more than %d at once", d.Name, workers)
				}
				mu.Lock()
				if busy[m.Key] || m.Number < last[m.Key] {
					broken.Store(true)
				}
				last[m.Key], busy[m.Key] = m.Number, true
				mu.Unlock()
				done.Add(1)
				mu.Lock()
				busy[m.Key] = false
				mu.Unlock()
				running.Add(-1)
			})
			if done.Load() != n {
				t.Errorf("%s, %s: %d messages were done, want %d", d.Name, l.Name, done.Load(), n)
			}
			if d.Ordered && broken.Load() {
				t.Errorf("%s, %s: the order of a key was broken", d.Name, l.Name)
			}
		}
	}
}

// The largest published test in virtual time: how much of the ideal each design reaches with 100 workers that the window or the hashing leaves
// idle. The table of docs/benchmarks.md comes from here: go test -run Efficiency -v
func TestEfficiency(t *testing.T) {
	const keys, each, task = 480, 24, 250 * time.Millisecond
	least := map[string][2]float64{"keyseq": {0.97, 1}, "errgroup": {1, 1}, "conc": {1, 1}}
	most := map[string][2]float64{"seed": {0.10, 1}, "hashed": {0.45, 0.60}}
	for _, d := range Designs() {
		var efficiency [2]float64
		for i, load := range [][]Message{Grouped(keys, each), Interleaved(keys, each)} {
			synctest.Test(t, func(*testing.T) {
				began := time.Now()
				d.Run(load, len(load), workers, func(*Message) { time.Sleep(task) })
				efficiency[i] = float64((keys*each+workers-1)/workers*task) / float64(time.Since(began))
			})
		}
		t.Logf("%-10s grouped %.3f  interleaved %.3f", d.Name, efficiency[0], efficiency[1])
		for i, name := range []string{"grouped", "interleaved"} {
			if l, ok := least[d.Name]; ok && efficiency[i] < l[i] {
				t.Errorf("%s, %s: efficiency %.3f, want at least %.2f", d.Name, name, efficiency[i], l[i])
			}
			if m, ok := most[d.Name]; ok && efficiency[i] > m[i] {
				t.Errorf("%s, %s: efficiency %.3f, want at most %.2f: it is not what it was", d.Name, name, efficiency[i], m[i])
			}
		}
	}
}

// A message costs at most a quarter of the seed's design and half of an errgroup that keeps no order, in CPU time of the same run: the least
// of three rounds, for neighbours disturb caches too.
func TestRatios(t *testing.T) {
	if cpuTime() == 0 {
		t.Skip("this system does not tell the CPU time of a process")
	}
	if raceEnabled {
		t.Skip("the race detector's own cost would be compared")
	}
	for _, l := range Loads() {
		best := map[string]time.Duration{}
		for range 3 {
			for _, d := range Designs() {
				before := cpuTime()
				d.Run(l.Messages, 100_000, workers, func(*Message) {})
				if took := cpuTime() - before; best[d.Name] == 0 || took < best[d.Name] {
					best[d.Name] = took
				}
			}
		}
		seed, group := float64(best["keyseq"])/float64(best["seed"]), float64(best["keyseq"])/float64(best["errgroup"])
		t.Logf("%-8s %.2f of the seed's design, %.2f of errgroup", l.Name, seed, group)
		if seed > 0.25 || group > 0.5 {
			t.Errorf("%s: %.2f of the seed's design and %.2f of errgroup, want 0.25 and 0.50", l.Name, seed, group)
		}
	}
}
