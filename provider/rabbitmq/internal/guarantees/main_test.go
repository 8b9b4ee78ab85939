package guarantees

import (
	"testing"

	"github.com/keyseq/keyseq/provider/rabbitmq/internal/brokertest"
)

func TestMain(m *testing.M) { brokertest.Main(m) }
