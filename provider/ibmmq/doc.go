// Package ibmmq reads IBM MQ queues for keyseq, through IBM's mq-golang-jms20 and mq-golang.
//
// A program that has a connection factory of mq-golang-jms20 passes it on:
//
//	cf, err := mqjms.CreateConnectionFactoryFromDefaultJSONFiles()
//	...
//	m, err := keyseq.NewSequenceManager("DEV.QUEUE.1", ibmmq.FromJMS20(cf), listener, keyseq.KeyFromProperty("account"))
//
// Others fill a [Factory], or use [FromJSON] or [FromEnvironment]. Building needs cgo and IBM's client SDK.
//
// # How it reads
//
// A session is a transacted JMSContext: a connection of its own to the queue manager, which holds one message under syncpoint. One more
// connection for each manager asks for the queue's attributes, notices losses, and holds the lock queue of a single active consumer.
// Automatic reconnection of IBM's client is switched off, because it would hide that units of work were backed out; the manager
// reconnects itself. Receive waits in slices (Factory.WaitSlice), because a waiting MQGET cannot be interrupted and keeps the
// finalizers of the whole process from running.
//
// # Messages
//
// Message.ID is the MsgId in hexadecimal. DeliveryCount is the backout count plus one. CorrelationID is what mq-golang-jms20 makes of the
// 24 bytes: the text it was set from if that had up to 12 characters, else hexadecimal; what could not be sent without being cut is refused.
// Text is sent as UTF-8 (1208) unless [PropertyCharacterSet] names another. Bodies are never converted: Text says that the format is MQSTR, and [PropertyCharacterSet] in which character set it is. GroupID is the
// jms.Gid property of JMS senders, or the group ID of the message descriptor in hexadecimal; mq-golang-jms20 asks for version 1 of
// the descriptor, which has none unless the queue manager puts an extension before the body. It cannot set one either: Outgoing.GroupID travels
// in [PropertyGroupID]. A property of more than 1,024 bytes cannot be read by mq-golang; its value is an error that wraps jms.ErrUnreadable.
//
// # The trace hook
//
// mq-golang-jms20 v1.11.0 may delete a message's properties while the message is in use (its issue 79). This package therefore reads them
// inside MQGET, by the OpenTelemetry functions of mq-golang (SetOtelFuncs), of which a process has one set. A program that has its own
// passes them through [TraceFuncs] and sets Factory.NoTraceHook. Without the hook properties are read right after the receive; if they
// are gone already the message is rolled back and received again; one of more than 1,024 bytes hides the names of all, and ends the run. Numbers
// and booleans are then text, and byte properties cannot be sent.
package ibmmq
