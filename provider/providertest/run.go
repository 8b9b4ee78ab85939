package providertest

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// rules are the rules of package jms in short, for messages. Index 0 stands for the declarations.
var rules = [...]string{
	0:  "what a provider declares must work, and what it does not declare must be refused or absent",
	1:  "Connect checks settings, returns when the connection stands, and does not wait to become active",
	2:  "Receive hands out complete messages in the queue's order, invisible to everybody else until they are settled",
	3:  "a waiting Receive returns promptly, and never drops a message it holds",
	4:  "no context may be kept after the call it was given to",
	5:  "Commit sends in order and removes the received message; what cannot be stored is an error",
	6:  "Rollback gives the message back at once and, where declared, in its place",
	7:  "after an error that does not end the session nothing was done; after one that does only Close follows",
	8:  "Close gives back what is held, may come at any time, and may come twice",
	9:  "calls on different sessions and of OpenSession run concurrently, from any goroutine",
	10: "Done is closed when the connection or the active role is lost",
}

// testCase is one case of the suite.
type testCase struct {
	rule int
	name string
	says string // what the case demands, for messages
	run  func(c *kase)
}

// group is the name of the subtest that holds the case.
func (tc testCase) group() string {
	if tc.rule == 0 {
		return "declared"
	}
	return fmt.Sprintf("rule%02d", tc.rule)
}

// allCases lists the suite in the order of the rules, declarations last.
func allCases() []testCase {
	var all []testCase
	for _, part := range [][]testCase{
		connectCases, receiveCases, messageCases, contextCases, commitCases, rollbackCases, failureCases,
		closeCases, concurrencyCases, lossCases, capabilityCases, interfaceCases,
	} {
		all = append(all, part...)
	}
	return all
}

// Run checks that the provider keeps the contract of package jms. Each case is a subtest of its own, named after the rule it checks
// ("rule03/KeepsMessageAtContextEnd"); a failure says which rule is broken and how. Cases run one after another.
func Run(t *testing.T, h Harness) {
	t.Helper()
	if h.New == nil {
		t.Fatal("providertest: Harness.New is nil: it must make the queues of a case")
	}
	h = h.withDefaults()
	byGroup := map[string][]testCase{}
	var groups []string
	for _, tc := range allCases() {
		g := tc.group()
		if byGroup[g] == nil {
			groups = append(groups, g)
		}
		byGroup[g] = append(byGroup[g], tc)
	}
	for _, g := range groups {
		t.Run(g, func(t *testing.T) {
			for _, tc := range byGroup[g] {
				t.Run(tc.name, func(t *testing.T) {
					run(t, h, tc.says, func(t *testing.T) { tc.run(newKase(t, h, tc)) })
				})
			}
		})
	}
}

// stuck is how long, in real time, a bubble may take before the suite gives it up.
const stuck = 2 * time.Minute

// run runs body, in a bubble if the harness asks for one. What is left behind in the bubble fails the test.
func run(t *testing.T, h Harness, says string, body func(t *testing.T)) {
	if !h.Bubble {
		body(t)
		return
	}
	name := t.Name()
	watchdog := time.AfterFunc(stuck, func() {
		buf := make([]byte, 1<<20)
		panic(fmt.Sprintf("providertest: %s (%s) is stuck: a goroutine of its bubble waits for a mutex or in a system call, so virtual "+
			"time stands still\n%s", name, says, buf[:runtime.Stack(buf, true)]))
	})
	defer watchdog.Stop()
	defer func() {
		// synctest panics here, on the goroutine that called it, when goroutines of the bubble can never go on.
		if r := recover(); r != nil {
			t.Errorf("%s: goroutines were left behind that wait for ever (%v): a call that never returns, or one that Close does not end",
				says, r)
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(h.Patience) }) // the last one: what ends by itself has ended when the bubble is left
		body(t)
	})
}
