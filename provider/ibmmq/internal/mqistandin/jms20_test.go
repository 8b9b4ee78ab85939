//go:build mqistandin

package mqistandin_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ibm-messaging/mq-golang-jms20/jms20subset"

	"github.com/keyseq/keyseq/provider/ibmmq/internal/mqistandin"
)

// What jms20 v1.11.0 itself does and a provider has to live with. When one of
// these fails after an update of jms20, the provider's way around it can go.

// The message handle is deleted by the next garbage collection while the message lives.
func TestJMS20PropertiesDieEarly(t *testing.T) {
	mqistandin.Reset()
	ctx := open(t, autoAck)
	m := ctx.CreateTextMessageWithString("x")
	v := "green"
	ok(t, m.SetStringProperty("colour", &v))
	ok(t, ctx.CreateProducer().Send(ctx.CreateQueue(q1), m))
	r, err := consume(t, ctx, q1).ReceiveNoWait()
	ok(t, err)
	soon(t, "2460", func() bool {
		runtime.GC()
		_, err := r.GetStringProperty("colour")
		return err != nil && err.GetErrorCode() == "2460"
	})
	runtime.KeepAlive(r)
	runtime.KeepAlive(m)
}

// A waiting receive keeps every other call of its context waiting.
func TestJMS20ReceiveHoldsItsContext(t *testing.T) {
	mqistandin.Reset()
	ctx := open(t, transacted)
	c := consume(t, ctx, q1)
	end := make(chan struct{})
	go func() {
		defer close(end)
		if _, err := c.Receive(300); err != nil {
			t.Error(err)
		}
	}()
	soon(t, "a waiter", func() bool { return mqistandin.Waiters(q1) == 1 })
	start := time.Now()
	ok(t, ctx.Commit())
	if d := time.Since(start); d < 200*time.Millisecond {
		t.Fatal("commit waited only", d)
	}
	<-end
}

// A message over the receive buffer stays at the head, and its count does not rise.
func TestJMS20BigMessageBlocksTheQueue(t *testing.T) {
	mqistandin.Reset()
	ctx := open(t, transacted)
	send(t, ctx, q1, strings.Repeat("x", 32769), "small")
	ok(t, ctx.Commit())
	c := consume(t, ctx, q1)
	for range 2 {
		equal(t, text(t, c), "2080")
		ok(t, ctx.Rollback())
	}
	cf := factory()
	cf.ReceiveBufferSize = 1 << 20
	big, err := cf.CreateContextWithSessionMode(transacted)
	ok(t, err)
	defer big.Close()
	m, err := consume(t, big, q1).ReceiveNoWait()
	ok(t, err)
	equal(t, backoutCount(m), 0)
	equal(t, len(*m.(jms20subset.TextMessage).GetText()), 32769)
}

// mq-golang offers 1024 bytes for a property's value.
func TestJMS20LongPropertyCannotBeRead(t *testing.T) {
	mqistandin.Reset()
	m := open(t, autoAck).CreateTextMessageWithString("x")
	v := strings.Repeat("v", 1025)
	ok(t, m.SetStringProperty("long", &v))
	_, err := m.GetStringProperty("long")
	gives(t, err, "2469")
}

// The limit of the channel is the client's: the message stays at the head.
func TestJMS20ChannelLimit(t *testing.T) {
	mqistandin.Reset()
	send(t, open(t, autoAck), q1, strings.Repeat("x", 2000))
	ctx, err := factory().CreateContext(jms20subset.WithMaxMsgLength(1000))
	ok(t, err)
	defer ctx.Close()
	equal(t, text(t, consume(t, ctx, q1)), "2010")
	equal(t, mqistandin.Available(q1), 1)
}

func TestJMS20ClosedContext(t *testing.T) {
	mqistandin.Reset()
	ctx := open(t, transacted)
	c := consume(t, ctx, q1)
	ctx.Close()
	ctx.Close()
	equal(t, text(t, c), "2018")
	gives(t, ctx.Commit(), "2018")
}

// jms20 tells nobody how often a message was delivered.
func TestJMS20HasNoDeliveryCount(t *testing.T) {
	mqistandin.Reset()
	ctx := open(t, transacted)
	send(t, ctx, q1, "x")
	ok(t, ctx.Commit())
	m, err := consume(t, ctx, q1).ReceiveNoWait()
	ok(t, err)
	for _, p := range []string{"JMSXDeliveryCount", "JMSRedelivered", "JMS_IBM_BackoutCount"} {
		if s, err := m.GetStringProperty(p); s != nil || err != nil {
			t.Fatal(p, s, err)
		}
	}
}
