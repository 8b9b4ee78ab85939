//go:build mqistandin

package mqistandin_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/keyseq/keyseq/provider/ibmmq/internal/mqistandin"
)

// clientProcess receives one message, says so, and commits when told to.
func clientProcess() int {
	fail := func(err error) int {
		fmt.Println(err)
		return 1
	}
	ctx, err := factory().CreateContextWithSessionMode(transacted)
	if err != nil {
		return fail(err)
	}
	defer ctx.Close()
	c, err := ctx.CreateConsumer(ctx.CreateQueue(q1))
	if err != nil {
		return fail(err)
	}
	s, err := c.ReceiveStringBody(10000)
	if err != nil {
		return fail(err)
	}
	fmt.Println("got", *s)
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return fail(err)
	}
	code := "0"
	if err := ctx.Commit(); err != nil {
		code = err.GetErrorCode()
	}
	fmt.Println("commit", code)
	return 0
}

type client struct {
	cmd *exec.Cmd
	in  *os.File
	out *bufio.Scanner
}

func startClient(t *testing.T, server string) *client {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "MQISTANDIN_TEST_CLIENT=1", "MQSTANDIN_SERVER="+server)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin = r
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	c := &client{cmd, w, bufio.NewScanner(out)}
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		_ = c.in.Close()
		_ = c.cmd.Wait()
	})
	return c
}

func (c *client) line() string {
	if !c.out.Scan() {
		return "(end)"
	}
	return c.out.Text()
}

func (c *client) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// freeze returns when every thread of the process has stopped.
func freeze(t *testing.T, p *os.Process) {
	t.Helper()
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	soon(t, "frozen", func() bool {
		tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.Pid))
		if err != nil || len(tasks) == 0 {
			t.Fatal("no such process", err)
		}
		for _, f := range tasks {
			b, err := os.ReadFile(f)
			if err != nil || !strings.Contains(string(b), ") T ") {
				return false
			}
		}
		return true
	})
}

func (c *client) commit(t *testing.T) string {
	t.Helper()
	if _, err := fmt.Fprintln(c.in, "go"); err != nil {
		t.Fatal(err)
	}
	return c.line()
}

// A consumer that is killed gives its message back at once, at its place.
func TestClientKilled(t *testing.T) {
	q := startQueueManager(t)
	send(t, open(t, autoAck), q1, "a", "b")
	c := startClient(t, q.Address)
	equal(t, c.line(), "got a")
	equal(t, mqistandin.Available(q1), 1)
	c.signal(t, syscall.SIGKILL)
	soon(t, "the message is back", func() bool { return mqistandin.Available(q1) == 2 })
	r := consume(t, open(t, autoAck), q1)
	equal(t, text(t, r)+text(t, r), "ab")
}

// A frozen one keeps it for the heartbeat time; another takes over; thawed, the
// first hears that its connection is broken.
func TestClientFrozen(t *testing.T) {
	q := startQueueManager(t)
	mqistandin.Heartbeat(time.Second)
	send(t, open(t, autoAck), q1, "a", "b")
	c := startClient(t, q.Address)
	equal(t, c.line(), "got a")
	ctx := open(t, transacted)
	r := consume(t, ctx, q1)
	freeze(t, c.cmd.Process)
	equal(t, text(t, r)+text(t, r), "b-") // a is still locked
	soon(t, "the message is back", func() bool { return mqistandin.Available(q1) == 1 })
	equal(t, text(t, r), "a")
	ok(t, ctx.Commit())
	c.signal(t, syscall.SIGCONT)
	equal(t, c.commit(t), "commit 2009")
	equal(t, mqistandin.Available(q1), 0)
}

func TestTwoClientsShareAQueue(t *testing.T) {
	q := startQueueManager(t)
	send(t, open(t, autoAck), q1, "a", "b")
	first, second := startClient(t, q.Address), startClient(t, q.Address)
	got := map[string]bool{first.line(): true, second.line(): true}
	equal(t, got, map[string]bool{"got a": true, "got b": true})
	equal(t, first.commit(t), "commit 0")
	equal(t, second.commit(t), "commit 0")
	equal(t, mqistandin.Available(q1)+mqistandin.Uncommitted(), 0)
}

// A queue manager that is killed or frozen: clients get 2009, and 2538 afterwards.
func TestQueueManagerGone(t *testing.T) {
	t.Run("killed", func(t *testing.T) {
		q := startQueueManager(t)
		ctx := open(t, transacted)
		send(t, ctx, q1, "x")
		if err := q.Process().Kill(); err != nil {
			t.Fatal(err)
		}
		gives(t, ctx.Commit(), "2009")
		soon(t, "2538", func() bool { // until its socket is closed it may seem to answer
			_, err := factory().CreateContext()
			return err != nil && err.GetErrorCode() == "2538"
		})
	})
	t.Run("frozen", func(t *testing.T) {
		q := startQueueManager(t)
		mqistandin.Heartbeat(500 * time.Millisecond)
		ctx := open(t, transacted)
		send(t, ctx, q1, "x")
		freeze(t, q.Process())
		gives(t, ctx.Commit(), "2009")
		if err := q.Process().Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	})
}

// The channel's own connection name leads to the queue manager, as in production.
func TestConnectionName(t *testing.T) {
	q, err := mqistandin.StartQueueManager("tcp:127.0.0.1:0", "MQSTANDIN_QUEUES=ORDERS:bothresh=3")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	}()
	defer mqistandin.Use("")
	port := q.Address[strings.LastIndexByte(q.Address, ':')+1:]
	mqistandin.Use("tcp:")
	cf := factory()
	cf.Hostname = "127.0.0.1"
	if _, err := fmt.Sscan(port, &cf.PortNumber); err != nil {
		t.Fatal(err)
	}
	ctx, jerr := cf.CreateContext()
	ok(t, jerr)
	defer ctx.Close()
	send(t, ctx, "ORDERS", "x")
	mqistandin.Use(q.Address)
	equal(t, mqistandin.Available("ORDERS"), 1)
	cf.PortNumber = 1
	mqistandin.Use("tcp:")
	_, jerr = cf.CreateContext()
	gives(t, jerr, "2538")
}
