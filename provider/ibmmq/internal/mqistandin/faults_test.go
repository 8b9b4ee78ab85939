//go:build mqistandin

package mqistandin_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ibm-messaging/mq-golang-jms20/jms20subset"

	"github.com/keyseq/keyseq/provider/ibmmq/internal/mqistandin"
)

// begin receives one of two messages in a transacted context.
func begin(t *testing.T) (jms20subset.JMSContext, jms20subset.JMSConsumer) {
	t.Helper()
	send(t, open(t, autoAck), q1, "a", "b")
	ctx := open(t, transacted)
	c := consume(t, ctx, q1)
	equal(t, text(t, c), "a")
	return ctx, c
}

func TestCommitFails(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func()
		code string
		left int // messages available then
	}{
		{"backed out", func() { mqistandin.FailNext("MQCMIT", mqistandin.BackedOut, 1) }, "2003", 2},
		{"request lost", func() { mqistandin.FailNext("MQCMIT", mqistandin.ConnectionBroken, 1) }, "2009", 2},
		{"done, answer lost", func() { mqistandin.FailAfter("MQCMIT", mqistandin.ConnectionBroken, 1) }, "2009", 1},
		{"done, queue manager stopping", func() { mqistandin.FailAfter("MQCMIT", mqistandin.QMgrStopping, 1) }, "2162", 1},
		{"log full before", func() { mqistandin.BackOut(1) }, "2003", 2},
		{"connection broken before", func() { mqistandin.Break() }, "2009", 2},
		{"oldest connection broken", func() { mqistandin.BreakOldest(1, true) }, "2009", 2},
		{"restart", func() { mqistandin.Restart(0) }, "2009", 2},
		{"channel stopping", func() { mqistandin.Stop(mqistandin.ConnectionStopping) }, "2203", 2},
		{"queue manager stopping", func() { mqistandin.Stop(mqistandin.QMgrStopping) }, "2162", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			onBoth(t, func(t *testing.T) {
				ctx, _ := begin(t)
				c.set()
				gives(t, ctx.Commit(), c.code)
				equal(t, mqistandin.Available(q1), c.left)
				mqistandin.Stop(0)
			})
		})
	}
}

// The message is locked by a connection that is gone; a new one reads what is
// behind it; then the queue manager notices, and the first comes late.
func TestLateReturn(t *testing.T) {
	for _, c := range []struct {
		name string
		lose func(t *testing.T)
	}{
		{"connection breaks while held", func(t *testing.T) {
			ctx, _ := begin(t)
			mqistandin.BreakUnnoticed()
			gives(t, ctx.Commit(), "2009")
		}},
		{"answer to the get is lost", func(t *testing.T) {
			send(t, open(t, autoAck), q1, "a", "b")
			c := consume(t, open(t, transacted), q1)
			mqistandin.FailAfter("MQGET", mqistandin.ConnectionBroken, 1)
			equal(t, text(t, c), "2009")
		}},
		{"connection breaks while waiting", func(t *testing.T) {
			c := consume(t, open(t, transacted), q1)
			end := make(chan string, 1)
			go func() {
				_, err := c.Receive(60000)
				end <- fmt.Sprint(err)
			}()
			soon(t, "a waiter", func() bool { return mqistandin.Waiters(q1) == 1 })
			mqistandin.BreakUnnoticed()
			if got := <-end; got == "<nil>" {
				t.Fatal("the waiting receive did not fail")
			}
			soon(t, "no waiter", func() bool { return mqistandin.Waiters(q1) == 0 })
			send(t, open(t, autoAck), q1, "a", "b") // a goes to the get nobody waits for
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			onBoth(t, func(t *testing.T) {
				mqistandin.DetectAfter(-1)
				c.lose(t)
				if mqistandin.Unnoticed() == 0 {
					t.Fatal("noticed at once")
				}
				ctx := open(t, transacted)
				r := consume(t, ctx, q1)
				equal(t, text(t, r)+text(t, r), "b-")
				mqistandin.Notice()
				m, err := r.ReceiveNoWait()
				ok(t, err)
				equal(t, *m.(jms20subset.TextMessage).GetText(), "a")
				equal(t, backoutCount(m), 1)
				ok(t, ctx.Commit())
			})
		})
	}
}

func TestLossIsNoticedInItsTime(t *testing.T) {
	onBoth(t, func(t *testing.T) {
		begin(t)
		start := time.Now()
		mqistandin.DetectAfter(100 * time.Millisecond)
		mqistandin.BreakUnnoticed()
		soon(t, "the message is back", func() bool { return mqistandin.Available(q1) == 2 })
		if d := time.Since(start); d < 100*time.Millisecond {
			t.Fatal("noticed after", d)
		}
	})
}

// Calls that hang, before or after they took effect, until they are released.
func TestHeldCall(t *testing.T) {
	for _, done := range []bool{false, true} {
		t.Run(fmt.Sprint("done ", done), func(t *testing.T) {
			onBoth(t, func(t *testing.T) {
				ctx, _ := begin(t)
				mqistandin.Hold("MQCMIT", done)
				t.Cleanup(mqistandin.Release)
				end := make(chan jms20subset.JMSException, 1)
				go func() { end <- ctx.Commit() }()
				soon(t, "a held call", func() bool { return mqistandin.Held() == 1 })
				equal(t, mqistandin.Uncommitted() == 0, done)
				select {
				case err := <-end:
					t.Fatal("returned", err)
				default:
				}
				mqistandin.Release()
				ok(t, <-end)
				equal(t, mqistandin.Uncommitted(), 0)
			})
		})
	}
}

// Backed out by the queue manager: another context may have the message before the
// holder hears of it, which is at its next call under syncpoint.
func TestBackedOutUnawares(t *testing.T) {
	onBoth(t, func(t *testing.T) {
		ctx, c := begin(t)
		equal(t, mqistandin.BackOut(1), 1)
		other := open(t, transacted)
		equal(t, text(t, consume(t, other, q1)), "a")
		ok(t, other.Commit())
		equal(t, text(t, c), "2003")
		ok(t, ctx.Rollback())
		equal(t, text(t, c), "b")
	})
}

func TestQuiescing(t *testing.T) {
	for reason, connect := range map[int]string{mqistandin.QMgrQuiescing: "2161", mqistandin.ConnectionQuiescing: "2537"} {
		t.Run(fmt.Sprint(reason), func(t *testing.T) {
			onBoth(t, func(t *testing.T) {
				ctx, c := begin(t)
				mqistandin.Stop(reason)
				equal(t, text(t, c), fmt.Sprint(reason))
				_, err := factory().CreateContext()
				gives(t, err, connect)
				ok(t, ctx.Commit()) // what is open may be finished
				mqistandin.Stop(0)
				equal(t, text(t, c), "b")
			})
		})
	}
}

func TestRefusals(t *testing.T) {
	onBoth(t, func(t *testing.T) {
		connect := func(want string) {
			t.Helper()
			_, err := factory().CreateContext()
			gives(t, err, want)
		}
		ctx := open(t, autoAck)
		c := consume(t, ctx, q1)
		for _, limit := range []int{mqistandin.ChannelNotAvailable, mqistandin.MaxConnsReached} {
			mqistandin.LimitConnections(1, limit)
			connect(fmt.Sprint(limit))
		}
		mqistandin.LimitConnections(-1, 0)
		mqistandin.Restart(time.Hour)
		connect("2059")
		mqistandin.Reset()
		mqistandin.FailNext("MQCONNX", 2538, 1)
		connect("2538")

		cf := factory()
		cf.Password = "wrong"
		_, err := cf.CreateContext()
		gives(t, err, "2035")
		cf = factory()
		cf.QMName = "QM2"
		_, err = cf.CreateContext()
		gives(t, err, "2058")
		cf = factory()
		cf.ChannelName = "NO.SUCH"
		_, err = cf.CreateContext()
		gives(t, err, "2540")

		equal(t, text(t, c), "2009") // from the restart
		ctx = open(t, autoAck)
		mqistandin.Define("SECRET:auth=bpi,ONE:maxdepth=1,LOCK:noshare," + q1 + ":get=0")
		c = consume(t, ctx, q1)
		equal(t, text(t, c), "2016")
		mqistandin.Define(q1 + ":get=1:put=0")
		gives(t, ctx.CreateProducer().SendString(ctx.CreateQueue(q1), "x"), "2051")
		_, err = ctx.CreateConsumer(ctx.CreateQueue("SECRET"))
		gives(t, err, "2035")
		_, err = ctx.CreateConsumer(ctx.CreateQueue("NO.SUCH"))
		gives(t, err, "2085")
		send(t, ctx, "ONE", "x")
		gives(t, ctx.CreateProducer().SendString(ctx.CreateQueue("ONE"), "x"), "2053")
		consume(t, ctx, "LOCK")
		_, err = ctx.CreateConsumer(ctx.CreateQueue("LOCK"))
		gives(t, err, "2042")
	})
}

func TestWaitingReceiveEnds(t *testing.T) {
	for name, c := range map[string]struct {
		end  func()
		code string
	}{
		"broken":    {func() { mqistandin.Break() }, "2009"},
		"inhibited": {func() { mqistandin.Define(q1 + ":get=0") }, "2016"},
		"quiescing": {func() { mqistandin.Stop(mqistandin.QMgrQuiescing) }, "2161"},
		"stopping":  {func() { mqistandin.Stop(mqistandin.QMgrStopping) }, "2162"},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T) {
				consumer := consume(t, open(t, transacted), q1)
				end := make(chan jms20subset.JMSException, 1)
				go func() {
					_, err := consumer.Receive(0)
					end <- err
				}()
				soon(t, "a waiter", func() bool { return mqistandin.Waiters(q1) == 1 })
				c.end()
				gives(t, <-end, c.code)
			})
		})
	}
}

// A control that is not understood must not pass silently.
func TestControlsRefuse(t *testing.T) {
	mqistandin.Use("")
	for name, call := range map[string]func(){
		"define":   func() { mqistandin.Define("X:nonsense=1") },
		"queue":    func() { mqistandin.Available("NO.SUCH") },
		"call":     func() { mqistandin.FailNext("MQNOTHING", 2009, 1) },
		"stop":     func() { mqistandin.Stop(2053) },
		"count":    func() { mqistandin.FailNext("MQGET", 2009, -1) },
		"passed":   func() { mqistandin.Passed("nobody of that name") },
		"no there": func() { mqistandin.Use("unix:/nowhere"); mqistandin.Reset() },
	} {
		t.Run(name, func(t *testing.T) {
			defer mqistandin.Use("")
			defer func() {
				if recover() == nil {
					t.Fatal("passed")
				}
			}()
			call()
		})
	}
}
