//go:build mqistandin || mqreal

// Package assumptions_test holds what the stand-in assumes of IBM MQ and what can
// be tried on a real queue manager without any control of it. The same tests run
// on both: docs/mqistandin.md says how.
package assumptions_test

import (
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ibm-messaging/mq-golang-jms20/jms20subset"
	"github.com/ibm-messaging/mq-golang-jms20/mqjms"
	"github.com/ibm-messaging/mq-golang/v5/ibmmq"
	"go.uber.org/goleak"
)

const (
	transacted = jms20subset.JMSContextSESSIONTRANSACTED
	autoAck    = jms20subset.JMSContextAUTOACKNOWLEDGE
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func env(name, otherwise string) string {
	if v := os.Getenv("KEYSEQ_IBMMQ_" + name); v != "" {
		return v
	}
	return otherwise
}

// The queue is emptied: it must be one for tests.
var queue = env("QUEUE", "DEV.QUEUE.1")

func factory(t testing.TB) mqjms.ConnectionFactoryImpl {
	port, err := strconv.Atoi(env("PORT", "1414"))
	if err != nil {
		t.Fatal("KEYSEQ_IBMMQ_PORT:", err)
	}
	return mqjms.ConnectionFactoryImpl{QMName: env("QMGR", "QM1"), Hostname: env("HOST", "localhost"), PortNumber: port,
		ChannelName: env("CHANNEL", "DEV.APP.SVRCONN"), UserName: env("USER", "app"), Password: env("PASSWORD", "passw0rd")}
}

func open(t testing.TB, mode int) (jms20subset.JMSContext, jms20subset.JMSConsumer) {
	t.Helper()
	ctx, err := factory(t).CreateContextWithSessionMode(mode)
	ok(t, err)
	t.Cleanup(ctx.Close)
	c, err := ctx.CreateConsumer(ctx.CreateQueue(queue))
	ok(t, err)
	return ctx, c
}

// fill empties the queue and sends the texts.
func fill(t testing.TB, texts ...string) jms20subset.JMSContext {
	t.Helper()
	cf := factory(t)
	cf.ReceiveBufferSize = 4 << 20
	ctx, err := cf.CreateContext()
	ok(t, err)
	t.Cleanup(ctx.Close)
	c, err := ctx.CreateConsumer(ctx.CreateQueue(queue))
	ok(t, err)
	defer c.Close()
	for m, err := c.ReceiveNoWait(); m != nil || err != nil; m, err = c.ReceiveNoWait() {
		ok(t, err)
	}
	for _, s := range texts {
		ok(t, ctx.CreateProducer().SendString(ctx.CreateQueue(queue), s))
	}
	return ctx
}

func ok(t testing.TB, err jms20subset.JMSException) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s %s: %v", err.GetErrorCode(), err.GetReason(), err.GetLinkedError())
	}
}

func equal(t testing.TB, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

// next is the message's text and backout count, "-" where there is none, or the reason.
func next(c jms20subset.JMSConsumer) string {
	m, err := c.ReceiveNoWait()
	switch {
	case err != nil:
		return err.GetErrorCode()
	case m == nil:
		return "-"
	}
	md := reflect.ValueOf(m).Elem().FieldByName("MessageImpl").FieldByName("mqmd").Elem()
	return fmt.Sprintf("%s/%d", *m.(jms20subset.TextMessage).GetText(), md.FieldByName("BackoutCount").Int())
}

// A message that is backed out is at its old place again, whatever the order in
// which several contexts back out.
func TestBackedOutKeepsItsPlace(t *testing.T) {
	fill(t, "1", "2", "3", "4")
	var ctx []jms20subset.JMSContext
	for _, want := range []string{"1/0", "2/0", "3/0"} {
		x, c := open(t, transacted)
		equal(t, next(c), want)
		ctx = append(ctx, x)
	}
	for i := range ctx {
		ok(t, ctx[len(ctx)-1-i].Rollback())
	}
	_, c := open(t, transacted)
	for _, want := range []string{"1/1", "2/1", "3/1", "4/0", "-"} {
		equal(t, next(c), want)
	}
}

// What is got under syncpoint is skipped by others and back when it is closed unsettled.
func TestCloseBacksOut(t *testing.T) {
	fill(t, "1", "2")
	ctx, c := open(t, transacted)
	equal(t, next(c), "1/0")
	other, d := open(t, transacted)
	equal(t, next(d), "2/0")
	ok(t, other.Commit())
	ctx.Close()
	equal(t, next(d), "1/1")
	ok(t, other.Commit())
	equal(t, next(d), "-")
	equal(t, next(c), "2018") // and its handle belongs to nobody else
}

// MQDISC without MQBACK commits.
func TestDisconnectCommits(t *testing.T) {
	fill(t)
	cno, cd, csp := ibmmq.NewMQCNO(), ibmmq.NewMQCD(), ibmmq.NewMQCSP()
	cf := factory(t)
	cd.ChannelName, cd.ConnectionName = cf.ChannelName, fmt.Sprintf("%s(%d)", cf.Hostname, cf.PortNumber)
	csp.AuthenticationType, csp.UserId, csp.Password = ibmmq.MQCSP_AUTH_USER_ID_AND_PWD, cf.UserName, cf.Password
	cno.ClientConn, cno.SecurityParms, cno.Options = cd, csp, ibmmq.MQCNO_CLIENT_BINDING
	qm, err := ibmmq.Connx(cf.QMName, cno)
	if err != nil {
		t.Fatal(err)
	}
	od, md, pmo := ibmmq.NewMQOD(), ibmmq.NewMQMD(), ibmmq.NewMQPMO()
	od.ObjectName = queue
	md.Format = ibmmq.MQFMT_STRING
	pmo.Options = ibmmq.MQPMO_SYNCPOINT
	if err := qm.Put1(od, md, pmo, []byte("kept")); err != nil {
		t.Fatal(err)
	}
	if err := qm.Disc(); err != nil {
		t.Fatal(err)
	}
	_, c := open(t, autoAck)
	equal(t, next(c), "kept/0")
}

// A message longer than the buffer stays at the head, and its count does not rise.
func TestTooLongStaysAtTheHead(t *testing.T) {
	fill(t, strings.Repeat("x", 32769), "small")
	ctx, c := open(t, transacted)
	equal(t, next(c), "2080")
	ok(t, ctx.Rollback())
	equal(t, next(c), "2080")
	cf := factory(t)
	cf.ReceiveBufferSize = 1 << 20
	big, err := cf.CreateContextWithSessionMode(transacted)
	ok(t, err)
	defer big.Close()
	d, err := big.CreateConsumer(big.CreateQueue(queue))
	ok(t, err)
	equal(t, next(d), strings.Repeat("x", 32769)+"/0")
}

// The limit of the client's own channel definition gives another reason.
func TestChannelLimit(t *testing.T) {
	fill(t, strings.Repeat("x", 2000))
	ctx, err := factory(t).CreateContext(jms20subset.WithMaxMsgLength(1000))
	ok(t, err)
	defer ctx.Close()
	c, err := ctx.CreateConsumer(ctx.CreateQueue(queue))
	ok(t, err)
	equal(t, next(c), "2010")
}

// Browsing does not go with a unit of work.
func TestBrowseOnTransactedContext(t *testing.T) {
	fill(t, "1")
	ctx, err := factory(t).CreateContextWithSessionMode(transacted)
	ok(t, err)
	defer ctx.Close()
	b, err := ctx.CreateBrowser(ctx.CreateQueue(queue))
	ok(t, err)
	defer b.Close()
	it, err := b.GetEnumeration()
	ok(t, err)
	_, err = it.GetNext()
	if err == nil || err.GetErrorCode() != "2046" {
		t.Fatal(err)
	}
}

// A message whose time runs out while it is held is not seen again.
func TestExpiresWhileHeld(t *testing.T) {
	ctx := fill(t)
	ok(t, ctx.CreateProducer().SetTimeToLive(1000).SendString(ctx.CreateQueue(queue), "brief"))
	held, c := open(t, transacted)
	equal(t, next(c), "brief/0")
	<-time.After(1200 * time.Millisecond) // expiry is the queue manager's clock
	ok(t, held.Rollback())
	equal(t, next(c), "-")
}

// Priority first, then the order of arrival; not the order of commits.
func TestOrder(t *testing.T) {
	ctx := fill(t)
	tx, _ := open(t, transacted)
	q := ctx.CreateQueue(queue)
	ok(t, tx.CreateProducer().SendString(q, "first"))
	ok(t, ctx.CreateProducer().SendString(q, "second"))
	ok(t, ctx.CreateProducer().SetPriority(9).SendString(q, "urgent"))
	_, c := open(t, autoAck)
	equal(t, next(c), "urgent/0")
	ok(t, tx.Commit())
	equal(t, next(c), "first/0")
	equal(t, next(c), "second/0")
	equal(t, next(c), "-")
}
