// Command keyseq-mutants plants the faults of testdata/mutants, one at a time, and runs the test that each names; it fails if one survives.
// With -random it draws faults from the source for so long, and runs short tests of the whole on each.
//
//	go run ./internal/mutants/cmd/keyseq-mutants
//	go run ./internal/mutants/cmd/keyseq-mutants -random 10m
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/keyseq/keyseq/internal/mutants"
)

func main() {
	only := flag.String("only", "", "run only the mutants whose name or row has this text")
	random := flag.Duration("random", 0, "draw faults from the source for so long instead")
	seed := flag.Uint64("seed", 1, "of the draw")
	side := flag.Int("parallel", 2, "how many run side by side")
	flag.Parse()
	var failed int
	var err error
	if *random > 0 {
		failed, err = drawn(*random, *seed, *side)
	} else {
		failed, err = named(*only, *side)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if failed > 0 {
		os.Exit(1)
	}
}

// named runs the mutants of testdata/mutants, each with its test.
func named(only string, side int) (failed int, err error) {
	all, err := mutants.Load("testdata/mutants")
	if err != nil {
		return 0, err
	}
	all = slices.DeleteFunc(all, func(m mutants.Mutant) bool {
		return only != "" && !strings.Contains(m.Name, only) && m.Row != only
	})
	if err := unchanged(all); err != nil {
		return 0, err
	}
	var mu sync.Mutex
	counts := map[mutants.Outcome]int{}
	begin := time.Now()
	each(side, len(all), func(i int) bool {
		m := all[i]
		changed, why := m.Apply(".")
		outcome, text := mutants.Invalid, ""
		if why == nil {
			outcome, text, why = mutants.Run(context.Background(), ".", changed, "-timeout", "60s", "-run", "^"+m.Test+"$", m.Pkg)
		}
		mu.Lock()
		defer mu.Unlock()
		counts[outcome]++
		fmt.Printf("%-8v %-4s %-60s %s\n", outcome, m.Row, m.Test, m.Breaks)
		if why != nil {
			fmt.Println("        ", why)
		}
		if outcome == mutants.Invalid && text != "" {
			fmt.Println(text)
		}
		return true
	})
	fmt.Printf("%d caught, %d survived, %d invalid, in %v\n", counts[mutants.Caught], counts[mutants.Survived], counts[mutants.Invalid], time.Since(begin).Round(time.Second))
	return counts[mutants.Survived] + counts[mutants.Invalid], nil
}

// unchanged makes sure that the tests pass without a fault: else nothing is caught.
func unchanged(all []mutants.Mutant) error {
	tests := map[string][]string{}
	for _, m := range all {
		tests[m.Pkg] = append(tests[m.Pkg], m.Test)
	}
	for pkg, names := range tests {
		outcome, text, err := mutants.Run(context.Background(), ".", nil, "-timeout", "5m", "-run", "^("+strings.Join(names, "|")+")$", pkg)
		if err != nil || outcome != mutants.Survived {
			return errors.Join(fmt.Errorf("%s: without any fault the tests do not pass:\n%s", pkg, text), err)
		}
	}
	return nil
}

// drawn runs random mutants. Survivors are printed, to be explained; they are no failure.
func drawn(length time.Duration, seed uint64, side int) (failed int, err error) {
	all, err := mutants.Random(".", "sequencer.go", "run.go", "reader.go", "admit.go", "attempt.go", "settlement.go", "giveback.go", "drain.go",
		"serve.go", "wish.go", "closing.go", "kept.go", "lifecycle.go",
		"sessionpool.go", "opening.go", "internal/keyqueue/block.go", "internal/keyqueue/dispatcher.go", "internal/keyqueue/key.go", "internal/keyqueue/pause.go",
		"internal/keyqueue/room.go", "internal/keyqueue/round.go", "internal/keyqueue/table.go", "internal/keyqueue/worker.go")
	if err != nil {
		return 0, err
	}
	r := rand.New(rand.NewPCG(seed, 0))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var mu sync.Mutex
	counts := map[mutants.Outcome]int{}
	begin := time.Now()
	each(side, len(all), func(i int) bool {
		if time.Since(begin) > length {
			return false
		}
		outcome, text := judge(all[i])
		mu.Lock()
		defer mu.Unlock()
		counts[outcome]++
		if outcome == mutants.Survived {
			fmt.Printf("%-8v %s %s\n", outcome, all[i].Name, all[i].Breaks)
		} else if outcome == mutants.Invalid && !strings.Contains(text, "build failed") {
			fmt.Println(text)
		}
		return true
	})
	fmt.Printf("%d caught, %d survived (of %d possible), %d do not compile, in %v\n", counts[mutants.Caught], counts[mutants.Survived], len(all), counts[mutants.Invalid], time.Since(begin).Round(time.Second))
	return 0, nil
}

// judge runs the quickest tests first.
func judge(m mutants.Mutant) (mutants.Outcome, string) {
	changed, err := m.Apply(".")
	if err != nil {
		return mutants.Invalid, err.Error()
	}
	for _, args := range [][]string{
		{"-timeout", "40s", "./internal/keyqueue"},
		{"-timeout", "40s", "./internal/simulation", "-seeds", "100", "-ties", "100"},
		{"-timeout", "90s", "."},
	} {
		outcome, text, err := mutants.Run(context.Background(), ".", changed, args...)
		if err != nil {
			return outcome, err.Error()
		}
		if outcome != mutants.Survived {
			return outcome, text
		}
	}
	return mutants.Survived, ""
}

// each calls f for 0 to n-1, some side by side, until it says no.
func each(side, n int, f func(i int) bool) {
	work := make(chan int)
	stop := make(chan struct{})
	var once sync.Once
	var all sync.WaitGroup
	for range side {
		all.Go(func() {
			for i := range work {
				if !f(i) {
					once.Do(func() { close(stop) })
				}
			}
		})
	}
feed:
	for i := range n {
		select {
		case work <- i:
		case <-stop:
			break feed
		}
	}
	close(work)
	all.Wait()
}
