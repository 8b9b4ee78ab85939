package providertest_test

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/keyseq/keyseq/provider/providertest"
)

// brokenEnv names the fault that a child of this test binary runs the suite on.
const brokenEnv = "PROVIDERTEST_FAULT"

// The suite on one broken provider, which must fail. It runs in a process of its own, started by TestEachFaultFailsItsCase.
func TestBroken(t *testing.T) {
	name := os.Getenv(brokenEnv)
	if name == "" {
		t.Skip("runs as a child of TestEachFaultFailsItsCase")
	}
	all := append(faults(), managerFaults()...)
	f := all[slices.IndexFunc(all, func(f fault) bool { return f.name == name })]
	h := providertest.Harness{Bubble: !f.real, Config: f.config}
	if f.real {
		h.Patience, h.Latency, h.Quiet = time.Second, 100*time.Millisecond, 20*time.Millisecond
	}
	h.New = func(testing.TB) providertest.Broker {
		ref := newRefBroker(everything, "IN", "OUT")
		b := referenceBroker(ref)
		b.Factory = bentFactory{ref, f.bend}
		if f.broker != nil {
			f.broker(&b)
		}
		return b
	}
	if f.manager {
		providertest.RunManager(t, h)
	} else {
		providertest.Run(t, h)
	}
}

var (
	failedCase = regexp.MustCompile(`(?m)^ +--- FAIL: TestBroken/(\w+/\w+) `)
	inWords    = regexp.MustCompile(`broken: .+ \[(rule \d+, .+|what a provider declares.+|G\d)\]\n`)
)

// Each rule has a provider that breaks it. It must fail the case of that rule and no other, and say in words what is broken.
func TestEachFaultFailsItsCase(t *testing.T) {
	for _, f := range faults() {
		t.Run(strings.ReplaceAll(f.name, " ", "-"), func(t *testing.T) {
			if f.real {
				t.Parallel() // it only waits
			}
			failed, out := failures(t, f, "")
			if !slices.Equal(failed, []string{f.fails}) {
				t.Fatalf("failed cases: %q, want %q and no other\n%s", failed, f.fails, out)
			}
			if !inWords.Match(out) {
				t.Errorf("no message names the broken rule in words\n%s", out)
			}
		})
	}
}

// failures runs the suite, or some cases of it, on a broken provider and gives the cases that failed, and what the suite said.
func failures(t *testing.T, f fault, cases string) (failed []string, out []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	child := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestBroken$"+cases, "-test.v", "-test.timeout=50s")
	child.Env = append(os.Environ(), brokenEnv+"="+f.name, "GORACE=atexit_sleep_ms=0")
	out, err := child.CombinedOutput()
	if err == nil {
		t.Fatalf("the suite passed on a broken provider\n%s", out)
	}
	for _, m := range failedCase.FindAllStringSubmatch(string(out), -1) {
		failed = append(failed, m[1])
	}
	return failed, out
}

func TestEachCaseHasAFault(t *testing.T) {
	covered := map[string]bool{}
	for _, f := range faults() {
		covered[f.fails] = true
	}
	for _, name := range providertest.CaseNames() {
		if !covered[name] {
			t.Errorf("no broken provider fails case %s, so nothing proves that it can fail", name)
		}
		delete(covered, name)
	}
	for name := range covered {
		t.Errorf("a broken provider should fail case %s, which does not exist", name)
	}
}
