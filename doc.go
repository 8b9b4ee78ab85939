// Package keyseq handles the messages of a queue one after another within a key, and many keys at once.
//
// A program reads a JMS-style queue (IBM MQ, RabbitMQ, or the embedded broker in provider/memory). It says which key a message belongs to,
// for instance the account of a payment, and what to do with a message. keyseq receives serially, runs up to Config.Workers tasks
// side by side, keeps the messages of a key in queue order through failures, reconnects, restarts and hand-overs, and settles every message
// alone.
//
//	m, err := keyseq.NewSequenceManager("PAYMENTS", factory, listener, keyseq.KeyFromProperty("account"))
//	if err != nil {
//		return err
//	}
//	return m.Run(ctx) // until ctx ends
//
// # Five types to know
//
//   - SequenceManager reads one queue: Run, or Start with Stop and Shutdown.
//   - Listener is the user's code: DoTask for each attempt, OnMessageError for each failure.
//   - Delivery is what DoTask gets: the message, its key, the number of the attempt, and Send for what goes out with the commit.
//   - KeyExtractor turns a message into its key: KeyFromProperty, KeyFromJSON and others, or a function.
//   - Config holds every setting, filled with defaults.
//
// What DoTask returns is the verdict: nil settles the message; an error retries it in place while its key waits and everything else goes on;
// DeadLetter, Discard, RetryAfter and StopAll say something else.
//
// # Seeing what it does
//
// Explain says in words why a key does not move, Snapshot has the numbers, Events tell each step, Live and Ready answer probes. The Logger gets lines that
// name the queue, the key and the message and say what to do; never bodies or credentials.
//
// # What is guaranteed
//
//   - Order: for a key, the task of message n+1 does not start before message n is settled, also while n is retried, while its commit is in
//     doubt, across reconnects, Stop and Start, and a hand-over to a standby.
//   - Never two: within a process two tasks of one key never run at the same time, whatever timed out; between processes, with
//     SingleActiveConsumer, as long as a task ends within TakeoverDelay after its context is cancelled.
//   - No loss: a message leaves the queue only when its task returned nil, or when a policy that you chose settled it.
//   - Rare duplicates: after a loss each key resumes at or before its first unsettled message and runs forward in order. Only messages in flight
//     at the loss can repeat.
//   - Isolation and fairness: a waiting or failing key holds only itself, and a long backlog takes turns with the other keys in the window.
//   - Bounds: at most Workers tasks, MaxInFlight messages and about MaxInFlightBytes.
//   - No silent end: it reconnects for ever, or Run returns an error; a call to the broker that does not return keeps its key waiting or costs
//     its connection.
//
// # What is not
//
//   - Exactly once. A message can repeat after a loss; make the task idempotent or remember what it has done.
//   - Two processes without SingleActiveConsumer: each keeps its own order, together they keep none.
//   - A process that was frozen and goes on may still be in a task while its successor runs the same message: Delivery.Epoch lets
//     a store refuse the late writer. With SingleActiveConsumer it starts no other task before its client has had 3 s to notice.
//   - A backlog of one key larger than MaxInFlight, in front of the queue, delays what lies behind it.
//   - A task that hands its work to another goroutine and returns nil has lost the protection of its key.
//
// The folder docs of the repository has a picture for each of these (guarantees.md), what happens to a key in each failure (failure.md), how
// to choose the numbers and what to set before production (tuning.md), probes and SIGTERM (health.md), and how it works inside
// (ARCHITECTURE.md).
package keyseq
