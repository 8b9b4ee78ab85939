package main

import (
	"bufio"
	"os"
	"os/exec"
	"syscall"
)

// instance is a consumer in a process of its own.
type instance struct {
	name  string
	cmd   *exec.Cmd
	ended chan error
	quiet chan struct{} // closed: nobody wants to know what it prints
	done  int           // tasks
	state string        // as it said last
}

// line is what an instance has printed.
type line struct {
	from *instance
	text string
}

// start runs this program again, as a consumer.
func start(name, record string, lines chan<- line) (*instance, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	i := &instance{name: name, cmd: exec.Command(self, "consume", name, record), ended: make(chan error, 1), quiet: make(chan struct{}), state: "starting"}
	i.cmd.Stderr = os.Stderr
	out, err := i.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := i.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			select {
			case lines <- line{i, s.Text()}:
			case <-i.quiet:
			}
		}
		i.ended <- i.cmd.Wait()
	}()
	return i, nil
}

// stop asks the process to end in order, and waits.
func (i *instance) stop() {
	if i.cmd.ProcessState != nil {
		return
	}
	close(i.quiet)
	_ = i.cmd.Process.Signal(syscall.SIGTERM)
	<-i.ended
}
