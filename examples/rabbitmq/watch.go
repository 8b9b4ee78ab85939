package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/keyseq/keyseq/orderaudit"
)

// watcher shows who works and that order holds, and kills the active instance once.
type watcher struct {
	audit   *orderaudit.Recorder
	all     []*instance
	total   int             // messages
	handled map[string]bool // by text
	order   progress
	last    *instance // that handled a message
	victim  *instance
	killed  time.Time
}

// watch returns when every message has been handled.
func (w *watcher) watch(ctx context.Context, lines <-chan line) error {
	pressed, nobody := enter()
	byItself := false
	to, err := os.Stdout.Stat()
	terminal := err == nil && to.Mode()&os.ModeCharDevice != 0
	fmt.Println("press Enter to kill the active instance")
	view := time.NewTicker(250 * time.Millisecond)
	defer view.Stop()
	for len(w.handled) < w.total {
		now := false
		select {
		case l := <-lines:
			if err := w.read(l); err != nil {
				return err
			}
			now = byItself && len(w.handled) > w.total/3
		case <-pressed:
			pressed, now = nil, true
		case <-nobody:
			nobody, byItself = nil, true
		case <-view.C:
			if terminal {
				w.show()
			}
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Minute):
			return errors.New("nothing has happened for a minute")
		}
		if now && w.victim == nil && w.last != nil {
			if err := w.kill(lines); err != nil {
				return err
			}
		}
	}
	w.show()
	fmt.Println()
	return nil
}

// read takes in what an instance has printed: its state, or a task that it has done.
func (w *watcher) read(l line) error {
	task, ok := strings.CutPrefix(l.text, l.from.name+": ")
	if !ok {
		l.from.state = strings.TrimPrefix(l.text, l.from.name+" is ")
		return nil
	}
	l.from.done++
	w.handled[task] = true
	if w.victim != nil && l.from != w.victim && w.last == w.victim {
		fmt.Printf("\n%s took over %v after the kill\n", l.from.name, time.Since(w.killed).Round(time.Millisecond))
	}
	w.last = l.from
	return w.order.saw(task)
}

// show writes over what it has written before.
func (w *watcher) show() {
	fmt.Printf("\r%d of %d handled, in order", len(w.handled), w.total)
	for _, i := range w.all {
		fmt.Printf("   %s %s, %d tasks", i.name, i.state, i.done)
	}
	fmt.Print("      ")
}

// kill ends the active instance with kill -9, and reads all that it has printed before anything of its successor's.
func (w *watcher) kill(lines <-chan line) error {
	w.victim, w.killed = w.last, time.Now()
	loss := w.audit.Loss(w.victim.name, "kill -9", 0)
	if err := w.victim.cmd.Process.Kill(); err != nil {
		return err
	}
	var others []line
	for ended := false; !ended; {
		select {
		case l := <-lines:
			if l.from != w.victim {
				others = append(others, l)
			} else if err := w.read(l); err != nil {
				return err
			}
		case <-w.victim.ended:
			ended = true
		}
	}
	w.audit.Killed(w.victim.name)
	loss.Done()
	w.victim.state = "killed"
	fmt.Printf("\n%s, which was active, is killed with kill -9\n", w.victim.name)
	for _, l := range others {
		if err := w.read(l); err != nil {
			return err
		}
	}
	return nil
}

// progress is the latest version that was handled of each order.
type progress map[string]int64

// saw checks a task while the demo runs: a message may come again after the kill, but none may be passed over. The audit at the end
// checks more.
func (p progress) saw(task string) error {
	var version int64
	var order string
	if _, err := fmt.Sscanf(task, body, &version, &order); err != nil {
		return fmt.Errorf("not a task: %q: %w", task, err)
	}
	if version > p[order]+1 {
		return fmt.Errorf("order is broken: version %d of %s came after version %d", version, order, p[order])
	}
	p[order] = version
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
