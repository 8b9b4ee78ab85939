//go:build !mqistandin

package ibmmq_test

import (
	"cmp"
	"os"
	"testing"

	"github.com/keyseq/keyseq/provider/ibmmq"
)

// The real queue manager of the environment. It needs the queues of examples/ibmmq/20-keyseq.mqsc, of which the tests take
// away everything.
//
//	KEYSEQ_IBMMQ_CONNECTIONS="127.0.0.1(1414)" KEYSEQ_IBMMQ_PASSWORD=passw0rd go test ./...
const connectionsEnv = "KEYSEQ_IBMMQ_CONNECTIONS"

func setUp() (stop func()) { return func() {} }

func newBench(t testing.TB) *bench {
	if os.Getenv(connectionsEnv) == "" {
		t.Skip("no queue manager: docker compose -f examples/ibmmq/compose.yaml up -d, then set KEYSEQ_IBMMQ_CONNECTIONS=127.0.0.1(1414) KEYSEQ_IBMMQ_PASSWORD=passw0rd")
	}
	b := &bench{t: t, queue: "DEV.SEQ", other: "DEV.SEQ.BO", lock: "DEV.SEQ.LOCK", unknown: "DEV.NOWHERE"}
	b.bodies(b.queue)
	b.bodies(b.other)
	return b
}

func (b *bench) factory(configure ...func(*ibmmq.Factory)) *ibmmq.Factory {
	env := func(name, otherwise string) string { return cmp.Or(os.Getenv("KEYSEQ_IBMMQ_"+name), otherwise) }
	f := &ibmmq.Factory{
		QueueManager: env("QUEUE_MANAGER", "QM1"), Connections: os.Getenv(connectionsEnv), Channel: env("CHANNEL", "DEV.APP.SVRCONN"),
		User: env("USER", "app"), Password: os.Getenv("KEYSEQ_IBMMQ_PASSWORD"), Heartbeat: 5e9, LockQueue: "DEV.SEQ.LOCK",
	}
	for _, c := range configure {
		c(f)
	}
	return f
}
