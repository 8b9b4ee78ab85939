//go:build mqistandin

package mqistandin

/*
#include <stdlib.h>
#include <mqstandin.h>
*/
import "C"

import (
	"fmt"
	"strings"
	"time"
	"unsafe"
)

func cString(s string) (*C.char, func()) {
	p := C.CString(s)
	return p, func() { C.free(unsafe.Pointer(p)) }
}

func withString(s string, f func(*C.char) C.int) int {
	p, free := cString(s)
	defer free()
	return int(f(p))
}

// must panics: a control that is not understood, or a queue manager that can not
// be reached, would make a test pass or fail for the wrong reason.
func must(n int, format string, args ...any) int {
	if n < 0 {
		panic("mqistandin: " + fmt.Sprintf(format, args...) + ": not understood, or the queue manager can not be reached")
	}
	return n
}

func flag(on bool) C.int {
	if on {
		return 1
	}
	return 0
}

// Use chooses the queue manager for connections and controls from now on: "" is
// the one in this process, else "unix:PATH" or "tcp:HOST:PORT". The environment
// variable MQSTANDIN_SERVER does the same for a whole process.
func Use(address string) {
	p, free := cString(address)
	defer free()
	C.mqstandin_use(p)
}

// Reset empties every queue, ends connections whose loss is not noticed yet, and
// drops faults, holds, counts, stops, limits, inhibits and delays, and sets the
// heartbeat time back. Live connections and their units of work stay.
func Reset() { must(int(C.mqstandin_reset()), "reset") }

// Define defines or alters queues: "NAME:key=value:..." with commas between
// several. Keys: maxdepth, maxmsgl, bothresh, boqname (the attributes of these
// names), excl (DEFSOPT(EXCL)), noshare, qsgshared (QSGDISP(SHARED)), fifo (MSGDLVSQ(FIFO)), get=0 and put=0
// (inhibited), auth=gbpi (which of get, browse, put, inquire are allowed).
func Define(queues string) {
	must(withString(queues, func(p *C.char) C.int { return C.mqstandin_define(p) }), "define %q", queues)
}

// Available is the number of messages a getter could have now.
func Available(queue string) int {
	return must(withString(queue, func(p *C.char) C.int { return C.mqstandin_available(p) }), "queue %q", queue)
}

// Waiters is the number of MQGET calls that wait on the queue now.
func Waiters(queue string) int {
	return must(withString(queue, func(p *C.char) C.int { return C.mqstandin_waiters(p) }), "queue %q", queue)
}

// Uncommitted is the number of messages put or got in open units of work.
func Uncommitted() int { return must(int(C.mqstandin_uncommitted()), "uncommitted") }

// Connections is how many the queue manager counts, the unnoticed ones too.
func Connections() int { return must(int(C.mqstandin_connections()), "connections") }

// Unnoticed is the number of connections whose client is gone while the queue
// manager does not know.
func Unnoticed() int { return must(int(C.mqstandin_unnoticed()), "unnoticed") }

// Held is the number of calls that [Hold] keeps now.
func Held() int { return must(int(C.mqstandin_held()), "held") }

// MessageHandles is the number of message handles open in this process.
func MessageHandles() int { return int(C.mqstandin_message_handles()) }

// Calls is how often the call ("MQGET") reached the queue manager since the last
// Reset; for message handle and property calls, in this process.
func Calls(call string) int {
	p, free := cString(call)
	defer free()
	return must(int(C.mqstandin_calls(p)), "call %q", call)
}

// Passed is what the last MQCONNX of this process with that application name passed:
// values by "STRUCTURE.Field". A structure that was not passed has none. Texts are
// without their padding; the password is as it was given.
func Passed(application string) map[string]string {
	var text [4096]C.char
	n := must(withString(application, func(p *C.char) C.int { return C.mqstandin_passed(p, &text[0], C.int(len(text))) }),
		"no MQCONNX of application %q", application)
	must(len(text)-1-n, "MQCONNX of application %q: %d bytes", application, n)
	all := map[string]string{}
	for line := range strings.Lines(C.GoString(&text[0])) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		all[name] = value
	}
	return all
}

// Latency makes each call that flows to the queue manager take so much longer.
func Latency(d time.Duration) {
	must(int(C.mqstandin_latency(C.int(d.Microseconds()))), "latency %v", d)
}
