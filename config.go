package keyseq

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/keyseq/keyseq/jms"
)

// Config holds every setting. The functions given to NewSequenceManager get one that is filled with the defaults named here and
// change what they like; what they leave is meant literally. It is fixed once the manager is made.
type Config struct {
	// Workers is how many tasks run at once: 1 to 10,000. Default 100.
	Workers int
	// MaxInFlight is how many messages may be received and unsettled, the running ones included: 0 to 1,000,000; 0 is chosen for the
	// broker (memory 8,192, RabbitMQ 4,096, IBM MQ what its channels allow). On a RabbitMQ quorum queue it must not be lowered while messages wait, or
	// what comes back twice may change its place (docs/rabbitmq.md). If messages of a key come in runs of L, keeping all Workers
	// busy takes about Workers*(L+1)/2. Where a session is costly the manager reads no further than its workers need.
	MaxInFlight int
	// MaxInFlightBytes bounds the bodies of those messages: none is received while they add up to so much. Default 256 MiB. What the
	// broker's client library has fetched ahead (RabbitMQ: up to MaxInFlight messages) is not seen here.
	MaxInFlightBytes int64
	// TaskTimeout ends the context of an attempt; 0: never. Default 15 min. It must not exceed MaxHold.
	TaskTimeout time.Duration
	// Retry: default 16 retries, 1 s doubling to 1 min with full jitter, then ActionAuto.
	Retry RetryPolicy
	// DeadLetterQueue is where messages go that are given up. Default "": the queue's own backout queue where the broker knows one
	// (IBM MQ BOQNAME; BOTHRESH is not applied, Retry.MaxRetries is). It is looked for at Start. A dead letter has the body, kind, properties, correlation ID, group ID and reply-to of the original, no
	// expiry, and the properties keyseq_queue, keyseq_key, keyseq_message_id, keyseq_reason (cut at 1,000 bytes), keyseq_attempts,
	// keyseq_first_failure and keyseq_last_failure (RFC 3339) and, if it had one, keyseq_expiration.
	DeadLetterQueue string
	// MaxDeliveries arms the search for messages that kill the process: above so many deliveries, by the broker's count, a message runs
	// alone as far as that can be waited for, and one that a new process receives with more than two beyond it is given up as
	// Retry.OnExhausted says (where that would hold its key, the run ends). 0: off, the default. The count rises for everything that a dying process, a lost
	// connection, a Stop or a MaxHold gives back: set it well above what those can add before a message is settled, or an innocent one may be
	// given up after a restart. It needs a broker that counts deliveries: without (RabbitMQ's classic queues) it has no effect, and a warning says so. A
	// broker that counts what it only sent ahead (RabbitMQ's quorum queues) is refused.
	MaxDeliveries int
	// OnKeyError is for messages whose key cannot be extracted. Default ActionAuto: dead-letter, else stop.
	OnKeyError Action
	// OnEmptyKey is for the key "". Default EmptyKeyShared.
	OnEmptyKey EmptyKey
	// SingleActiveConsumer lets one instance read and the others wait. Default false. It is needed as soon as a second process may read
	// the queue, also for the moment of a rolling deploy: without it order holds only within one process. A process that stood still for 2 s or more (frozen,
	// or its machine paused) then starts no task and reads nothing for 3 s, in which the broker's client can notice that another instance has taken over.
	SingleActiveConsumer bool
	// ReturnDelay is how long after a loss a message may still be locked by the broker; reading waits so long. 0: what the provider says. It is
	// logged at Start.
	ReturnDelay time.Duration
	// MaxHold is how long a message may be held before it is given back and received anew, because the broker would take it away or
	// keep its log. 0: what the provider says. Neither TaskTimeout nor a Backoff may exceed it, and TakeoverDelay must be shorter. Where message IDs are not
	// stable (RabbitMQ) neither may all pauses of Retry together, unless in the end the key is held: Start fails with jms.ErrConfig.
	MaxHold time.Duration
	// TakeoverDelay is how long a new active instance waits before its first task, so that tasks of its predecessor have ended and
	// what it held is back; it does not wait if the broker knows that the predecessor ended in order. 0, the default: only for the return
	// delay, and not if the broker knows that nothing is locked. Two tasks of a key never run in two processes at once if a task ends
	// within TakeoverDelay after its context is cancelled.
	TakeoverDelay time.Duration
	// CallTimeout bounds every call to the broker but a Receive that waits: 10 ms to 1 h. Default 30 s. A settlement that overruns it frees its
	// worker; its key waits until the call returns. Another call that overruns it counts as failed or costs its connection.
	CallTimeout time.Duration
	// Reconnect gives the pause before connection attempt n, and before a message is received again that has left unsettled n+1 times, where message IDs are
	// stable. Default 100 ms doubling to 30 s with full jitter.
	Reconnect Backoff
	// DrainTimeout is how long Run lets running tasks go on when its context has ended or the run has failed, and how long they may take before a connection is
	// given up in order. Stop and Shutdown give so much, beyond CallTimeout, to a call that does not return. Default 30 s.
	DrainTimeout time.Duration
	// ClientName is shown in the broker's own tools. Default "keyseq".
	ClientName string
	// Logger: default discards. Bodies and credentials are never logged.
	Logger *slog.Logger
	// Events are all told, in this order.
	Events []Events
}

// EmptyKey is what an empty key means.
type EmptyKey int

const (
	// EmptyKeyShared is a key like any other: such messages are handled one after another. The first one is logged.
	EmptyKeyShared EmptyKey = iota
	// EmptyKeyUnordered gives each such message a key of its own: no order among them.
	EmptyKeyUnordered
	// EmptyKeyError treats it as a key that cannot be extracted (OnKeyError).
	EmptyKeyError
)

// Limits of settings. The upper ones keep a slip of the hand from asking for terabytes.
const (
	mostWorkers     = 10_000
	mostInFlight    = 1_000_000
	leastCallTime   = 10 * time.Millisecond
	mostCallTime    = time.Hour
	defaultInFlight = 8192 // for a provider that names none
)

func defaultConfig() Config {
	return Config{
		Workers:          100,
		MaxInFlightBytes: 256 << 20,
		TaskTimeout:      15 * time.Minute,
		Retry:            RetryPolicy{MaxRetries: 16, Backoff: ExponentialBackoff(time.Second, time.Minute)},
		CallTimeout:      30 * time.Second,
		Reconnect:        ExponentialBackoff(100*time.Millisecond, 30*time.Second),
		DrainTimeout:     30 * time.Second,
		ClientName:       "keyseq",
		Logger:           slog.New(slog.DiscardHandler),
	}
}

// clone makes a copy that shares nothing that can be changed.
func (c Config) clone() Config {
	c.Events = slices.Clone(c.Events)
	return c
}

// problems collects configuration errors.
type problems []error

func (p *problems) add(ok bool, field, format string, args ...any) {
	if !ok {
		*p = append(*p, &ConfigError{Field: field, Problem: fmt.Sprintf(format, args...)})
	}
}

func (c *Config) check(p *problems) {
	p.add(c.Workers >= 1 && c.Workers <= mostWorkers, "Workers", "is %d: must be 1 to %d", c.Workers, mostWorkers)
	p.add(c.MaxInFlight >= 0 && c.MaxInFlight <= mostInFlight, "MaxInFlight", "is %d: must be 1 to %d, or 0 to choose for the broker", c.MaxInFlight, mostInFlight)
	p.add(c.MaxInFlightBytes > 0, "MaxInFlightBytes", "is %d: must be positive", c.MaxInFlightBytes)
	p.add(c.MaxDeliveries >= 0, "MaxDeliveries", "is %d: must be positive, or 0 for off", c.MaxDeliveries)
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"TaskTimeout", c.TaskTimeout}, {"ReturnDelay", c.ReturnDelay}, {"MaxHold", c.MaxHold}, {"TakeoverDelay", c.TakeoverDelay}, {"DrainTimeout", c.DrainTimeout}} {
		p.add(d.value >= 0, d.name, "is %v: must not be negative", d.value)
	}
	p.add(c.CallTimeout >= leastCallTime && c.CallTimeout <= mostCallTime, "CallTimeout", "is %v: must be %v to %v", c.CallTimeout, leastCallTime, mostCallTime)
	p.add(c.Retry.MaxRetries >= Unlimited, "Retry.MaxRetries", "is %d: must be 0 or more, or Unlimited", c.Retry.MaxRetries)
	p.add(c.Retry.Backoff != nil, "Retry.Backoff", "is nil: use FixedBackoff, ExponentialBackoff or StepBackoff")
	p.add(c.Reconnect != nil, "Reconnect", "is nil: use FixedBackoff, ExponentialBackoff or StepBackoff")
	p.add(c.Retry.OnExhausted >= ActionAuto && c.Retry.OnExhausted <= ActionStop, "Retry.OnExhausted", "is %d: no such Action", c.Retry.OnExhausted)
	p.add(c.OnKeyError >= ActionAuto && c.OnKeyError <= ActionStop, "OnKeyError", "is %d: no such Action", c.OnKeyError)
	p.add(c.OnKeyError != ActionHold, "OnKeyError", "is ActionHold: a message without a key cannot hold one; use ActionDeadLetter, ActionDiscard or ActionStop")
	p.add(c.OnEmptyKey >= EmptyKeyShared && c.OnEmptyKey <= EmptyKeyError, "OnEmptyKey", "is %d: no such EmptyKey", c.OnEmptyKey)
	p.add(c.Logger != nil, "Logger", "is nil: leave the default, which discards")
	if c.MaxHold > 0 {
		for _, err := range c.checkHold(c.MaxHold) {
			*p = append(*p, err)
		}
	}
}

// checkHold says which settings would hold a message longer than hold.
func (c *Config) checkHold(hold time.Duration) (errs []error) {
	if c.TaskTimeout > hold {
		errs = append(errs, &ConfigError{"TaskTimeout", fmt.Sprintf("is %v, longer than MaxHold %v: a task could outlive the hold on its message; shorten TaskTimeout or lengthen what the broker allows", c.TaskTimeout, hold)})
	}
	if c.TakeoverDelay >= hold {
		errs = append(errs, &ConfigError{"TakeoverDelay", fmt.Sprintf("is %v, not shorter than MaxHold %v: the first message could be held too long before its task begins; shorten TakeoverDelay or lengthen what the broker allows", c.TakeoverDelay, hold)})
	}
	if c.Retry.Backoff == nil {
		return errs
	}
	// With jitter the longest pause is a matter of luck; the one before a far retry is drawn often enough to be seen.
	n := 0
	defer func() {
		if v := recover(); v != nil {
			errs = append(errs, &ConfigError{"Retry.Backoff", fmt.Sprintf("panics for retry %d: %v: give it an answer for every number", n, v)})
		}
	}()
	for n = 1; n <= 64 && (c.Retry.MaxRetries == Unlimited || n <= max(c.Retry.MaxRetries, 1)); n++ {
		if d := c.Retry.Backoff(n); d > hold {
			return append(errs, &ConfigError{"Retry.Backoff", fmt.Sprintf("pauses %v before retry %d, longer than MaxHold %v: the message would be given back meanwhile; shorten the pause or lengthen what the broker allows", d, n, hold)})
		}
	}
	return errs
}

// deadLettering says whether a dead-letter queue must be known.
func (c *Config) deadLettering() (field string, needed bool) {
	switch {
	case c.Retry.OnExhausted == ActionDeadLetter:
		return "Retry.OnExhausted", true
	case c.OnKeyError == ActionDeadLetter:
		return "OnKeyError", true
	}
	return "", false
}

// configFailure marks a joined error as one that no retry will mend.
func configFailure(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", jms.ErrConfig, errors.Join(errs...))
}
