package mutants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Outcome is what became of a mutant.
type Outcome int

// The outcomes of a mutant.
const (
	Caught   Outcome = iota // a test failed
	Survived                // all tests passed
	Invalid                 // it does not compile, or its test does not exist
)

// String names the outcome.
func (o Outcome) String() string { return [...]string{"caught", "SURVIVED", "INVALID"}[o] }

// Run tests the module at root with some files changed: go test with args. The text is its output.
func Run(ctx context.Context, root string, changed map[string]string, args ...string) (Outcome, string, error) {
	dir, err := os.MkdirTemp("", "keyseq-mutant-")
	if err != nil {
		return Invalid, "", err
	}
	defer os.RemoveAll(dir)
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for path, text := range changed {
		real, err := filepath.Abs(path)
		if err != nil {
			return Invalid, "", err
		}
		other := filepath.Join(dir, fmt.Sprint(len(overlay.Replace), ".go"))
		if err := os.WriteFile(other, []byte(text), 0o600); err != nil {
			return Invalid, "", err
		}
		overlay.Replace[real] = other
	}
	b, err := json.Marshal(overlay)
	if err != nil {
		return Invalid, "", err
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, b, 0o600); err != nil {
		return Invalid, "", err
	}
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-overlay", list, "-count=1", "-failfast", "-vet=off"}, args...)...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	text := string(out)
	var exit *exec.ExitError
	switch {
	case err != nil && !errors.As(err, &exit), ctx.Err() != nil:
		return Invalid, text, fmt.Errorf("go test: %w", errors.Join(err, ctx.Err()))
	case strings.Contains(text, "[build failed]"), strings.Contains(text, "[setup failed]"), strings.Contains(text, "[no tests to run]"):
		return Invalid, text, nil
	case err != nil:
		return Caught, text, nil
	}
	return Survived, text, nil
}
