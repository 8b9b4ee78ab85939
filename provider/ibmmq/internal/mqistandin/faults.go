//go:build mqistandin

package mqistandin

/*
#include <mqstandin.h>
*/
import "C"

import "time"

// Reason codes that controls take. The names are IBM's, the numbers are public.
const (
	BackedOut           = 2003
	ConnectionBroken    = 2009
	MaxConnsReached     = 2025
	QMgrQuiescing       = 2161
	QMgrStopping        = 2162
	ConnectionQuiescing = 2202
	ConnectionStopping  = 2203
	ChannelNotAvailable = 2537
)

// FailNext makes the next count uses (0: none) of the call ("MQCMIT") fail with the
// reason before any effect. ConnectionBroken breaks that connection, BackedOut backs
// its unit of work out.
func FailNext(call string, reason, count int) {
	must(withString(call, func(p *C.char) C.int { return C.mqstandin_fail_next(p, C.int(reason), C.int(count)) }),
		"fail next %q", call)
}

// FailAfter does so after the call took effect: the answer is lost, not the work.
// With ConnectionBroken, a commit is done, and a message got or a connection made
// stays until the loss is noticed (see [DetectAfter]).
func FailAfter(call string, reason, count int) {
	must(withString(call, func(p *C.char) C.int { return C.mqstandin_fail_after(p, C.int(reason), C.int(count)) }),
		"fail after %q", call)
}

// Hold keeps every such call from returning until [Release], whatever happens
// meanwhile: before it takes effect, or with all done.
func Hold(call string, done bool) {
	must(withString(call, func(p *C.char) C.int { return C.mqstandin_hold(p, flag(done)) }), "hold %q", call)
}

// Release ends every hold.
func Release() { must(int(C.mqstandin_release()), "release") }

// Break breaks all connections, noticed by both sides: units of work are backed
// out, and waiting and later calls give ConnectionBroken. It returns how many.
func Break() int { return must(int(C.mqstandin_break(nil, 1)), "break") }

// BreakUnnoticed breaks all connections for their clients only: until the loss is
// noticed the queue manager keeps units of work, open handles, and waiting gets,
// which still take a message that comes. Say before, with [DetectAfter], when it is.
func BreakUnnoticed() int { return must(int(C.mqstandin_break(nil, 0)), "break") }

// BreakApplication breaks the connections of one application name.
func BreakApplication(name string, noticed bool) int {
	return must(withString(name, func(p *C.char) C.int { return C.mqstandin_break(p, flag(noticed)) }), "break %q", name)
}

// BreakOldest breaks the count connections with the oldest open units of work.
func BreakOldest(count int, noticed bool) int {
	return must(int(C.mqstandin_break_oldest(C.int(count), flag(noticed))), "break oldest")
}

// DetectAfter sets how long the queue manager takes to notice a lost client: 0
// (default) at once, negative not before [Notice]. It holds for losses from now on.
func DetectAfter(d time.Duration) {
	ms := C.int(d.Milliseconds())
	if d < 0 {
		ms = -1
	}
	must(int(C.mqstandin_detect_after(ms)), "detect after %v", d)
}

// Notice lets the queue manager notice all losses now. It returns how many.
func Notice() int { return must(int(C.mqstandin_notice()), "notice") }

// Heartbeat sets after how much silence a frozen client process is given up
// (default 5 s). It matters between processes only.
func Heartbeat(d time.Duration) {
	must(int(C.mqstandin_heartbeat(C.int(d.Milliseconds()))), "heartbeat %v", d)
}

// BackOut takes back the count oldest open units of work, as a full log does: the
// messages are back at once, and the application hears BackedOut at its next call
// under syncpoint. It returns how many there were.
func BackOut(count int) int { return must(int(C.mqstandin_back_out(C.int(count))), "back out") }

// Stop lets the queue manager or the channel quiesce (QMgrQuiescing,
// ConnectionQuiescing) or stop (QMgrStopping, ConnectionStopping: connections end
// with it, units of work are backed out). 0 lets it run again.
func Stop(reason int) { must(int(C.mqstandin_stop(C.int(reason))), "stop %d", reason) }

// Restart stops the queue manager without a word and brings it back: connections
// break, units of work are backed out, nonpersistent messages go. Connecting gives
// 2059 for so long.
func Restart(down time.Duration) {
	must(int(C.mqstandin_restart(C.int(down.Milliseconds()))), "restart %v", down)
}

// LimitConnections refuses connections over so many with the reason, usually
// ChannelNotAvailable or MaxConnsReached. A negative number takes the limit away.
func LimitConnections(most, reason int) {
	must(int(C.mqstandin_limit_connections(C.int(most), C.int(reason))), "limit connections")
}

// DiscBacksOut lets MQDISC back out an open unit of work instead of committing it
// as documented.
func DiscBacksOut(on bool) { must(int(C.mqstandin_disc_backs_out(flag(on))), "disc backs out") }
