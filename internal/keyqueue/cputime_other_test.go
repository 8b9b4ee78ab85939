//go:build !unix

package keyqueue_test

import "time"

func cpuTime() time.Duration { return 0 }
