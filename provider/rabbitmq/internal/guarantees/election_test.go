package guarantees

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/keyseq/keyseq/provider/rabbitmq"
	"github.com/keyseq/keyseq/provider/rabbitmq/internal/brokertest"
)

// election is a way to have one active instance.
type election struct {
	arguments amqp.Table
	exclusive bool
}

// onElections runs a test for each of them.
func onElections(t *testing.T, test func(t *testing.T, e election)) {
	t.Parallel()
	brokertest.URL(t)
	for name, e := range map[string]election{
		"classic":   {brokertest.Single(amqp.QueueTypeClassic), false},
		"quorum":    {brokertest.Single(amqp.QueueTypeQuorum), false},
		"exclusive": {amqp.Table{amqp.QueueTypeArg: amqp.QueueTypeClassic}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, e)
		})
	}
}

func (e election) factory(url string) *rabbitmq.Factory {
	return &rabbitmq.Factory{URL: url, Heartbeat: 5 * time.Second, Exclusive: e.exclusive}
}
