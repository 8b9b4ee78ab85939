//go:build mqistandin

package ibmmq

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/ibmmq/internal/mqistandin"
)

// A sign of life is as old as its question: the answer may have lain in the socket while this process stood still, and the role gone meanwhile.
func TestSignOfLifeIsAsOldAsItsQuestion(t *testing.T) {
	mqistandin.Reset()
	mqistandin.Define("SIGN,SIGN.LOCK:noshare:excl")
	port := os.Getenv("MQSTANDIN_CONTROL")
	port = port[strings.LastIndexByte(port, ':')+1:]
	f := &Factory{QueueManager: "QM1", Connections: "127.0.0.1(" + port + ")", Channel: "DEV.APP.SVRCONN", User: "app", Password: "passw0rd", Heartbeat: 10 * time.Second}
	conn, err := f.Connect(t.Context(), jms.Subscription{Queue: "SIGN", SingleActiveConsumer: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	c := conn.(*connection)
	mqistandin.Hold("MQBACK", true)
	wait := func(limit time.Duration, until func() bool) {
		for end := time.Now().Add(limit); !until() && time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		}
	}
	wait(5*time.Second, func() bool { return mqistandin.Held() > 0 })
	held := time.Now()
	before := *c.lastSign.Load()
	wait(200*time.Millisecond, func() bool { return false }) // what the answer takes
	mqistandin.Release()
	wait(5*time.Second, func() bool { return !c.lastSign.Load().Equal(before) })
	if sign := *c.lastSign.Load(); sign.Equal(before) || sign.After(held) {
		t.Errorf("the sign of life is of %v after the question was on its way; want before", sign.Sub(held))
	}
}

// An instance that stood still by either clock asks before it goes on: the monotonic one stands still while the machine is suspended.
func TestStandstillByEitherClock(t *testing.T) {
	now := time.Now()
	suspended := now.Add(-time.Minute)
	clocks := func(t *time.Time) *struct {
		wall uint64
		ext  int64
	} {
		return (*struct {
			wall uint64
			ext  int64
		})(unsafe.Pointer(t))
	}
	clocks(&suspended).ext = clocks(&now).ext
	if now.Sub(suspended) != 0 || now.Round(0).Sub(suspended.Round(0)) != time.Minute {
		t.Fatalf("this version of Go keeps its clocks elsewhere: %v, %v", now, suspended)
	}
	setBack := now.Add(-time.Minute)
	clocks(&setBack).wall = clocks(&now).wall
	for name, then := range map[string]time.Time{"suspended": suspended, "the wall clock set back": setBack} {
		if d := between(then, now); d != time.Minute {
			t.Errorf("%s: it is %v ago, want a minute", name, d)
		}
	}
}
