//go:build unix

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain is the program itself where a test asks for it.
func TestMain(m *testing.M) {
	if os.Getenv("KEYSEQ_RUN_HEALTH") != "" {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

// child is the program in a process of its own.
type child struct {
	*testing.T
	cmd    *exec.Cmd
	out    *bufio.Reader
	errors *strings.Builder
	addr   string
}

func start(t *testing.T, args ...string) *child {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	c := &child{T: t, cmd: exec.CommandContext(ctx, os.Args[0], append([]string{"-addr", "127.0.0.1:0"}, args...)...), errors: new(strings.Builder)}
	c.cmd.Env = append(os.Environ(), "KEYSEQ_RUN_HEALTH=1")
	c.cmd.Stderr = c.errors
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.cmd.Process.Kill() })
	c.out = bufio.NewReader(stdout)
	line, err := c.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	c.addr = strings.TrimSpace(strings.TrimPrefix(line, "probes at "))
	c.until("/readyz", http.StatusOK, "ok")
	return c
}

// until asks a probe until it answers so.
func (c *child) until(probe string, status int, text string) {
	c.Helper()
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	last := ""
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); <-tick.C {
		response, err := client.Get("http://" + c.addr + probe)
		if err != nil {
			last = err.Error()
			continue
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err == nil && response.StatusCode == status && strings.Contains(string(body), text) {
			return
		}
		last = fmt.Sprint(response.StatusCode, " ", string(body))
	}
	c.Fatalf("%s never said %d %q; the last answer was %s\n%s", probe, status, text, last, c.errors)
}

// end waits for the program's end and returns its last line and its exit status.
func (c *child) end() (string, int) {
	c.Helper()
	rest, err := io.ReadAll(c.out)
	if err != nil {
		c.Fatal(err)
	}
	_ = c.cmd.Wait() // the status says it
	return strings.TrimSpace(string(rest)), c.cmd.ProcessState.ExitCode()
}

// SIGTERM: at once not ready, still alive, running tasks finish, the rest is back on the queue, exit status 0.
func TestSIGTERMDrains(t *testing.T) {
	c := start(t, "-task", "2s")
	c.until("/", http.StatusOK, "active: 10 running")
	c.until("/livez", http.StatusOK, "ok")
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	c.until("/readyz", http.StatusServiceUnavailable, "draining")
	c.until("/livez", http.StatusOK, "ok")
	last, status := c.end()
	var settled, back, left int
	if _, err := fmt.Sscanf(last, "ended: %d settled, %d given back, %d on the queue", &settled, &back, &left); err != nil || settled == 0 || left < back {
		t.Errorf("it said %q (%v), want something settled, and what was given back on the queue", last, err)
	}
	if status != 0 {
		t.Errorf("exit status %d\n%s", status, c.errors)
	}
}

// Tasks that last longer than the drain time are cancelled; the exit status and the keys say so.
func TestSIGTERMWithTasksThatLastTooLong(t *testing.T) {
	c := start(t, "-task", "1h", "-drain", "300ms")
	c.until("/", http.StatusOK, "10 running")
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	last, status := c.end()
	if !strings.HasPrefix(last, "ended: 0 settled") || status != 1 || !strings.Contains(c.errors.String(), "account-") || !strings.Contains(c.errors.String(), "not drained") {
		t.Errorf("it said %q, exit status %d\n%s", last, status, c.errors)
	}
}
