package keyseq

import (
	"context"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// workerState is what the manager keeps with each worker.
type workerState struct {
	goroutine atomic.Int64            // its id, to notice calls from inside a callback
	attempt   atomic.Pointer[attempt] // what it runs, to be cancelled
	call      callContext             // of the call to the broker that it makes: used again for every call
	calls     atomic.Uint64           // odd while a call is under way

	seen      uint64 // what overseer saw of calls last time
	seenSince time.Time
}

// Calls that can be stuck, as logs and events name them.
const (
	callCommit   = "commit"
	callReceive  = "receive"
	callRollback = "rollback"
)

// enter notes whose goroutine this is.
func (o *workerState) enter() {
	if o.goroutine.Load() == 0 {
		o.goroutine.Store(goroutineID())
	}
}

// begin makes the context of a call to the broker. A worker makes one call at a time, and no call may keep its context.
func (o *workerState) begin(r *run, what string) context.Context {
	o.call = callContext{base: r.values, limit: r.m.cfg.CallTimeout, overrun: errOverrun}
	o.calls.Add(1)
	return &o.call
}

// end ends it.
func (o *workerState) end() {
	o.calls.Add(1)
	if o.call.real != nil {
		o.call.end(context.Canceled)
	}
}

// goroutineID reads the number of the calling goroutine from its stack trace: the one way to tell, without the user's help, that Stop
// is called by code that Stop would wait for. It costs a microsecond and is used once a worker and once a call of Stop.
func goroutineID() int64 {
	buf := make([]byte, 64)
	text := strings.TrimPrefix(string(buf[:runtime.Stack(buf, false)]), "goroutine ")
	number, _, _ := strings.Cut(text, " ")
	id, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return -1 // never equal to a worker's
	}
	return id
}
