package simulation

import (
	"flag"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

var (
	oneSeed = flag.Uint64("seed", 0, "replay this seed in TestSeed")
	seeds   = flag.Int("seeds", 300, "how many seeds TestSimulation runs")
	ties    = flag.Int("ties", 300, "how many seeds TestTraces runs")
	first   = flag.Uint64("first", 1, "the first of them")
	soak    = flag.Duration("soak", 0, "TestSoak runs seeds for so long")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// play runs a schedule in a bubble of its own. text is what was logged.
func play(t *testing.T, s schedule) (problem, text string) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, s)
		problem = w.run()
		text = w.logs.String()
		if problem != "" {
			w.end()
		}
	})
	return problem, text
}

// check runs a seed and, if it fails, looks for the fewest steps that still do.
func check(t *testing.T, seed uint64, verbose bool) bool {
	s := draw(seed)
	problem, text := play(t, s)
	if problem == "" {
		if verbose {
			t.Logf("%v\n%s", s, text)
		}
		return true
	}
	s, problem, text = shrink(t, s, problem, text)
	t.Errorf("%s\n%s\n%v\nreplay: go test ./internal/simulation -run TestSeed -seed %d -v", text, problem, s, seed)
	return false
}

// shrink leaves out steps as long as the run still fails. Goroutines interleave as they like, so each try is made a few times.
func shrink(t *testing.T, s schedule, problem, text string) (schedule, string, string) {
	for i := 0; i < len(s.steps); {
		less := s
		less.steps = append(append([]step(nil), s.steps[:i]...), s.steps[i+1:]...)
		failed := false
		for range 3 {
			if p, l := play(t, less); p != "" {
				s, problem, text, failed = less, p, l, true
				break
			}
		}
		if !failed {
			i++
		}
	}
	return s, problem, text
}

func TestSimulation(t *testing.T) {
	for i := range *seeds {
		if !check(t, *first+uint64(i), false) {
			return
		}
	}
}

func TestSeed(t *testing.T) {
	if *oneSeed == 0 {
		t.Skip("name a seed with -seed")
	}
	check(t, *oneSeed, true)
}

func TestSoak(t *testing.T) {
	if *soak == 0 {
		t.Skip("say how long with -soak 10m")
	}
	begin := time.Now()
	n := 0
	for seed := uint64(begin.UnixNano()); time.Since(begin) < *soak; seed++ {
		if !check(t, seed, false) {
			break
		}
		n++
	}
	t.Logf("%d seeds in %v, %.0f an hour", n, time.Since(begin).Round(time.Second), float64(n)/time.Since(begin).Hours())
}
