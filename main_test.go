package keyseq_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(frozenEnv) != "" { // the process that a test stops
		fmt.Fprintln(os.Stderr, retryForever())
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}
