// Package conformance runs the suite of all providers, and the manager, on RabbitMQ. It is a package of its own so that it runs beside
// the tests of the provider, and because the suite counts goroutines.
package conformance
