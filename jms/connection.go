package jms

import (
	"context"
	"log/slog"
	"time"
)

// ConnectionFactory makes connections to one broker. It is safe for concurrent use and does no I/O before Connect.
type ConnectionFactory interface {
	// Connect opens a connection for reading sub.Queue. It does not wait to become the active instance (see Elector).
	//
	// It fails with ErrConfig for what no retry will mend (an unknown queue, no authority, a wish in sub that the broker
	// cannot fulfil), with ErrBusy at a limit that may pass, with ErrConnectionLost when the broker cannot be reached, and
	// with ctx.Err() when ctx ended first. The manager retries all but ErrConfig.
	Connect(ctx context.Context, sub Subscription) (Connection, error)
}

// Subscription is what the manager asks of Connect. What a provider cannot give it refuses with ErrConfig.
type Subscription struct {
	// Queue is the name of the queue to read; never empty.
	Queue string
	// MaxInFlight is the most messages that will be received and unsettled at once, for brokers that push a prefetch.
	// 0: the provider chooses and says so in Capabilities.MaxInFlight.
	MaxInFlight int
	// SingleActiveConsumer asks that at most one instance receives; the others wait.
	SingleActiveConsumer bool
	// Client is the name to show in the broker's own tools; may be empty.
	Client string
	// Logger is never nil. Credentials and message bodies must not be logged.
	Logger *slog.Logger
}

// Connection reads one queue. Its methods are safe for concurrent use, Close also during the calls of its sessions.
type Connection interface {
	// OpenSession makes a session. Where sessions are not cheap the manager makes a few such calls side by side, also beside a Receive that
	// waits: each gives a session of its own, and when the context of one ends the others go on. ErrBusy says that no more can be had now (a limit of the broker): the manager goes on with those
	// it has. ErrConnectionLost and ErrConfig are as in Connect.
	OpenSession(ctx context.Context) (Session, error)
	// Capabilities says how this broker differs. It is constant while the connection lives.
	Capabilities() Capabilities
	// Done is closed when the connection or the active role is lost for good, also while no call is waiting; after that all
	// calls fail with ErrConnectionLost. A nil channel says that the provider can not notice by itself. It need not be closed by Close.
	Done() <-chan struct{}
	// Err says why Done is closed; nil before that.
	Err() error
	// Close gives everything unsettled back to the queue, ends a waiting Receive, and releases the active role last. It is
	// idempotent. An error means that something may not have been given back by the call itself; the broker will do it later.
	Close(ctx context.Context) error
}

// Session is one unit of work: it holds at most one received message. Package documentation lists the rules.
type Session interface {
	// Receive waits for the next message until ctx ends. (nil, ctx.Err()) means that nothing is held. Never two run at once on a
	// connection. Besides the four sentinels that end a session it may fail with ErrQuiescing, and with ErrBusy (the queue
	// is inhibited for reading: the manager tries again later).
	Receive(ctx context.Context) (*Message, error)
	// Commit sends out, in this order, and removes the received message from the queue. ErrRolledBack: nothing was done and the
	// message will come again. ErrCommitUnknown: the outcome is not known; wrap it beside ErrConnectionLost where the connection broke
	// under the commit, for alone that says that the message comes again. ErrBusy: a target queue is full or takes no messages now;
	// nothing was done, the message is still held. ErrConfig: a target does not exist or may not be used; nothing was done.
	// nil means that the acknowledgement was sent, and before any later one of the same key; where the broker processes them
	// asynchronously (RabbitMQ), a connection that is lost in the next moments may take it along, and the message comes again.
	Commit(ctx context.Context, out ...Outgoing) error
	// Rollback gives the received message back at once; without one it does nothing.
	Rollback(ctx context.Context) error
	// Close is a Rollback if a message is held, and ends the session. It is idempotent.
	Close(ctx context.Context) error
}

// Elector is implemented by a Connection that knows whether this instance is the active one.
type Elector interface {
	// AwaitActive returns nil when this instance has become the active one, which lasts until Done is closed or Close is called. It is
	// called once, before the first OpenSession.
	AwaitActive(ctx context.Context) error
}

// CleanStarter is implemented by a Connection that can tell whether an earlier reader, known or dead, may still hold messages.
type CleanStarter interface {
	// CleanStart reports true if no message of the queue can be locked by a reader that has ended (it ended in order, or the broker
	// has already taken back what it held). The manager then reads at once instead of waiting for ReturnDelay. It is
	// called once, after AwaitActive and before the first OpenSession. On an error the manager waits.
	CleanStart(ctx context.Context) (bool, error)
}

// Predecessor is implemented by a Connection that knows how the active instance before this one ended.
type Predecessor interface {
	// EndedInOrder reports true if it closed its connection by itself when nothing of it ran any more, or if there was none. One that never
	// opened a session does not count: it may have left while it waited for its own predecessor. The manager then does not wait for
	// Config.TakeoverDelay. It is called once, after AwaitActive and before the first OpenSession. On an error the
	// manager waits.
	EndedInOrder(ctx context.Context) (bool, error)
	// EndsInDisorder says that tasks of this instance still run, so that the Close that follows must not count as an end in order, whatever the
	// connection holds. It does no I/O.
	EndsInDisorder()
}

// Inquirer is implemented by a Connection whose queue carries a backout rule (IBM MQ: BOQNAME and BOTHRESH).
type Inquirer interface {
	// Backout returns the queue's own dead-letter queue and how often a message may be delivered; "" and 0 mean none. The manager sends dead letters to
	// that queue where Config.DeadLetterQueue is empty. It does not act on the number, which counts all that was ever given back, also by a lost
	// connection or a Stop, while its own retries count what the task has seen; it logs it.
	Backout(ctx context.Context) (queue string, maxDeliveries int, err error)
}

// QueueChecker is implemented by a Connection that can look whether a queue exists and may be sent to.
type QueueChecker interface {
	// CheckQueue returns ErrConfig, with what to do about it, if messages cannot be sent to the queue. A queue that is full or inhibited for
	// the moment passes. It changes nothing on the broker.
	CheckQueue(ctx context.Context, queue string) error
}

// Capabilities says in what a broker differs. The zero value promises least. providertest checks both ways: what is declared must
// work, what is not declared is not relied upon.
type Capabilities struct {
	// Broker is its name and version, for logs.
	Broker string
	// MaxInFlight is the provider's default and its limit of unsettled messages for this queue; 0: none.
	MaxInFlight int
	// CheapSessions says that a session costs memory only. If false (IBM MQ: a connection each) the manager opens no more than
	// it needs to keep its workers busy.
	CheapSessions bool
	// AtomicSends says that Commit is one transaction. If false the sends are confirmed, then the message is acknowledged: after a
	// failure between the two a send can be there although its message comes again, but never the other way round.
	AtomicSends bool
	// RollbackInPlace says that a message given back keeps its place. If false, and with Push whatever is said here, the manager gives
	// back only by closing the connection.
	RollbackInPlace bool
	// ReturnsAtOnce says that what is unsettled is back in the queue, at its place, before anything later can be received by
	// anybody, whatever was lost. ReturnDelay must be 0 then.
	ReturnsAtOnce bool
	// ReturnDelay is how long after a loss (of a session, a connection, a process) an unsettled message may stay locked by a
	// broker that has not noticed yet, counted from when the client noticed: a true bound, the manager adds no more than a few milliseconds. With
	// neither this nor ReturnsAtOnce the manager takes DefaultReturnDelay.
	ReturnDelay time.Duration
	// MaxHold is how long a message may be held unsettled: well below the time after which the broker takes it away, for giving back
	// takes time too (RabbitMQ: half of the consumer timeout). 0: no limit is known.
	MaxHold time.Duration
	// Push says that the broker sends messages ahead of Receive. Nothing may be sent before the first Receive, since the manager may be
	// waiting for what an earlier reader holds. A manager that is stopped closes its connection, so that it hides none.
	Push bool
	// StableIDs says that Message.ID is set, unique, and the same when a message comes again.
	StableIDs bool
	// DeliveryCount says that Message.DeliveryCount is set.
	DeliveryCount bool
}

// DefaultReturnDelay is taken for a provider that says nothing about how long a lost message stays locked: 6 minutes, what IBM MQ
// needs to notice a dead client at its default heartbeat of 300 s (interval plus its one-minute grace).
const DefaultReturnDelay = 6 * time.Minute

// Returns gives the effective ReturnDelay: 0 if ReturnsAtOnce, the declared one, or DefaultReturnDelay if nothing was declared.
func (c Capabilities) Returns() time.Duration {
	switch {
	case c.ReturnsAtOnce:
		return 0
	case c.ReturnDelay > 0:
		return c.ReturnDelay
	}
	return DefaultReturnDelay
}
