package guarantees

import (
	"os"
	"testing"

	"github.com/keyseq/keyseq/provider/rabbitmq/internal/brokertest"
)

// TestMain runs the tests, or one instance for a test that kills or freezes a process.
func TestMain(m *testing.M) {
	if text := os.Getenv(processSpec); text != "" {
		os.Exit(live(text))
	}
	brokertest.Main(m)
}
