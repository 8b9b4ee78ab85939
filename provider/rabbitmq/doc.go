// Package rabbitmq reads RabbitMQ queues (AMQP 0-9-1, classic and quorum queues) for keyseq.
//
//	m, err := keyseq.NewSequenceManager("orders", &rabbitmq.Factory{URL: url}, listener,
//		keyseq.KeyFromProperty(rabbitmq.RoutingKey),
//		func(c *keyseq.Config) { c.SingleActiveConsumer = true })
//
// # What it does
//
// One connection consumes, with one channel and one consumer, because only that hands messages over in the queue's order; a second
// connection publishes, because a broker with a memory alarm stops reading from a connection that publishes, and acknowledgements
// would be stuck with it. A message in flight is one unacknowledged delivery; each is acknowledged for itself, out of order where
// keys finish out of order. What a task sends is published as mandatory and confirmed by the broker before its message is
// acknowledged, so it is never lost, and may be there twice after a failure between the two.
//
// RabbitMQ has no way to give back one message and keep its place while later ones are in the client, so nothing is ever given
// back alone: the channel is closed, and the broker puts everything back in order. For the same reasons basic.cancel,
// basic.nack, basic.get and the client library's own recovery are not used.
//
// # The queue
//
// Declare it with x-single-active-consumer, also for one process: without it, a broker that has not noticed a dead connection (up to three
// heartbeats) keeps the messages of that connection locked while a new consumer already gets later ones. The provider looks how
// the queue was declared; without the argument, every reconnect waits for Capabilities.ReturnDelay and a warning says so. On a classic queue
// that cannot be declared anew Factory.Exclusive does the same by exclusive consumers.
//
// A quorum queue counts every return of a message as a delivery, also of those that only waited in a client: see
// Factory.AcceptDeliveryLimit.
//
// # Messages
//
// Headers become properties: booleans, strings and byte strings as they are, integers as int64, floats as float64, decimals as a
// string ("12.34"), timestamps as int64 (Unix seconds). Tables, arrays and void headers have no counterpart; they become an error
// value that wraps jms.ErrUnreadable, so that they are not taken for absent. The constants of this package name the
// properties that stand for fields of the protocol. Message.GroupID is the header JMSXGroupID, Message.Text follows the content type.
package rabbitmq
