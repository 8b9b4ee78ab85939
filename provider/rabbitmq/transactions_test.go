package rabbitmq_test

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/keyseq/keyseq/provider/rabbitmq/internal/brokertest"
)

// Why this package has no AMQP transactions: tx.commit applies the acknowledgement of a received message also when the message that was sent in
// the same transaction is not stored, so the received one is lost. The test holds on to what the broker does: it fails when a broker keeps
// the message, and the decision can be made anew.
func TestTransactionsLoseWhatConfirmsKeep(t *testing.T) {
	for _, target := range []string{"missing", "full", "with room"} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			brokertest.OnKinds(t, func(t *testing.T, kind string) {
				b := brokertest.New(t)
				source := b.Queue(amqp.Table{amqp.QueueTypeArg: kind})
				b.Numbered(source, 1)
				ch, err := b.Conn.Channel()
				if err != nil {
					t.Fatal(err)
				}
				returned, closed := ch.NotifyReturn(make(chan amqp.Return, 1)), ch.NotifyClose(make(chan *amqp.Error, 1))
				if err := ch.Tx(); err != nil {
					t.Fatal(err)
				}
				send := func(queue, body string) {
					if err := ch.Publish("", queue, true, false, amqp.Publishing{Body: []byte(body), DeliveryMode: amqp.Persistent}); err != nil {
						t.Fatal(err)
					}
				}
				to := b.Queue(amqp.Table{amqp.QueueTypeArg: kind, "x-max-length": int32(1), "x-overflow": amqp.QueueOverflowRejectPublish})
				switch target {
				case "missing":
					to += "-not"
				case "full":
					for stored := true; stored; { // a quorum queue takes some more than its length
						confirm, err := b.Ch.PublishWithDeferredConfirm("", to, true, false, amqp.Publishing{})
						if err != nil {
							t.Fatal(err)
						}
						stored = confirm.Wait()
					}
					if kind == amqp.QueueTypeQuorum { // and tells each channel that it is full with one more
						send(to, "")
						if err := ch.TxCommit(); err != nil {
							t.Fatal(err)
						}
					}
				}
				deliveries, err := ch.Consume(source, "", false, false, false, false, nil)
				if err != nil {
					t.Fatal(err)
				}
				d := <-deliveries
				send(to, string(d.Body))
				if err := d.Ack(false); err != nil {
					t.Fatal(err)
				}
				commit := ch.TxCommit()
				select {
				case r, ok := <-returned:
					if ok {
						t.Logf("tx.commit: %v; the message came back: %d %s", commit, r.ReplyCode, r.ReplyText)
					} else {
						t.Logf("tx.commit: %v; the channel was closed: %v", commit, <-closed)
					}
				case <-time.After(time.Second):
					t.Logf("tx.commit: %v; the broker says nothing else", commit)
				}
				_ = ch.Close() // whatever is not settled goes back
				read := func(queue string) (found bool) {
					if queue != source && target == "missing" {
						return false
					}
					for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
						m, ok, err := b.Ch.Get(queue, true)
						if err != nil {
							t.Fatal(err)
						}
						found = found || ok && len(m.Body) > 0
					}
					return found
				}
				kept, sent := read(source), read(to)
				if kept || sent != (target == "with room") {
					t.Errorf("the received message is in its queue again: %t; the sent one is stored: %t. This broker does not lose it", kept, sent)
				}
			})
		})
	}
}
