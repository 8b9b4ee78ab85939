package guarantees

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/orderaudit"
	"github.com/keyseq/keyseq/provider/faulty"
	"github.com/keyseq/keyseq/provider/rabbitmq"
	"github.com/keyseq/keyseq/provider/rabbitmq/internal/audited"
	"github.com/keyseq/keyseq/provider/rabbitmq/internal/brokertest"
)

// processSpec is the environment variable that makes the test program one instance.
const processSpec = "KEYSEQ_TEST_INSTANCE"

// spec says what an instance in a process of its own does.
type spec struct {
	Name, URL, Queue, Record string
	Exclusive                bool
	Heartbeat                time.Duration
	Task                     time.Duration // how long a task lasts
	Hold                     bool          // tasks last until their context ends
	DieInCommit              bool          // kill -9 of itself between the success of the first task and its commit
}

// live is the process: it writes a line for each task that begins, and ends with SIGTERM.
func live(text string) int {
	var s spec
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return fail(err)
	}
	record, err := orderaudit.OpenFile(s.Record)
	if err != nil {
		return fail(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var factory jms.ConnectionFactory = &rabbitmq.Factory{URL: s.URL, Heartbeat: s.Heartbeat, Exclusive: s.Exclusive}
	if s.DieInCommit {
		factory = faulty.New(factory, faulty.On(faulty.Commit).Where(func(faulty.Event) bool {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}))
	}
	c := &audited.Consumer{Instance: s.Name, Record: record, Task: func(ctx context.Context, d *keyseq.Delivery) error {
		fmt.Printf("%d\n", number(d))
		wait := s.Task
		if s.Hold {
			wait = time.Hour
		}
		select {
		case <-time.After(wait):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}}
	m, err := keyseq.NewSequenceManager(s.Queue, factory, c, keyseq.KeyFromBodyBefore("."), func(k *keyseq.Config) {
		k.SingleActiveConsumer = true
		k.Reconnect = keyseq.FixedBackoff(100 * time.Millisecond)
		k.Events = append(k.Events, c.Events())
	})
	if err != nil {
		return fail(err)
	}
	if err := m.Run(ctx); err != nil {
		return fail(err)
	}
	return 0
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// process is such an instance, seen by the test.
type process struct {
	*brokertest.Bench
	spec
	command *exec.Cmd
	lines   chan string // what it writes; closed at its end
}

// newProcess starts an instance, which the end of the test kills.
func newProcess(b *brokertest.Bench, s spec) *process {
	b.Helper()
	s.URL, s.Record = b.URL, filepath.Join(b.TempDir(), s.Name)
	text, err := json.Marshal(s)
	if err != nil {
		b.Fatal(err)
	}
	p := &process{Bench: b, spec: s, command: exec.Command(os.Args[0]), lines: make(chan string, 10_000)}
	p.command.Env = append(os.Environ(), processSpec+"="+string(text))
	p.command.Stderr = os.Stderr
	out, err := p.command.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := p.command.Start(); err != nil {
		b.Fatal(err)
	}
	go func() {
		defer close(p.lines)
		for in := bufio.NewScanner(out); in.Scan(); {
			p.lines <- strings.TrimSpace(in.Text())
		}
	}()
	b.Cleanup(func() {
		if p.command.ProcessState == nil {
			p.end()
		}
	})
	return p
}

// task waits until the next task begins and gives its message.
func (p *process) task() string {
	p.Helper()
	select {
	case line, alive := <-p.lines:
		if !alive {
			p.Fatalf("the process of %s has ended", p.Name)
		}
		return line
	case <-time.After(30 * time.Second):
		p.Fatalf("the process of %s has begun no task within 30 s", p.Name)
	}
	return ""
}

func (p *process) signal(s syscall.Signal) {
	if err := p.command.Process.Signal(s); err != nil {
		p.Fatal(err)
	}
}

// dead waits for the end of a process that was killed, and records it.
func (p *process) dead(record *orderaudit.Recorder) {
	p.wait()
	record.Killed(p.Name)
}

// end kills the process if it still runs.
func (p *process) end() {
	_ = p.command.Process.Kill()
	p.wait()
}

// wait reads what is left before it waits, because waiting closes the pipe.
func (p *process) wait() {
	for range p.lines {
	}
	_ = p.command.Wait() // killed: an error is what it should say
}

// kill is kill -9.
func (p *process) kill(record *orderaudit.Recorder) {
	p.Helper()
	loss := record.Loss(p.Name, "kill -9", 0)
	p.signal(syscall.SIGKILL)
	p.dead(record)
	loss.Done()
}

// openRecord is a record in a file, to be judged together with those of processes.
func openRecord(b *brokertest.Bench) (record *orderaudit.Recorder, path string) {
	b.Helper()
	path = filepath.Join(b.TempDir(), "record")
	record, err := orderaudit.OpenFile(path)
	if err != nil {
		b.Fatal(err)
	}
	return record, path
}

// judgeFiles checks what several recorded.
func judgeFiles(b *brokertest.Bench, options orderaudit.Options, record *orderaudit.Recorder, paths ...string) {
	b.Helper()
	if err := record.Close(); err != nil {
		b.Error(err)
	}
	history, err := orderaudit.Load(paths...)
	if err != nil {
		b.Fatal(err)
	}
	verdict := history.Check(options)
	if err := verdict.Err(); err != nil {
		b.Error(err)
	}
	b.Log(verdict)
}
