package orderaudit

import (
	"syscall"
	"unsafe"
)

const (
	clockName      = "monotonic"
	clockMonotonic = 1 // CLOCK_MONOTONIC of clock_gettime(2)
)

// monotonic is CLOCK_MONOTONIC in nanoseconds. The runtime reads the same clock, but gives it to nobody; only it makes times of
// different processes comparable without trusting the wall clock.
func monotonic() int64 {
	var ts syscall.Timespec
	// With a valid clock and address it cannot fail.
	_, _, _ = syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&ts)), 0)
	return ts.Nano()
}
