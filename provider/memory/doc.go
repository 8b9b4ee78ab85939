// Package memory is a message broker inside the process: queues with transacted sessions, for unit tests, for examples, and for
// programs that need no other. It needs nothing outside the standard library.
//
// A broker is made with its queues and given to the manager as it is:
//
//	broker, err := memory.NewBroker(
//		memory.Queue{Name: "PAYMENTS"},
//		memory.Queue{Name: "PAYMENTS.ERRORS"},
//	)
//
// # Testing a program against it
//
// Send, SendBatch and SendAfter put messages on a queue; Browse, Held, Depth and Stats show what has become of them. Messages with the same key
// go to the program in the order of the queue, so a test sends, waits until Depth is 0, and looks at what the program has written and
// at what lies on the queues it sends to.
//
// All of it works inside a testing/synctest bubble: the broker has no goroutine of its own and measures time with package time, so an hour
// of retries, of expiry or of delayed delivery takes no time. Make the broker inside the bubble.
//
// # Breaking things
//
//   - Break, Reader.Break, LoseSession, LoseReceive, Reader.LoseRole, TakeBack and Restart are what happens to clients of real brokers. A Loss says
//     when each end notices: what the dead held can stay locked while others read on, or be back before its holder knows.
//   - InhibitGet, InhibitPut, Queue.MaxDepth and Quiesce refuse what a healthy broker refuses now and then.
//   - SetHook sees each call before and after its effect, and delays it, lets it hang, or decides its outcome.
//   - A Profile is a broker with the habits of another: LikeIBMMQ, LikeRabbitMQ, LikeQuorum. A program that works on the plain broker may fail on
//     these, and then it fails on the real ones.
//
// Rules such as "the third commit fails after its effect" are in package faulty, which wraps any provider.
//
// # What it is not
//
// Messages are gone with the process, whatever Persistent says. Bodies and properties are copied when they are sent; received ones are shared
// between deliveries and must not be changed.
package memory
