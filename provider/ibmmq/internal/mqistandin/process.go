//go:build mqistandin

package mqistandin

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// QueueManager is a queue manager in a process of its own.
type QueueManager struct {
	// Address is what [Use] and MQSTANDIN_SERVER take.
	Address string
	cmd     *exec.Cmd
	stdin   io.Closer
}

// StartQueueManager starts the program `make build` made, at "unix:PATH" or
// "tcp:127.0.0.1:0" (a free port). It ends with [QueueManager.Close], and by
// itself when this process ends. env adds to the environment, for example
// "MQSTANDIN_QUEUES=ORDERS:bothresh=3".
func StartQueueManager(address string, env ...string) (*QueueManager, error) {
	program, err := findProgram()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, address)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the queue manager: %w", err)
	}
	q := &QueueManager{cmd: cmd, stdin: stdin}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	ready, ok := strings.CutPrefix(strings.TrimSpace(line), "ready ")
	if err != nil || !ok {
		return nil, errors.Join(fmt.Errorf("queue manager at %s did not start: %w", address, err), q.Close())
	}
	q.Address = ready
	return q, nil
}

// Process is the operating system's process, to be frozen or killed.
func (q *QueueManager) Process() *os.Process { return q.cmd.Process }

// Close ends the queue manager; its messages are gone. One that is frozen is killed.
func (q *QueueManager) Close() error {
	err := q.stdin.Close()
	kill := time.AfterFunc(5*time.Second, func() { _ = q.cmd.Process.Kill() })
	defer kill.Stop()
	if wait := q.cmd.Wait(); wait != nil {
		var exit *exec.ExitError
		if !errors.As(wait, &exit) { // killed by the test: no fault
			err = errors.Join(err, wait)
		}
	}
	return err
}

// findProgram looks for build/mqstandin-qmgr from here upwards, as tests run in
// the directory of their package, unless `make flags` has said where it is.
func findProgram() (string, error) {
	if p := os.Getenv("MQSTANDIN_PROGRAM"); p != "" {
		return p, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		p := filepath.Join(dir, "build", "mqstandin-qmgr")
		if _, err := os.Stat(p); err == nil {
			return p, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("build/mqstandin-qmgr is not there: run `make build` in provider/ibmmq")
		}
		dir = up
	}
}
