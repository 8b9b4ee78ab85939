package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/keyseq/keyseq/orderaudit"
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

func demo(ctx context.Context, url string) error {
	dir, err := os.MkdirTemp("", "keyseq-example.")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	audit, err := orderaudit.OpenFile(filepath.Join(dir, "demo"))
	if err != nil {
		return err
	}
	if err := empty(url); err != nil {
		return err
	}
	sent, err := produce(ctx, url)
	if err != nil {
		return err
	}
	for _, m := range sent {
		audit.Sent(m.order, m.version)
	}

	lines := make(chan line, 1000)
	var all []*instance
	for _, name := range []string{"A", "B"} {
		i, err := start(name, filepath.Join(dir, name), lines)
		if err != nil {
			return err
		}
		defer i.stop()
		all = append(all, i)
	}
	if err := watch(ctx, audit, all, lines, len(sent)); err != nil {
		return err
	}
	for _, i := range all {
		audit.InstanceStopping(i.name)
		i.stop()
	}
	if err := audit.Close(); err != nil {
		return err
	}
	history, err := orderaudit.Load(filepath.Join(dir, "demo"), filepath.Join(dir, "A"), filepath.Join(dir, "B"))
	if err != nil {
		return err
	}
	// A broker may not have processed the last acknowledgements of a process that is killed.
	verdict := history.Check(orderaudit.Options{AckDelay: time.Second})
	fmt.Println(verdict)
	if err := verdict.Err(); err != nil {
		return err
	}
	fmt.Println("order: ok")
	return nil
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

// watch shows who works, kills the active instance once, and returns when every message has been handled.
func watch(ctx context.Context, audit *orderaudit.Recorder, all []*instance, lines <-chan line, total int) error {
	pressed, nobody := enter()
	byItself := false
	fmt.Println("press Enter to kill the active instance")
	view := time.NewTicker(250 * time.Millisecond)
	defer view.Stop()
	handled := map[string]bool{}
	var last *instance
	var victim *instance
	var killed time.Time
	for len(handled) < total {
		now := false
		select {
		case l := <-lines:
			text, task := strings.CutPrefix(l.text, l.from.name+": ")
			if !task {
				l.from.state = strings.TrimPrefix(l.text, l.from.name+" is ")
				continue
			}
			l.from.done++
			handled[text] = true
			if victim != nil && l.from != victim && last == victim {
				fmt.Printf("\n%s took over %v after the kill\n", l.from.name, time.Since(killed).Round(time.Millisecond))
			}
			last = l.from
			now = byItself && len(handled) > total/3
		case <-pressed:
			pressed, now = nil, true
		case <-nobody:
			nobody, byItself = nil, true
		case <-view.C:
			fmt.Printf("\r%d of %d handled", len(handled), total)
			for _, i := range all {
				fmt.Printf("   %s %s, %d tasks", i.name, i.state, i.done)
			}
			fmt.Print("      ")
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Minute):
			return errors.New("nothing has happened for a minute")
		}
		if now && victim == nil && last != nil {
			victim, killed = last, time.Now()
			loss := audit.Loss(victim.name, "kill -9", 0)
			if err := victim.cmd.Process.Kill(); err != nil {
				return err
			}
			<-victim.ended
			audit.Killed(victim.name)
			loss.Done()
			victim.state = "killed"
			fmt.Printf("\n%s, which was active, is killed with kill -9\n", victim.name)
		}
	}
	fmt.Println()
	return nil
}

// enter hears of a key press, or that nobody can press one.
func enter() (pressed, nobody chan struct{}) {
	pressed, nobody = make(chan struct{}), make(chan struct{})
	go func() {
		if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
			close(nobody)
			return
		}
		close(pressed)
	}()
	return pressed, nobody
}
