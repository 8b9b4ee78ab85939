// Command keyseq-model explores the model of the give-back rule and prints what it found: for every scenario the number
// of states and the verdict, for every dropped clause the shortest way in which a guarantee breaks.
//
//	go run ./internal/model/cmd/keyseq-model [-traces=false] [-walk 1s] [-only text]
//
// It ends with status 1 when a scenario shows anything but what is expected of it.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/keyseq/keyseq/internal/model"
)

func main() {
	traces := flag.Bool("traces", true, "print the shortest counterexamples")
	walk := flag.Duration("walk", time.Second, "random walks in each model that is too large to explore; 0: none")
	seed := flag.Int64("seed", 1, "of the random walks")
	limit := flag.Int("limit", 6_000_000, "most states of one exploration; reaching it is a failure")
	only := flag.String("only", "", "run only what has this text in its name")
	flag.Parse()

	started := time.Now()
	total, failed := 0, 0
	for _, part := range []struct {
		title string
		list  []model.Scenario
	}{
		{"The rule, all clauses kept", model.RuleScenarios()},
		{"Counterexamples A to L", model.TraceScenarios()},
		{"The other clauses", model.ClauseScenarios()},
		{"Extensions", model.ExtensionScenarios()},
	} {
		fmt.Printf("\n%s\n", part.title)
		for _, s := range part.list {
			if !strings.Contains(s.Name, *only) {
				continue
			}
			at := time.Now()
			r := s.Run(*limit)
			total += r.States
			if !report(&s, &r, time.Since(at), *traces) {
				failed++
			}
			runtime.GC() // the graph of the last one is large
		}
	}
	if *walk > 0 {
		fmt.Printf("\nRandom walks (they prove nothing)\n")
		for i, c := range model.WalkConfigs() {
			if !strings.Contains(c.Name, *only) {
				continue
			}
			w := c.WalkFor(*seed+int64(i), 5000, *walk)
			fmt.Printf("%-34s standby=%-5v delay=%-5v %7d walks %9d steps, %d settled all %s\n",
				c.Name, c.Standby, c.ReturnDelay, w.Walks, w.Steps, w.Settled, w.Violation)
			if w.Violation != "" || w.Settled < w.Walks {
				failed++
				printTrace(w.Trace)
			}
		}
	}
	fmt.Printf("\n%d states in %.1f s, %d not as expected\n", total, time.Since(started).Seconds(), failed)
	if failed > 0 {
		os.Exit(1)
	}
}

// report prints one scenario and says whether it came out as expected.
func report(s *model.Scenario, r *model.Result, d time.Duration, traces bool) bool {
	mark := "ok  "
	if !s.Confirmed(r) {
		mark = "FAIL"
	}
	dropped := ""
	if x := model.AllClauses &^ s.Clauses; x != 0 {
		dropped = "without " + x.String()
	}
	fmt.Printf("%s %-58s %8d states %-8s %5.1f s %s\n", mark, s.Name, r.States, r.Outcome(), d.Seconds(), dropped)
	if r.Truncated {
		fmt.Println("     the limit of states was reached: nothing is proved")
	}
	if s.Want == model.Holds && mark == "ok  " || !traces && mark == "ok  " {
		return mark == "ok  "
	}
	fmt.Printf("     %s\n", s.About)
	switch r.Outcome() {
	case model.Breaks:
		printTrace(r.Trace)
		fmt.Printf("       => %s (%d events)\n", r.Violation, len(r.Trace))
	case model.Sticks:
		printTrace(r.StuckTrace)
		fmt.Printf("       => from here not all can be settled any more (%d such states)\n", r.Stuck)
	case model.GoesRound:
		printTrace(r.LivelockTrace)
		fmt.Println("       and then for ever")
		printTrace(r.Cycle)
	}
	return mark == "ok  "
}

func printTrace(steps []model.Step) {
	for i, s := range steps {
		fmt.Printf("     %3d %s\n", i+1, s)
	}
}
