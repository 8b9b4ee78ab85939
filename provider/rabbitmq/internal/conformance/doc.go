// Package conformance runs the suite of all providers on RabbitMQ. It is a package of its own because the suite counts goroutines, and so
// that it runs beside the other tests.
package conformance
