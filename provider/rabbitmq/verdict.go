package rabbitmq

import (
	"errors"
	"fmt"
	"slices"

	"github.com/keyseq/keyseq/jms"
	amqp "github.com/rabbitmq/amqp091-go"
)

// verdict looks at what came of each message. There are fewer confirms than messages if the link was lost while they were written.
func (o *outlet) verdict(source string, messages []jms.Outgoing, ready []amqp.Publishing, confirms []*amqp.DeferredConfirmation) error {
	var rejected []error
	meaning := jms.ErrBusy
	stored := 0
	for i, c := range confirms {
		queue := messages[i].Queue
		o.mu.Lock()
		back := o.returned[ready[i].MessageId]
		if back != nil {
			delete(o.known, queue)
		}
		o.mu.Unlock()
		switch {
		case back != nil:
			meaning = jms.ErrConfig
			rejected = append(rejected, fmt.Errorf("the message sent to queue %q came back: %d %s: create the queue first", queue, back.ReplyCode, back.ReplyText))
		case c.Acked():
			stored++
		case o.channel.IsClosed(): // which answers all open confirmations with no
		default:
			rejected = append(rejected, fmt.Errorf("the broker did not take the message sent to queue %q (basic.nack): the queue is full (x-max-length with reject-publish) or not available", queue))
		}
	}
	switch {
	case stored == len(messages):
		return nil
	case stored+len(rejected) < len(messages):
		return o.broken(source, messages, stored)
	case stored > 0: // some are out, so this is not "nothing was done"
		meaning = jms.ErrCommitUnknown
	}
	return problem(meaning, source, errors.Join(rejected...), "")
}

// broken is the error of a commit whose link went away before every confirmation came.
func (o *outlet) broken(source string, messages []jms.Outgoing, stored int) error {
	<-o.dead
	cause := error(errClosed)
	if o.reason != nil {
		cause = o.reason
	}
	meaning, advice := jms.ErrCommitUnknown, ""
	if stored == 0 && o.reason != nil && o.reason.Server {
		if o.reason.Code == amqp.AccessRefused { // it took none of the messages
			meaning, advice = jms.ErrConfig, "give the user write permission on amq.default (rabbitmqctl set_permissions)"
		}
		if limit, ok := sizeLimit(o.reason); ok && longer(messages, limit) { // others who sent at the same time only suffer from it
			meaning, advice = jms.ErrConfig, "send smaller messages, or raise max_message_size on the broker"
		}
	}
	return problem(meaning, source, fmt.Errorf("the connection for sending was lost before the broker had confirmed: %w", cause), advice)
}

func longer(messages []jms.Outgoing, limit int) bool {
	return slices.ContainsFunc(messages, func(o jms.Outgoing) bool { return len(o.Body) > limit })
}

func (o *outlet) blockedAdvice() string {
	if reason := o.blocked.Load(); reason != nil {
		return "the broker has a " + *reason + " alarm: free memory or disk on it"
	}
	return ""
}
