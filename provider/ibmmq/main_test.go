package ibmmq_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// The test program is also the consumer that tests kill and freeze.
func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(child())
	}
	stop := setUp()
	code := m.Run()
	stop()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			os.Stderr.WriteString("goroutines are left: " + err.Error() + "\n")
			code = 1
		}
	}
	os.Exit(code)
}
