package house

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

// update makes the tests that compare with a golden file write it instead.
var update = flag.Bool("update", false, "rewrite the golden files under testdata")

func TestMain(m *testing.M) {
	flag.Parse()
	goleak.VerifyTestMain(m)
}
