package conformance

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/keyseq/keyseq/provider/providertest"
	"github.com/keyseq/keyseq/provider/rabbitmq/internal/brokertest"
)

// TestConformance runs the suite of all providers on the kinds of queues there are. Cases run one after another, because one of them counts
// goroutines.
func TestConformance(t *testing.T) {
	brokertest.URL(t)
	for _, c := range []struct {
		name      string
		arguments amqp.Table
		heartbeat time.Duration
	}{
		{"classic", brokertest.Single(amqp.QueueTypeClassic), 5 * time.Second},
		{"quorum", brokertest.Single(amqp.QueueTypeQuorum), 5 * time.Second},
		// Each loss is waited for during three heartbeats.
		{"classic without single active consumer", amqp.Table{amqp.QueueTypeArg: amqp.QueueTypeClassic}, time.Second},
	} {
		t.Run(c.name, func(t *testing.T) { providertest.Run(t, brokertest.Harness(c.arguments, c.heartbeat)) })
	}
	t.Run("exclusive on classic", func(t *testing.T) { providertest.Run(t, brokertest.ExclusiveHarness(5*time.Second)) })
}
