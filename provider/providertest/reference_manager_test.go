package providertest_test

import (
	"testing"
	"time"

	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/providertest"
)

func TestReferenceManager(t *testing.T) {
	providertest.RunManager(t, providertest.Harness{
		Bubble: true,
		New: func(testing.TB) providertest.Broker {
			return referenceBroker(newRefBroker(everything, "IN", "OUT"))
		},
	})
}

// In real time, as with a real broker, and with a provider that promises little.
func TestReferenceManagerModest(t *testing.T) {
	caps := jms.Capabilities{ReturnDelay: 50 * time.Millisecond}
	providertest.RunManager(t, providertest.Harness{
		Quiet: 20 * time.Millisecond, Latency: 500 * time.Millisecond,
		New: func(testing.TB) providertest.Broker { return referenceBroker(newRefBroker(caps, "IN", "OUT")) },
	})
}
