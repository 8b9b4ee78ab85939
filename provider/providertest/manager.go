package providertest

import (
	"fmt"
	"testing"
	"time"
)

// managerCase is one case of RunManager.
type managerCase struct {
	guarantee string
	name      string
	says      string
	run       func(a *audit)
}

// RunManager runs a real SequenceManager on the provider and checks the guarantees G1 to G8 on what it did: order through failures,
// losses, stops and deadlines, conservation, isolation, fairness, bounds, and that nothing ends silently. Each case is a subtest of its
// own ("G5/FailingKeyHoldsItself"). What a case recorded is judged by package orderaudit.
//
// Sizes are chosen so that a real broker needs less than a minute in all; ReturnDelay is waited for after each loss, so tell the
// broker under test to notice losses early. Cases about losses need Broker.Break.
func RunManager(t *testing.T, h Harness) {
	t.Helper()
	if h.New == nil {
		t.Fatal("providertest: Harness.New is nil: it must make the queues of a case")
	}
	h = h.withDefaults()
	byGuarantee := map[string][]managerCase{}
	var guarantees []string
	for _, mc := range allManagerCases() {
		if byGuarantee[mc.guarantee] == nil {
			guarantees = append(guarantees, mc.guarantee)
		}
		byGuarantee[mc.guarantee] = append(byGuarantee[mc.guarantee], mc)
	}
	for _, g := range guarantees {
		t.Run(g, func(t *testing.T) {
			for _, mc := range byGuarantee[g] {
				t.Run(mc.name, func(t *testing.T) {
					run(t, h, mc.says, func(t *testing.T) { mc.run(newAudit(t, h, mc)) })
				})
			}
		})
	}
}

// allManagerCases lists the suite in the order of the guarantees.
func allManagerCases() (all []managerCase) {
	for _, part := range [][]managerCase{orderCases, conservationCases, isolationCases, lifecycleCases} {
		all = append(all, part...)
	}
	return all
}

func newAudit(t *testing.T, h Harness, mc managerCase) *audit {
	t.Helper()
	c := makeKase(t, h, h.NewSingleActive, fmt.Sprintf("%s [%s]", mc.says, mc.guarantee))
	c.single = h.single
	a := &audit{kase: c, limit: 3 * h.Patience, news: make(chan struct{}), messages: map[string]*track{}}
	if h.Bubble {
		a.limit = time.Hour
	}
	a.open()
	return a
}
