//go:build mqistandin

package mqistandin_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ibm-messaging/mq-golang-jms20/jms20subset"
	"github.com/ibm-messaging/mq-golang/v5/ibmmq"

	"github.com/keyseq/keyseq/provider/ibmmq/internal/mqistandin"
)

func TestTextBytesAndProperties(t *testing.T) {
	onBoth(t, func(t *testing.T) {
		ctx := open(t, autoAck)
		queue := ctx.CreateQueue(q1)
		m := ctx.CreateTextMessageWithString("héllo")
		v := "green"
		ok(t, m.SetStringProperty("colour", &v))
		ok(t, m.SetIntProperty("n", 42))
		ok(t, m.SetDoubleProperty("d", 2.5))
		ok(t, m.SetBooleanProperty("b", true))
		ok(t, m.SetJMSCorrelationID("order-7"))
		ok(t, m.SetJMSReplyTo(ctx.CreateQueue("DEV.QUEUE.2")))
		ok(t, ctx.CreateProducer().Send(queue, m))
		body := bytes.Repeat([]byte{0, 1, 255}, 5000)
		ok(t, ctx.CreateProducer().SendBytes(queue, body))

		c := consume(t, ctx, q1)
		r, err := c.ReceiveNoWait()
		ok(t, err)
		equal(t, *r.(jms20subset.TextMessage).GetText(), "héllo")
		equal(t, r.GetJMSCorrelationID(), "order-7")
		equal(t, r.GetJMSMessageID(), m.GetJMSMessageID())
		equal(t, r.GetJMSReplyTo().GetDestinationName(), "DEV.QUEUE.2")
		s, err := r.GetStringProperty("colour")
		ok(t, err)
		n, err := r.GetIntProperty("n")
		ok(t, err)
		d, err := r.GetDoubleProperty("d")
		ok(t, err)
		b, err := r.GetBooleanProperty("b")
		ok(t, err)
		names, err := r.GetPropertyNames()
		ok(t, err)
		equal(t, fmt.Sprintf("%v %v %v %v %v", *s, n, d, b, names), "green 42 2.5 true [colour n d b]")
		if off := time.Since(time.UnixMilli(r.GetJMSTimestamp())).Abs(); off > time.Second {
			t.Fatal("timestamp is off by", off)
		}
		r, err = c.ReceiveNoWait()
		ok(t, err)
		if !bytes.Equal(*r.(jms20subset.BytesMessage).ReadBytes(), body) {
			t.Fatal("bytes differ")
		}
	})
}

func TestRollbackKeepsPlaceAndCounts(t *testing.T) {
	onBoth(t, func(t *testing.T) {
		ctx := open(t, transacted)
		send(t, ctx, q1, "a", "b", "c")
		equal(t, mqistandin.Available(q1), 0)
		ok(t, ctx.Commit())
		c := consume(t, ctx, q1)
		for round := range 3 {
			for _, want := range []string{"a", "b"} {
				m, err := c.ReceiveNoWait()
				ok(t, err)
				equal(t, *m.(jms20subset.TextMessage).GetText(), want)
				equal(t, backoutCount(m), round)
			}
			ok(t, ctx.Rollback())
		}
		equal(t, text(t, c)+text(t, c)+text(t, c)+text(t, c), "abc-")
		ok(t, ctx.Commit())
		equal(t, mqistandin.Available(q1)+mqistandin.Uncommitted(), 0)
	})
}

func TestContextsCompete(t *testing.T) {
	onBoth(t, func(t *testing.T) {
		p, a, b := open(t, autoAck), open(t, transacted), open(t, transacted)
		ca, cb := consume(t, a, q1), consume(t, b, q1)
		send(t, p, q1, "1", "2")
		equal(t, text(t, ca)+text(t, cb)+text(t, ca), "12-")
		ok(t, a.Rollback())
		equal(t, text(t, cb), "1")
		ok(t, b.Commit())
		equal(t, mqistandin.Available(q1), 0)
	})
}

// A waiting receive is woken by a put, a commit and a rollback.
func TestReceiveIsWoken(t *testing.T) {
	onBoth(t, func(t *testing.T) {
		p, ctx, o := open(t, transacted), open(t, transacted), open(t, autoAck)
		c := consume(t, ctx, q1)
		m, err := c.Receive(20)
		ok(t, err)
		equal(t, m, nil)
		send(t, o, q1, "x")
		held := consume(t, p, q1)
		equal(t, text(t, held), "x")
		for _, wake := range []func(){
			func() { send(t, o, q1, "x") },
			func() { ok(t, p.Rollback()) },
			func() { send(t, p, q1, "x"); ok(t, p.Commit()) },
		} {
			got := make(chan string, 1)
			go func() {
				s, err := c.ReceiveStringBody(10000)
				if err != nil || s == nil {
					got <- fmt.Sprint(err)
					return
				}
				got <- *s
			}()
			soon(t, "a waiter", func() bool { return mqistandin.Waiters(q1) == 1 })
			wake()
			equal(t, <-got, "x")
			ok(t, ctx.Commit())
		}
	})
}

func TestSelectorsPriorityBrowse(t *testing.T) {
	onBoth(t, func(t *testing.T) {
		ctx, tx := open(t, autoAck), open(t, transacted)
		queue := ctx.CreateQueue(q1)
		var ids []string
		for i := range 3 {
			m := ctx.CreateTextMessageWithString(fmt.Sprint(i))
			ok(t, m.SetJMSCorrelationID(fmt.Sprintf("order-%d", i)))
			ok(t, ctx.CreateProducer().Send(queue, m))
			ids = append(ids, m.GetJMSMessageID())
		}
		c, err := ctx.CreateConsumerWithSelector(queue, "JMSMessageID = '"+ids[2]+"'")
		ok(t, err)
		d, err := ctx.CreateConsumerWithSelector(queue, "JMSCorrelationID = 'order-1'")
		ok(t, err)
		equal(t, text(t, c)+text(t, c)+text(t, d)+text(t, consume(t, ctx, q1)), "2-10")

		ok(t, ctx.CreateProducer().SetPriority(2).SendString(queue, "low"))
		ok(t, ctx.CreateProducer().SetPriority(7).SendString(queue, "high"))
		ok(t, ctx.CreateProducer().SetPriority(7).SendString(queue, "higher"))
		equal(t, text(t, consume(t, tx, q1)), "high") // taken, not committed: browsing skips it
		b, err := ctx.CreateBrowser(queue)
		ok(t, err)
		defer b.Close()
		it, err := b.GetEnumeration()
		ok(t, err)
		var seen []string
		for {
			m, err := it.GetNext()
			ok(t, err)
			if m == nil {
				break
			}
			seen = append(seen, *m.(jms20subset.TextMessage).GetText())
		}
		equal(t, seen, []string{"higher", "low"})
		ok(t, tx.Rollback())
		equal(t, mqistandin.Available(q1), 3)
	})
}

func TestHundredTransactedContexts(t *testing.T) {
	const contexts, messages = 100, 1000
	onBoth(t, func(t *testing.T) {
		p := open(t, autoAck)
		for i := range messages {
			send(t, p, q1, fmt.Sprint(i))
		}
		var left atomic.Int64
		left.Store(messages)
		var seen sync.Map
		var wg sync.WaitGroup
		for k := range contexts {
			ctx := open(t, transacted)
			c := consume(t, ctx, q1)
			wg.Go(func() {
				for n := 0; left.Load() > 0; n++ {
					s, err := c.ReceiveStringBody(20)
					if err != nil {
						t.Error(err)
						return
					}
					if s == nil {
						continue
					}
					if (n+k)%5 == 0 {
						err = ctx.Rollback()
					} else {
						if _, twice := seen.LoadOrStore(*s, k); twice {
							t.Error("twice", *s)
						}
						err = ctx.Commit()
						left.Add(-1)
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		equal(t, mqistandin.Available(q1)+mqistandin.Uncommitted(), 0)
	})
}

// What the provider asks about its queue, through mq-golang.
func TestInquireBackoutRuleAndOpenHandles(t *testing.T) {
	onBoth(t, func(t *testing.T) {
		mqistandin.Define("ORDERS:bothresh=3:boqname=ORDERS.BACKOUT,ORDERS.BACKOUT")
		qm, err := ibmmq.Connx("QM1", ibmmq.NewMQCNO())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = qm.Disc() }()
		od := ibmmq.NewMQOD()
		od.ObjectName = "ORDERS"
		o, err := qm.Open(od, ibmmq.MQOO_INQUIRE)
		if err != nil {
			t.Fatal(err)
		}
		rule := func() string {
			v, err := o.Inq([]int32{ibmmq.MQIA_BACKOUT_THRESHOLD, ibmmq.MQCA_BACKOUT_REQ_Q_NAME, ibmmq.MQIA_OPEN_INPUT_COUNT})
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprintf("%v %s %v", v[ibmmq.MQIA_BACKOUT_THRESHOLD],
				strings.TrimSpace(fmt.Sprint(v[ibmmq.MQCA_BACKOUT_REQ_Q_NAME])), v[ibmmq.MQIA_OPEN_INPUT_COUNT])
		}
		equal(t, rule(), "3 ORDERS.BACKOUT 0")
		c := consume(t, open(t, transacted), "ORDERS")
		equal(t, rule(), "3 ORDERS.BACKOUT 1")
		// A dead connection's handle counts until the queue manager notices.
		mqistandin.DetectAfter(-1)
		equal(t, mqistandin.BreakApplication("test", false), 1)
		equal(t, text(t, c), "2009")
		equal(t, rule(), "3 ORDERS.BACKOUT 1")
		equal(t, mqistandin.Notice(), 1)
		equal(t, rule(), "3 ORDERS.BACKOUT 0")
	})
}
