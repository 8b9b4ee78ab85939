package providertest_test

import (
	"testing"

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
