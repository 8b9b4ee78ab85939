package ibmmq_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/orderaudit"
	"github.com/keyseq/keyseq/provider/ibmmq"
)

// childEnv makes the test program a consumer of that queue, which records to the file recordEnv.
const (
	childEnv    = "KEYSEQ_IBMMQ_TEST_QUEUE"
	recordEnv   = "KEYSEQ_IBMMQ_TEST_RECORD"
	instanceEnv = "KEYSEQ_IBMMQ_TEST_INSTANCE"
	quickReturn = 600 * time.Millisecond
	takeover    = time.Second
)

func child() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := consume(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func consume(ctx context.Context) error {
	record, err := orderaudit.OpenFile(os.Getenv(recordEnv))
	if err != nil {
		return err
	}
	factory, err := ibmmq.FromEnvironment(func(f *ibmmq.Factory) { f.WaitSlice = 50 * time.Millisecond })
	if err != nil {
		return err
	}
	a := &audited{instance: os.Getenv(instanceEnv), record: record, task: func(context.Context, *keyseq.Delivery) error {
		time.Sleep(4 * time.Millisecond) // work
		return nil
	}}
	m, err := keyseq.NewSequenceManager(os.Getenv(childEnv), factory, a, keyseq.KeyFromBodyBefore("."), func(c *keyseq.Config) {
		c.Workers, c.SingleActiveConsumer, c.TakeoverDelay = 8, true, takeover
		c.Reconnect = keyseq.FixedBackoff(50 * time.Millisecond)
		c.ClientName = a.instance
		c.Events = append(c.Events, a.events(), keyseq.Events{State: func(_, to keyseq.State, _ error) { fmt.Println(to) }})
	})
	if err != nil {
		return err
	}
	return m.Run(ctx)
}

// process is a consumer in a process of its own.
type process struct {
	t      testing.TB
	name   string
	path   string
	cmd    *exec.Cmd
	states chan string
}

func (b *bench) start(name string) *process {
	b.t.Helper()
	f := b.factory()
	p := &process{t: b.t, name: name, path: filepath.Join(b.t.TempDir(), name+".jsonl"), states: make(chan string, 100)}
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), childEnv+"="+b.queue, recordEnv+"="+p.path, instanceEnv+"="+name, "MQ_QUEUE_MANAGER="+f.QueueManager,
		"MQ_CONNECTIONS="+f.Connections, "MQ_CHANNEL="+f.Channel, "MQ_USER="+f.User, "MQ_PASSWORD="+f.Password, "MQ_LOCK_QUEUE="+b.lock,
		"MQ_HEARTBEAT="+f.Heartbeat.String(), "GORACE=atexit_sleep_ms=0")
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(p.states)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			select {
			case p.states <- lines.Text():
			default:
			}
		}
	}()
	b.t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		<-ended
	})
	return p
}

// until waits for a state of the manager.
func (p *process) until(state string) {
	p.t.Helper()
	limit := time.After(20 * time.Second)
	for {
		select {
		case s, more := <-p.states:
			switch {
			case s == state:
				return
			case !more:
				p.t.Fatalf("%s ended before it was %s", p.name, state)
			}
		case <-limit:
			p.t.Fatalf("%s has not become %s", p.name, state)
		}
	}
}

// stop ends it in order.
func (p *process) stop() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- p.cmd.Wait() }()
	select {
	case err := <-done:
		if err != nil {
			p.t.Errorf("%s ended with %v", p.name, err)
		}
	case <-time.After(20 * time.Second):
		p.t.Fatalf("%s has not ended", p.name)
	}
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// freeze returns when all of its threads have stopped.
func (p *process) freeze() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		p.t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.cmd.Process.Pid))
		stopped := len(tasks) > 0
		for _, path := range tasks {
			stat, err := os.ReadFile(path)
			stopped = stopped && err == nil && strings.Contains(string(stat), ") T ")
		}
		if stopped {
			return
		}
		if time.Now().After(end) {
			p.t.Fatal("not frozen within 10 s")
		}
	}
}
