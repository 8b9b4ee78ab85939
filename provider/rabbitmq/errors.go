package rabbitmq

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/keyseq/keyseq/jms"
	amqp "github.com/rabbitmq/amqp091-go"
)

// problem is an error of one queue: what it means to the manager, what happened, and what to do about it.
func problem(meaning error, queue string, cause error, advice string) error {
	if advice != "" {
		advice = ": " + advice
	}
	return fmt.Errorf("%w: rabbitmq: queue %q: %w%s", meaning, queue, cause, advice)
}

// dialMeaning says what a failed dial means and what to do: only what the broker, or a certificate, refuses for good is a configuration error.
func dialMeaning(err error) (advice string, meaning error) {
	var reply *amqp.Error
	var hostname x509.HostnameError
	var unverified *tls.CertificateVerificationError
	switch {
	case errors.As(err, &hostname), errors.As(err, &unverified):
		return "the broker's certificate is not trusted; set Factory.TLS (RootCAs, ServerName) or cacertfile in the URL", jms.ErrConfig
	case errors.Is(err, amqp.ErrSASL):
		return "the broker offers none of the login mechanisms; set auth_mechanism in the URL, or enable PLAIN or EXTERNAL on the broker", jms.ErrConfig
	case errors.Is(err, amqp.ErrCredentials):
		return "check user and password (guest may only connect from the broker's own host)", jms.ErrConfig
	case errors.As(err, &reply) && reply.Server && reply.Code == amqp.NotAllowed && strings.Contains(reply.Reason, "limit"):
		return "a connection limit of the broker is reached", jms.ErrBusy
	case errors.As(err, &reply) && reply.Server && (reply.Code == amqp.AccessRefused || reply.Code == amqp.NotAllowed):
		return "check that the vhost exists and that the user has permissions in it (rabbitmqctl set_permissions)", jms.ErrConfig
	}
	return "", jms.ErrConnectionLost
}

// lost says why a link is gone. A nil reason is an orderly close by the other side or an unknown one.
func lost(queue string, reason *amqp.Error, what string) error {
	if reason == nil {
		return problem(jms.ErrConnectionLost, queue, errors.New(what+" closed"), "")
	}
	meaning := jms.ErrConnectionLost
	if reason.Server && reason.Code == amqp.AccessRefused { // the consumer's channel asks for nothing but to read
		meaning = jms.ErrConfig
	}
	return problem(meaning, queue, fmt.Errorf("%s closed: %w", what, reason), closeAdvice(reason))
}

func closeAdvice(reason *amqp.Error) string {
	switch {
	case reason.Code == amqp.PreconditionFailed && strings.Contains(reason.Reason, "acknowledgement"):
		return "a message was held longer than the broker's consumer_timeout; give the broker's value as Factory.ConsumerTimeout, shorten tasks and pauses, or raise consumer_timeout"
	case reason.Code == amqp.AccessRefused:
		return "the user needs read permission on the queue (rabbitmqctl set_permissions)"
	case reason.Code == amqp.ConnectionForced:
		return "the broker was stopped or an operator closed the connection"
	}
	return ""
}

// refusal says what a reply of the broker to a question about a queue means, and what to do. A queue that is down is not one that does
// not exist.
func refusal(err error) (advice string, meaning error) {
	var reply *amqp.Error
	if !errors.As(err, &reply) || !reply.Server {
		return "", jms.ErrConnectionLost
	}
	switch reply.Code {
	case amqp.NotFound:
		if strings.Contains(reply.Reason, "down or inaccessible") || strings.Contains(reply.Reason, "stopped by supervisor") {
			return "the node of the queue is down", jms.ErrBusy
		}
		return "create the queue first", jms.ErrConfig
	case amqp.AccessRefused:
		return "give the user the permission (rabbitmqctl set_permissions)", jms.ErrConfig
	case amqp.ResourceLocked:
		return "the queue is exclusive to another connection", jms.ErrConfig
	case amqp.PreconditionFailed:
		return "an argument of a queue cannot be changed: change Factory.Arguments, or delete the queue and declare it anew", jms.ErrConfig
	}
	return "", jms.ErrConnectionLost
}

// refused makes the problem of a refusal.
func refused(queue string, err error) error {
	advice, meaning := refusal(err)
	return problem(meaning, queue, err, advice)
}

var tooLarge = regexp.MustCompile(`larger than configured max size (\d+)`)

// sizeLimit reads the largest message the broker takes from its complaint about a larger one.
func sizeLimit(reason *amqp.Error) (int, bool) {
	if reason == nil || reason.Code != amqp.PreconditionFailed {
		return 0, false
	}
	m := tooLarge.FindStringSubmatch(reason.Reason)
	if m == nil {
		return 0, false
	}
	limit, err := strconv.Atoi(m[1])
	return limit, err == nil
}
