package orderaudit_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/keyseq/keyseq/orderaudit"
)

// seeds is how many random histories each property is tried on; each takes about a fifth of a millisecond.
const seeds = 500

func hasRule(v orderaudit.Verdict, rules ...orderaudit.Rule) bool {
	return slices.ContainsFunc(v.Violations, func(v orderaudit.Violation) bool { return slices.Contains(rules, v.Rule) })
}

func TestValidHistoriesPass(t *testing.T) {
	for _, async := range []time.Duration{0, 20 * time.Millisecond} {
		var repeats, losses, uncertain int
		for seed := range uint64(seeds) {
			v := generate(seed, true, async).Check(orderaudit.Options{AckDelay: async})
			if !v.OK() {
				t.Fatalf("seed %d, acknowledgements in doubt for %v:\n%v", seed, async, v)
			}
			repeats, losses, uncertain = repeats+v.Repeats, losses+v.Losses, uncertain+v.Uncertain
		}
		if repeats < seeds || losses < seeds || uncertain == 0 {
			t.Errorf("the histories are too tame: %d repeats, %d losses, %d in doubt", repeats, losses, uncertain)
		}
	}
}

// One exchange of two records anywhere in a history without losses is caught exactly when it breaks the order of a key.
func TestAnySwapThatBreaksARuleIsCaught(t *testing.T) {
	broken := 0
	for seed := range uint64(seeds) {
		h := generate(seed, false, 0)
		rng := rand.New(rand.NewPCG(seed, 2))
		for range 10 {
			i, j := rng.IntN(len(h.Records)), rng.IntN(len(h.Records))
			if rng.IntN(2) == 0 { // near ones are the subtle ones
				j = min(i+1+rng.IntN(6), len(h.Records)-1)
			}
			swapped := orderaudit.History{Records: slices.Clone(h.Records)}
			swapped.Records[i], swapped.Records[j] = swapped.Records[j], swapped.Records[i]
			right := strictlyOneAfterAnother(swapped.Records)
			if !right {
				broken++
			}
			if v := swapped.Check(orderaudit.Options{}); v.OK() != right {
				t.Fatalf("seed %d, records %d and %d exchanged: in order: %v, the audit says\n%v\n%v", seed, i, j, right, v, swapped.Records)
			}
		}
	}
	if broken < seeds {
		t.Errorf("only %d exchanges broke anything", broken)
	}
}

// strictlyOneAfterAnother judges a history without losses by itself: the records of a key's attempts must form blocks, each a start
// and then its return and its end, in the order in which the attempts were made.
func strictlyOneAfterAnother(records []orderaudit.Record) bool {
	current := map[string]uint64{}
	left := map[uint64]int{} // records of an attempt still to come
	for _, r := range records {
		if r.ID != 0 {
			left[r.ID]++
		}
	}
	for _, r := range records {
		if r.ID == 0 {
			continue
		}
		if r.Kind == orderaudit.KindStart {
			if last := current[r.Key]; r.ID < last || left[last] > 0 {
				return false
			}
			current[r.Key] = r.ID
		} else if current[r.Key] != r.ID {
			return false
		}
		left[r.ID]--
	}
	return true
}

// What is done to a valid history with losses, and what must be said of it.
func TestMutantsOfValidHistoriesAreCaught(t *testing.T) {
	mutants := map[string]struct {
		rules  []orderaudit.Rule
		mutate func(rng *rand.Rand, records []orderaudit.Record) []orderaudit.Record
	}{
		"two messages change places": {[]orderaudit.Rule{orderaudit.G1}, func(rng *rand.Rand, records []orderaudit.Record) []orderaudit.Record {
			a := 1 + rng.Int64N(messagesPerKey-1)
			b := a + 1
			for i := range records {
				if r := &records[i]; r.Key == "k0" && r.Kind != orderaudit.KindSent && r.Seq == a {
					r.Seq = b
				} else if r.Key == "k0" && r.Kind != orderaudit.KindSent && r.Seq == b {
					r.Seq = a
				}
			}
			return records
		}},
		"a message vanishes": {[]orderaudit.Rule{orderaudit.G3}, func(rng *rand.Rand, records []orderaudit.Record) []orderaudit.Record {
			seq := 1 + rng.Int64N(messagesPerKey)
			return slices.DeleteFunc(records, func(r orderaudit.Record) bool {
				return r.Key == "k0" && r.Kind != orderaudit.KindSent && r.Seq == seq
			})
		}},
		"a message was never sent": {[]orderaudit.Rule{orderaudit.G3}, func(rng *rand.Rand, records []orderaudit.Record) []orderaudit.Record {
			seq := 1 + rng.Int64N(messagesPerKey)
			return slices.DeleteFunc(records, func(r orderaudit.Record) bool {
				return r.Key == "k0" && r.Kind == orderaudit.KindSent && r.Seq == seq
			})
		}},
		"a settled message comes again": {[]orderaudit.Rule{orderaudit.G4}, func(_ *rand.Rand, records []orderaudit.Record) []orderaudit.Record {
			for i, r := range slices.Backward(records) {
				if r.Kind == orderaudit.KindEnd && r.Outcome == orderaudit.Settled {
					r.Kind, r.Outcome, r.N, r.ID, r.At = orderaudit.KindStart, 0, 1, 1<<40, records[i].At
					again := []orderaudit.Record{r, r, r}
					again[1].Kind, again[1].Outcome = orderaudit.KindReturn, orderaudit.Settled
					again[2].Kind, again[2].Outcome = orderaudit.KindEnd, orderaudit.Settled
					return slices.Insert(records, i+1, again...)
				}
			}
			return nil
		}},
		"losses are not recorded": {[]orderaudit.Rule{orderaudit.G2, orderaudit.G4}, func(_ *rand.Rand, records []orderaudit.Record) []orderaudit.Record {
			needed := map[string]bool{} // messages with an attempt that neither ended nor returned in vain, which is not their last
			open := map[string]orderaudit.Record{}
			for _, r := range records {
				name := r.Key + "/" + string(rune('0'+r.Seq))
				switch {
				case r.Kind == orderaudit.KindStart:
					if _, unfinished := open[name]; unfinished {
						needed[name] = true
					}
					open[name] = r
				case (r.Kind == orderaudit.KindReturn || r.Kind == orderaudit.KindEnd) && open[name].ID == r.ID:
					delete(open, name)
				}
			}
			if len(needed) == 0 {
				return nil
			}
			return slices.DeleteFunc(records, func(r orderaudit.Record) bool {
				return r.Kind == orderaudit.KindLoss || r.Kind == orderaudit.KindKilled
			})
		}},
	}
	for name, m := range mutants {
		t.Run(name, func(t *testing.T) {
			tried := 0
			for seed := range uint64(seeds) {
				rng := rand.New(rand.NewPCG(seed, 3))
				records := m.mutate(rng, generate(seed, true, 0).Records)
				if records == nil {
					continue
				}
				tried++
				if v := (&orderaudit.History{Records: records}).Check(orderaudit.Options{}); !hasRule(v, m.rules...) {
					t.Fatalf("seed %d: no violation of %v in %v", seed, m.rules, v)
				}
			}
			if tried < seeds/10 {
				t.Errorf("only %d histories could be mutated", tried)
			}
		})
	}
}
