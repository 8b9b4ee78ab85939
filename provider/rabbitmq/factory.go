package rabbitmq

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/keyseq/keyseq/jms"
	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	// DefaultHeartbeat is asked of the broker where Factory.Heartbeat is 0. A dead link is noticed by this side within 1.5 of it and by
	// the broker within 3 (measured with 2 s and 10 s on RabbitMQ 3.10).
	DefaultHeartbeat = 10 * time.Second
	// DefaultConsumerTimeout is RabbitMQ's own default of consumer_timeout.
	DefaultConsumerTimeout = 30 * time.Minute
	// DefaultMaxInFlight is the prefetch where nothing else was asked: above 1,000 it costs memory and gains nothing more in throughput, and
	// a large window keeps many keys in sight.
	DefaultMaxInFlight = 4096
	// maxPrefetch is the largest value of the 16-bit prefetch-count; 0 would mean unlimited.
	maxPrefetch = 65535
)

// Factory connects to a RabbitMQ broker. Set URL; everything else is optional. It does no I/O before Connect, and its fields must not
// be changed once a SequenceManager has it. Connect reports every wrong field at once, as jms.ErrConfig.
type Factory struct {
	// URL is amqp://user:password@host:port/vhost or amqps://... User and password must be percent-encoded, "/" is the vhost
	// when there is no path. Query parameters of the RabbitMQ URI specification work (heartbeat, cacertfile, certfile, keyfile,
	// server_name_indication, auth_mechanism). It never appears in errors or logs.
	URL string
	// Username and Password replace those in URL where Username is not "", so that a secret need not be part of a URL.
	Username, Password string
	// VHost replaces the one in URL where it is not "".
	VHost string
	// TLS is used with an amqps URL; nil means the system's root certificates. It is cloned.
	TLS *tls.Config
	// Heartbeat is how often both sides prove that they live; whole seconds, at least 1 s. 0: DefaultHeartbeat. A heartbeat in URL
	// takes precedence, and the broker may ask for a shorter one. It bounds how long a dead link goes unnoticed: 1.5 heartbeats here, 3 on the broker.
	Heartbeat time.Duration
	// Name is shown by the broker's tools as the connection's name; "": the Client of the subscription.
	Name string

	// Declare declares the queue, durable and with Arguments, if it does not exist. False: a queue that does not exist is
	// jms.ErrConfig. When SingleActiveConsumer is asked of the manager, and Exclusive is not set, x-single-active-consumer is added to Arguments.
	Declare bool
	// Arguments are those the queue must have, for example {"x-queue-type": "quorum"}. They are compared with the existing queue's: a difference
	// is jms.ErrConfig and names the argument. Where the user has no configure permission they cannot be compared; a warning says so.
	Arguments map[string]any

	// Exclusive keeps SingleActiveConsumer on a classic queue that was declared without x-single-active-consumer and cannot be declared anew: the
	// active instance consumes with the protocol's exclusive flag, so the broker refuses every other consumer, also those of other programs, and
	// the standbys ask twice a second whether it is gone. It is refused with jms.ErrConfig without Config.SingleActiveConsumer, on a queue that
	// has x-single-active-consumer, on a quorum queue (which ignores the flag), and where the user may not configure the queue, so
	// that its type is not known.
	Exclusive bool

	// ConsumerTimeout is the broker's consumer_timeout: a message unacknowledged for so long costs the whole channel. 0:
	// DefaultConsumerTimeout. The client cannot read it; set it where the broker's was changed. Messages are held for half of it at most.
	ConsumerTimeout time.Duration
	// AcceptDeliveryLimit accepts a quorum queue with an x-delivery-limit below 1000. Each reconnect and hand-over counts as a
	// delivery of every message that was in the client, handled or not, and beyond the limit the broker drops or dead-letters them: a queue
	// with limit 20 loses waiting messages after 20 restarts of its consumers. False: such a queue is refused with jms.ErrConfig.
	AcceptDeliveryLimit bool
}

var _ jms.ConnectionFactory = (*Factory)(nil)

// settings are a Factory and a Subscription, checked and complete.
type settings struct {
	url             string
	uri             amqp.URI
	username        string
	password        string
	vhost           string
	tls             *tls.Config
	heartbeat       time.Duration
	name            string
	declare         bool
	arguments       amqp.Table
	consumerTimeout time.Duration
	acceptLimit     bool
	exclusive       bool
	prefetch        int
	sub             jms.Subscription
}

// settings checks everything that can be checked without the broker and reports all problems together.
func (f *Factory) settings(sub jms.Subscription) (*settings, error) {
	var problems []error
	wrong := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("%w: rabbitmq: "+format, append([]any{jms.ErrConfig}, args...)...))
	}
	s := &settings{
		url: f.URL, username: f.Username, password: f.Password, vhost: f.VHost, declare: f.Declare, acceptLimit: f.AcceptDeliveryLimit,
		exclusive: f.Exclusive,
		heartbeat: cmp.Or(f.Heartbeat, DefaultHeartbeat), consumerTimeout: cmp.Or(f.ConsumerTimeout, DefaultConsumerTimeout),
		name: cmp.Or(f.Name, sub.Client, "keyseq"), arguments: amqp.Table(maps.Clone(f.Arguments)),
		prefetch: cmp.Or(sub.MaxInFlight, DefaultMaxInFlight), sub: sub,
	}
	var err error
	if s.uri, err = amqp.ParseURI(f.URL); err != nil {
		// The parser's own text may quote a password that was not percent-encoded.
		wrong("Factory.URL is not an AMQP URL (amqp://user:password@host:port/vhost; percent-encode user and password)")
	} else if f.TLS != nil && s.uri.Scheme != "amqps" {
		wrong("Factory.TLS is set, but the scheme of Factory.URL is %q: use amqps", s.uri.Scheme)
	}
	if f.TLS != nil {
		s.tls = f.TLS.Clone()
	}
	if f.Password != "" && f.Username == "" {
		wrong("Factory.Password is set without Factory.Username")
	}
	if s.heartbeat < time.Second || s.heartbeat%time.Second != 0 || s.heartbeat > 65535*time.Second {
		wrong("Factory.Heartbeat is %v: must be whole seconds, 1 s to 65535 s", s.heartbeat)
	}
	if s.consumerTimeout < time.Second {
		wrong("Factory.ConsumerTimeout is %v: must be at least 1 s", s.consumerTimeout)
	}
	if sub.Queue == "" {
		wrong("the queue has no name")
	} else if len(sub.Queue) > maxShortString {
		wrong("the queue's name has %d bytes: AMQP allows %d", len(sub.Queue), maxShortString)
	}
	if s.prefetch < 1 || s.prefetch > maxPrefetch {
		wrong("MaxInFlight is %d: must be 1 to %d, the limit of a prefetch", s.prefetch, maxPrefetch)
	}
	if s.arguments == nil {
		s.arguments = amqp.Table{}
	}
	for name, value := range s.arguments { // an int has no width in AMQP; the broker compares numbers by value
		if i, ok := value.(int); ok {
			s.arguments[name] = int64(i)
		}
	}
	if err := s.arguments.Validate(); err != nil {
		wrong("Factory.Arguments: %w", err)
	}
	if sac, given := s.arguments[amqp.SingleActiveConsumerArg]; given && sub.SingleActiveConsumer && sac != true {
		wrong("SingleActiveConsumer is asked for, but Factory.Arguments has %s: %v", amqp.SingleActiveConsumerArg, sac)
	}
	if f.Exclusive {
		for _, text := range exclusiveProblems(s.arguments, sub) {
			wrong("%s", text)
		}
	} else if sub.SingleActiveConsumer {
		s.arguments[amqp.SingleActiveConsumerArg] = true
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return s, nil
}
