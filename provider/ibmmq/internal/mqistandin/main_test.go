//go:build mqistandin

package mqistandin_test

import (
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/ibm-messaging/mq-golang-jms20/jms20subset"
	"github.com/ibm-messaging/mq-golang-jms20/mqjms"
	"go.uber.org/goleak"

	"github.com/keyseq/keyseq/provider/ibmmq/internal/mqistandin"
)

const (
	q1         = "DEV.QUEUE.1"
	transacted = jms20subset.JMSContextSESSIONTRANSACTED
	autoAck    = jms20subset.JMSContextAUTOACKNOWLEDGE
)

// The test program is also the client process that tests kill and freeze.
func TestMain(m *testing.M) {
	if os.Getenv("MQISTANDIN_TEST_CLIENT") != "" {
		os.Exit(clientProcess())
	}
	goleak.VerifyTestMain(m)
}

// onBoth runs a test on the queue manager in this process and on one in another.
func onBoth(t *testing.T, test func(t *testing.T)) {
	t.Run("one process", func(t *testing.T) {
		mqistandin.Use("")
		mqistandin.Reset()
		test(t)
	})
	t.Run("two processes", func(t *testing.T) {
		startQueueManager(t)
		test(t)
	})
}

func startQueueManager(t *testing.T) *mqistandin.QueueManager {
	t.Helper()
	q, err := mqistandin.StartQueueManager("unix:" + t.TempDir() + "/mq.sock")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		mqistandin.Use("")
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	})
	mqistandin.Use(q.Address)
	return q
}

func factory() mqjms.ConnectionFactoryImpl {
	return mqjms.ConnectionFactoryImpl{QMName: "QM1", Hostname: "localhost", PortNumber: 1414,
		ChannelName: "DEV.APP.SVRCONN", UserName: "app", Password: "passw0rd", ApplName: "test"}
}

func open(t testing.TB, mode int) jms20subset.JMSContext {
	t.Helper()
	ctx, err := factory().CreateContextWithSessionMode(mode)
	ok(t, err)
	t.Cleanup(ctx.Close)
	return ctx
}

func consume(t testing.TB, ctx jms20subset.JMSContext, queue string) jms20subset.JMSConsumer {
	t.Helper()
	c, err := ctx.CreateConsumer(ctx.CreateQueue(queue))
	ok(t, err)
	return c
}

func ok(t testing.TB, err jms20subset.JMSException) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s %s: %v", err.GetErrorCode(), err.GetReason(), err.GetLinkedError())
	}
}

func gives(t testing.TB, err jms20subset.JMSException, code string) {
	t.Helper()
	if err == nil || err.GetErrorCode() != code {
		t.Fatalf("got %v, want %s", err, code)
	}
}

func equal(t testing.TB, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

// soon waits for what another thread or process is about to do.
func soon(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}

func send(t testing.TB, ctx jms20subset.JMSContext, queue string, texts ...string) {
	t.Helper()
	for _, s := range texts {
		ok(t, ctx.CreateProducer().SendString(ctx.CreateQueue(queue), s))
	}
}

// text is the next message's, "-" where there is none, or the reason code.
func text(t testing.TB, c jms20subset.JMSConsumer) string {
	t.Helper()
	s, err := c.ReceiveStringBodyNoWait()
	switch {
	case err != nil:
		return err.GetErrorCode()
	case s == nil:
		return "-"
	}
	return *s
}

// backoutCount reads what jms20 has no property for.
func backoutCount(m jms20subset.Message) int {
	return int(reflect.ValueOf(m).Elem().FieldByName("MessageImpl").FieldByName("mqmd").Elem().FieldByName("BackoutCount").Int())
}
