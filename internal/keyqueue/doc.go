// Package keyqueue runs the items of one key strictly one after another and the keys side by side. It knows no broker and no
// message type.
//
// A key is in the table only while it has something to do. Its items wait in a FIFO; the head stays there while it runs and until it is
// settled, so a repeated attempt needs no re-insertion and nothing can overtake. A key is in one state: ready (to be
// taken by a worker), running (a worker has it), paused (its head waits for its next attempt), resting (nothing may
// start, or nothing is left while something still refers to it). Workers take KEYS, one item of each in turn: a long backlog takes turns
// with everybody else.
//
// # Why one lock
//
// All state is under one mutex, held for some tens of nanoseconds and twice a message: when it is added and when its turn ends, which
// also takes the next key. Measured with prototypes on two cores this beats 64 locked shards with a ready channel (1.1 to 1.8 times), and it is
// what makes blocking, giving back and dropping a key atomic. Nothing waits while it holds the lock, and no callback runs under it
// but the short ones whose documentation says so.
//
// # Why persistent workers
//
// Starting a goroutine or parking one costs 120 to 250 ns each, more than a whole turn, and a goroutine per message grows its stack anew
// every time (with a handler that needs 16 KB it costs five times as much as the whole way through here; see docs/benchmarks.md). Workers are started on demand, parked last in first out, and woken one
// at a time: who takes a key and leaves others ready wakes the next one. So a burst of empty tasks is handled by one
// worker that never parks, and blocking tasks still fan out to all of them.
package keyqueue
