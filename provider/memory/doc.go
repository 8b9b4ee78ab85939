// Package memory is a message broker inside the process: queues with transacted sessions, for unit tests, examples and programs that
// need no other. It links nothing outside the standard library and runs no goroutine, so it works inside testing/synctest.
package memory
