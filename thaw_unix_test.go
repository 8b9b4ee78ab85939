//go:build unix

package keyseq_test

import (
	"bufio"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// H6: the same with a real process, that is stopped and goes on.
func TestH06_AProcessThatWasStoppedWaits(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), frozenEnv+"=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	attempts := make(chan struct{})
	over := make(chan struct{})
	go func() {
		defer close(attempts)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			select {
			case attempts <- struct{}{}:
			case <-over:
				return
			}
		}
	}()
	defer func() {
		close(over)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		for range attempts {
		}
	}()
	signal := func(s syscall.Signal) {
		t.Helper()
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	for range 10 {
		<-attempts
	}
	signal(syscall.SIGSTOP)
	for quiet := false; !quiet; { // what it has said before
		select {
		case <-attempts:
		case <-time.After(2500 * time.Millisecond):
			quiet = true
		}
	}
	thawed := time.Now()
	signal(syscall.SIGCONT)
	<-attempts // perhaps it was stopped just when it had begun this one
	<-attempts
	if waited := time.Since(thawed); waited < 2900*time.Millisecond {
		t.Errorf("%v after it went on it has started a task", waited)
	}
}
