//go:build mqistandin

package ibmmq_test

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keyseq/keyseq/provider/ibmmq"
	"github.com/keyseq/keyseq/provider/ibmmq/internal/mqistandin"
)

var (
	queueManager *mqistandin.QueueManager // in a process of its own, reached over TCP as in production
	queueNumber  atomic.Int64
)

func setUp() (stop func()) {
	q, err := mqistandin.StartQueueManager("tcp:127.0.0.1:0", "MQSTANDIN_HEARTBEAT_MS=1000")
	if err != nil {
		panic(err)
	}
	queueManager = q
	// For this process and the consumers it starts: the connection name leads to the queue manager.
	os.Setenv("MQSTANDIN_CONTROL", q.Address)
	os.Setenv("MQSTANDIN_SERVER", "tcp:")
	return func() {
		if err := q.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}

func newBench(t testing.TB) *bench {
	mqistandin.Reset()
	n := queueNumber.Add(1)
	name := func(part string) string { return fmt.Sprintf("TEST%d.%s", n, part) }
	b := &bench{t: t, queue: name("IN"), other: name("OUT"), lock: name("IN.LOCK"), unknown: name("NOWHERE"), controls: controls{
		define: mqistandin.Define, fail: mqistandin.FailNext, failAfter: mqistandin.FailAfter,
		breakName: func(application string, noticed bool) {
			if !strings.HasSuffix(application, " control") {
				mqistandin.BreakApplication(application+" control", noticed) // first, or a session finds it alive
			}
			mqistandin.BreakApplication(application, noticed)
		},
		restart: mqistandin.Restart, stop: mqistandin.Stop, backOut: mqistandin.BackOut, limit: mqistandin.LimitConnections,
		detect: mqistandin.DetectAfter, notice: func() { mqistandin.Notice() }, hold: mqistandin.Hold, release: mqistandin.Release,
		waiters: mqistandin.Waiters, available: mqistandin.Available, unsettled: mqistandin.Uncommitted, connected: mqistandin.Connections,
		calls: mqistandin.Calls, breakOldest: mqistandin.BreakOldest, handles: mqistandin.MessageHandles,
		held: mqistandin.Held, passed: mqistandin.Passed,
	}}
	b.define(fmt.Sprintf("%s:fifo:bothresh=3:boqname=%s,%s:fifo,%s:noshare:excl", b.queue, b.other, b.other, b.lock))
	away := b.factory()
	away.Connections = "127.0.0.1(1)"
	b.unreachable = away
	// Calls that a failed test left held would hang its Close.
	t.Cleanup(func() {
		mqistandin.Release()
		mqistandin.Stop(0)
	})
	return b
}

func (b *bench) factory(configure ...func(*ibmmq.Factory)) *ibmmq.Factory {
	port := queueManager.Address[strings.LastIndexByte(queueManager.Address, ':')+1:]
	f := &ibmmq.Factory{
		QueueManager: "QM1", Connections: "127.0.0.1(" + port + ")", Channel: "DEV.APP.SVRCONN", User: "app", Password: "passw0rd",
		Heartbeat: time.Second, WaitSlice: 50 * time.Millisecond,
	}
	for _, c := range configure {
		c(f)
	}
	return f
}
