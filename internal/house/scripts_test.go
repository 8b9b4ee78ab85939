package house

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// bash runs a script from the root of the tree and returns what it printed.
func bash(t *testing.T, script string, env ...string) (string, error) {
	t.Helper()
	for _, tool := range []string{"bash", "timeout"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the scripts need %s: %v", tool, err)
		}
	}
	treeFiles(t, func(string) bool { return true }) // as in goCommand
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestSkipsFailWhereBrokersAreRequired: a build machine whose broker did not
// start must not be green.
func TestSkipsFailWhereBrokersAreRequired(t *testing.T) {
	const (
		pass = "=== RUN   TestA\n--- PASS: TestA (0.00s)\n"
		skip = "=== RUN   TestB\n    b_test.go:1: no broker\n--- SKIP: TestB (0.00s)\n"
		sub  = "=== RUN   TestC\n=== RUN   TestC/sub\n    c_test.go:1: no broker\n=== RUN   TestC/other\n--- PASS: TestC (0.00s)\n    --- SKIP: TestC/sub (0.00s)\n    --- PASS: TestC/other (0.00s)\n"
		mute = "=== RUN   TestD\n--- SKIP: TestD (0.00s)\n"
	)
	suite := strings.ReplaceAll(sub, "c_test.go:1: no broker", "suite.go:1: no such power")
	for _, c := range []struct {
		name, output, required string
		status                 int // of the test command
		ok                     bool
	}{
		{"all pass", pass, "1", 0, true},
		{"one skipped", pass + skip, "1", 0, false},
		{"one subtest skipped", pass + sub, "1", 0, false},
		{"a case does not apply", suite, "1", 0, true},
		{"skipped without a reason", pass + mute, "1", 0, false},
		{"nothing ran", "ok  \tpkg\t0.1s\n", "1", 0, false},
		{"one failed", pass, "1", 1, false},
		{"skips by hand", pass + skip, "", 0, true},
		{"failure by hand", pass, "", 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := bash(t, `scripts/ci/noskip bash -c 'printf "%s" "$OUTPUT"; exit $STATUS'`,
				"KEYSEQ_REQUIRE_BROKERS="+c.required, "OUTPUT="+c.output, "STATUS="+strconv.Itoa(c.status))
			if (err == nil) != c.ok {
				t.Errorf("ended with %v, want success %v; it printed:\n%s", err, c.ok, out)
			}
		})
	}
}

// TestStepsReportEveryFailure: a failed or endless step fails the run, and does
// not keep the next one from running.
func TestStepsReportEveryFailure(t *testing.T) {
	for _, c := range []struct {
		name, steps string
		ok          bool
		want        []string
	}{
		{"good", "step one 9 9 true; step two 9 9 true", true, []string{"all 2 steps ok"}},
		{"failed", "step one 9 9 false; step two 9 9 echo ran-on", false, []string{"ran-on", "FAILED: status 1", "1 of 2 steps FAILED"}},
		{"endless", "step one 9 1 sleep 60", false, []string{"stopped after 1 s", "1 of 1 steps FAILED"}},
		{"over budget", "step one 0 9 sleep 1.1", true, []string{"over its budget"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out, err := bash(t, "set -euo pipefail; . scripts/ci/steps.bash; "+c.steps+"; summary")
			if (err == nil) != c.ok {
				t.Errorf("ended with %v, want success %v; it printed:\n%s", err, c.ok, out)
			}
			for _, want := range c.want {
				if !strings.Contains(out, want) {
					t.Errorf("no %q in:\n%s", want, out)
				}
			}
		})
	}
}
