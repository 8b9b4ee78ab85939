package guarantees

import (
	"testing"
	"time"

	"github.com/keyseq/keyseq/provider/providertest"
	"github.com/keyseq/keyseq/provider/rabbitmq/internal/brokertest"
)

// TestManager runs the manager's guarantees on both types of queues, with a single active consumer.
func TestManager(t *testing.T) {
	brokertest.OnKindsAtOnce(t, func(t *testing.T, kind string) {
		h := brokertest.Harness(brokertest.Single(kind), 5*time.Second)
		h.Quiet = time.Second // a busy machine is slow to deliver bodies of 1 MiB
		providertest.RunManager(t, h)
	})
	t.Run("exclusive", func(t *testing.T) {
		t.Parallel()
		h := brokertest.ExclusiveHarness(5 * time.Second)
		h.Quiet = time.Second
		providertest.RunManager(t, h)
	})
}
