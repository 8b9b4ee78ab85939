package brokertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

const howToGo = "run in provider/rabbitmq: KEYSEQ_RABBITMQ_URL=$(../../scripts/rabbitmq start) go test -race ./..."

// script is scripts/rabbitmq, wherever the test runs.
func script() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "..", "..", "scripts", "rabbitmq")
}

// Main runs the tests of a package and stops the node that they may have started; goroutines that are left over fail it.
func Main(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if victim.dir != "" {
			if out, err := victim.run("stop"); err != nil {
				fmt.Fprintf(os.Stderr, "stopping the node: %v\n%s", err, out)
				code = 1
			}
			_ = os.Remove(victim.dir)
		}
		os.Exit(code)
	}))
}

// skip skips a test that lacks something, or fails it where a skip is not accepted.
func skip(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("KEYSEQ_REQUIRE_BROKERS") == "1" {
		t.Fatal(why + "; KEYSEQ_REQUIRE_BROKERS=1 wants it; " + howToGo)
	}
	t.Skip(why + "; " + howToGo)
}

// URL is the broker to test with; without one the test is skipped.
func URL(t testing.TB) string {
	t.Helper()
	url := os.Getenv("KEYSEQ_RABBITMQ_URL")
	if url == "" {
		skip(t, "KEYSEQ_RABBITMQ_URL is not set")
	}
	return url
}

// node is a private node that a test may kill and reconfigure.
type node struct {
	once sync.Once
	dir  string
	url  string
	err  error
}

// victim is the node of this process, started when it is first needed.
var victim node

func (n *node) run(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, script(), args...)
	if n.dir != "" {
		c.Env = append(os.Environ(), "KEYSEQ_RABBITMQ_DIR="+n.dir)
	}
	var complaints strings.Builder
	c.Stderr = &complaints
	out, err := c.Output()
	if err != nil {
		err = fmt.Errorf("scripts/rabbitmq %s: %w\n%s%s", strings.Join(args, " "), err, out, complaints.String())
	}
	return string(out), err
}

func (n *node) start() {
	if n.dir, n.err = os.MkdirTemp("", "keyseq-rabbitmq-test."); n.err != nil {
		return
	}
	var out string
	out, n.err = n.run("start")
	n.url = strings.TrimSpace(out)
}
