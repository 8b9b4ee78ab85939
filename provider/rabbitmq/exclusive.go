package rabbitmq

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/keyseq/keyseq/jms"
	amqp "github.com/rabbitmq/amqp091-go"
)

// electionInterval is how often a standby asks whether the queue has a consumer. The question makes no error in the broker's log, as
// an exclusive consume that is refused does, and the answer comes from the queue's memory.
const electionInterval = 500 * time.Millisecond

// candidate is a connection that consumes exclusively, and so knows whether it is the active one: the classic queue accepts an
// exclusive consumer only when it has no other, and it takes back what a dead consumer held in the same step in which it forgets the consumer.
//
// What the broker sends ahead comes from the election on, not only from the first Receive, since the flag belongs to the consumer. Nothing can be
// overtaken by that: no earlier consumer holds anything then.
type candidate struct{ *connection }

var (
	_ jms.Elector      = (*candidate)(nil)
	_ jms.QueueChecker = (*candidate)(nil)
	_ jms.CleanStarter = (*candidate)(nil)
)

// AwaitActive implements jms.Elector.
func (c *candidate) AwaitActive(ctx context.Context) error {
	if err := c.gone(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	c.subscribe.Do(func() { go c.consume() })
	select {
	case <-c.subscribed:
		return c.gone()
	case <-c.done:
		return c.Err()
	case <-c.closing:
		return c.gone()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// CleanStart implements jms.CleanStarter: who consumes exclusively has proved it.
func (c *candidate) CleanStart(context.Context) (bool, error) {
	if err := c.gone(); err != nil {
		return false, err
	}
	select {
	case <-c.subscribed:
		return c.deliveries != nil, nil
	default:
		return false, nil
	}
}

// stand tries to become the exclusive consumer until it is, or until the connection has ended (nil, nil).
func (c *connection) stand() (<-chan amqp.Delivery, error) {
	for waits := false; ; waits = true {
		deliveries, err := c.try()
		if deliveries != nil || err != nil || c.gone() != nil {
			return deliveries, err
		}
		if !waits {
			c.sub.Logger.Info("rabbitmq: another consumer has the queue: waiting for its end", "queue", c.sub.Queue, "interval", electionInterval)
		}
		select {
		case <-time.After(electionInterval):
		case <-c.done:
			return nil, nil
		case <-c.closing:
			return nil, nil
		}
	}
}

// try is one attempt; nil without an error if another consumes.
func (c *connection) try() (<-chan amqp.Delivery, error) {
	q, err := onChannel(c.link, func(ch *amqp.Channel) (amqp.Queue, error) {
		return ch.QueueDeclarePassive(c.sub.Queue, true, false, false, false, nil)
	})
	if err != nil || q.Consumers > 0 {
		return nil, err
	}
	ch, err := c.prepare() // a refusal costs the channel
	if err != nil {
		return nil, err
	}
	deliveries, err := ch.Consume(c.sub.Queue, "", false, true, false, false, nil)
	switch {
	case inUse(err): // another was faster
		return nil, nil
	case err != nil:
		return nil, err
	case !c.use(ch):
		return nil, nil // Close or the loss ends the link, and the consumer with it
	}
	return deliveries, nil
}

// inUse tells "somebody else consumes" from a lack of permission: both are 403.
func inUse(err error) bool {
	var reply *amqp.Error
	return errors.As(err, &reply) && reply.Server && reply.Code == amqp.AccessRefused && strings.Contains(reply.Reason, "in exclusive use")
}

// exclusiveProblems are what speaks against Factory.Exclusive before the queue is seen.
func exclusiveProblems(arguments amqp.Table, sub jms.Subscription) (problems []string) {
	if !sub.SingleActiveConsumer {
		problems = append(problems, "Factory.Exclusive is set without Config.SingleActiveConsumer: set both, or neither")
	}
	if arguments[amqp.SingleActiveConsumerArg] == true {
		problems = append(problems, "Factory.Exclusive is set, but Factory.Arguments has "+amqp.SingleActiveConsumerArg+": use one of the two")
	}
	if kind, given := arguments[amqp.QueueTypeArg]; given && kind != amqp.QueueTypeClassic {
		problems = append(problems, "Factory.Exclusive is set, but Factory.Arguments asks for a queue that is not classic: only classic queues know exclusive consumers; declare the queue with "+amqp.SingleActiveConsumerArg)
	}
	return problems
}

// judgeExclusive is what speaks against it in the queue.
func (s *settings) judgeExclusive(f facts) error {
	refuse := func(cause, advice string) error {
		return problem(jms.ErrConfig, s.sub.Queue, errors.New("Factory.Exclusive is set, but "+cause), advice)
	}
	switch {
	case !f.known:
		return refuse("the queue's type is not known, because the user may not configure it", "give the user configure permission on the queue (nothing is changed): a quorum queue would ignore the flag")
	case f.quorum():
		return refuse("the queue is a quorum queue, which ignores it", "declare the queue with "+amqp.SingleActiveConsumerArg+": true and leave Exclusive out")
	case f.single():
		return refuse("the queue has "+amqp.SingleActiveConsumerArg, "leave Exclusive out: the broker elects by itself")
	}
	return nil
}
