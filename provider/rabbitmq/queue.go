package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strconv"

	"github.com/keyseq/keyseq/jms"
	amqp "github.com/rabbitmq/amqp091-go"
)

// deliveryLimitArg makes a quorum queue drop or dead-letter a message that was delivered more often.
const deliveryLimitArg = "x-delivery-limit"

// maxPriorityArg makes a queue give out messages by priority.
const maxPriorityArg = "x-max-priority"

// leastDeliveryLimit is what a quorum queue's limit must be without Factory.AcceptDeliveryLimit: a thousand reconnects.
const leastDeliveryLimit = 1000

// facts are what the broker says about the queue.
type facts struct {
	consumers int
	known     bool       // the arguments could be compared
	arguments amqp.Table // all of them, if known
}

func (f facts) quorum() bool { return f.arguments[amqp.QueueTypeArg] == amqp.QueueTypeQuorum }

// buffersAcks says that the broker may not have passed on an acknowledgement that it has read. Only a quorum queue does; one that is not known
// may be one.
func (f facts) buffersAcks() bool { return f.quorum() || !f.known }

// single says that the queue is known to have at most one active consumer.
func (f facts) single() bool { return f.known && f.arguments[amqp.SingleActiveConsumerArg] == true }

// inspect looks how the queue was declared, declares it if it is missing and that was asked for, and refuses what cannot work.
func (s *settings) inspect(ctx context.Context, l *link) (facts, error) {
	var f facts
	err := bounded(ctx, l, func() error {
		var err error
		f, err = s.lookAtQueue(l)
		return err
	})
	if err != nil {
		return f, err
	}
	return f, s.judge(f)
}

// judge compares what the queue is with what was asked.
func (s *settings) judge(f facts) error {
	queue := s.sub.Queue
	if f.arguments[amqp.QueueTypeArg] == amqp.QueueTypeStream {
		return problem(jms.ErrConfig, queue, errors.New("it is a stream"), "streams keep what was read; use a classic or quorum queue")
	}
	if limit, ok := number(f.arguments[deliveryLimitArg]); ok && limit >= 0 && limit < leastDeliveryLimit && !s.acceptLimit {
		return problem(jms.ErrConfig, queue, fmt.Errorf("%s is %d", deliveryLimitArg, limit),
			"every reconnect counts as a delivery of each waiting message, so the broker would drop messages that no task has seen; declare the queue without it or with "+
				strconv.Itoa(leastDeliveryLimit)+" or more, or set Factory.AcceptDeliveryLimit")
	}
	log := s.sub.Logger.With("queue", queue)
	for _, hazard := range f.hazards() {
		log.Warn("rabbitmq: " + hazard)
	}
	if s.exclusive {
		return s.judgeExclusive(f)
	}
	if !f.known {
		log.Warn("rabbitmq: the queue's arguments cannot be compared, because the user may not configure it; single active consumer is not verified")
	}
	if f.single() {
		return nil
	}
	log.Warn("rabbitmq: the queue is not known to have a single active consumer: after a lost connection reading waits for the broker to notice, and a second reader breaks the order; declare it with "+
		amqp.SingleActiveConsumerArg+": true", "wait", s.returnDelay())
	if f.consumers > 0 {
		log.Warn("rabbitmq: somebody else consumes from the queue: messages of one key can be handled at the same time", "consumers", f.consumers)
	}
	return nil
}

// hazards are what the queue's arguments have the broker do to messages that no task has seen: remove them or change their order. A policy can
// do the same, unseen.
func (f facts) hazards() (found []string) {
	has := func(name string) bool { return f.arguments[name] != nil }
	overflow := f.arguments[amqp.QueueOverflowArg]
	if (has(amqp.QueueMaxLenArg) || has(amqp.QueueMaxLenBytesArg)) && (overflow == nil || overflow == amqp.QueueOverflowDropHead) {
		found = append(found, "the queue has a length limit and no "+amqp.QueueOverflowArg+": when it is full the broker removes the oldest messages; declare it with "+
			amqp.QueueOverflowArg+": "+amqp.QueueOverflowRejectPublish)
	}
	if has(amqp.QueueMessageTTLArg) {
		found = append(found, "the queue has "+amqp.QueueMessageTTLArg+": the broker removes messages that wait longer")
	}
	if has(amqp.QueueTTLArg) {
		found = append(found, "the queue has "+amqp.QueueTTLArg+": the broker removes it with its messages when nobody has read it for so long")
	}
	if has(maxPriorityArg) {
		found = append(found, "the queue has "+maxPriorityArg+": messages of one key with different priorities overtake each other")
	}
	return found
}

// lookAtQueue learns the arguments of an existing queue from the broker's answers to declaring it: a declaration of a queue that exists
// changes nothing, and is refused with the name and the value of the first argument that differs. What was asked for must not
// differ; what was not asked for is taken over and the question repeated, until the broker agrees. A missing queue is declared by
// the first question.
func (s *settings) lookAtQueue(l *link) (facts, error) {
	q, err := onChannel(l, func(ch *amqp.Channel) (amqp.Queue, error) {
		return ch.QueueDeclarePassive(s.sub.Queue, true, false, false, false, nil)
	})
	missing := false
	if err != nil {
		if missing = s.declare && isNotFound(err); !missing {
			return facts{}, refused(s.sub.Queue, err)
		}
	}
	f := facts{consumers: q.Consumers, arguments: maps.Clone(s.arguments)}
	durable, autoDelete := true, false
	for range 32 { // RabbitMQ knows about 20 arguments
		_, err := onChannel(l, func(ch *amqp.Channel) (amqp.Queue, error) {
			return ch.QueueDeclare(s.sub.Queue, durable, autoDelete, false, false, f.arguments)
		})
		if err == nil {
			f.known = true
			return f, nil
		}
		var reply *amqp.Error
		if errors.As(err, &reply) && reply.Server && reply.Code == amqp.AccessRefused && !missing {
			return facts{consumers: q.Consumers}, nil
		}
		name, value, ok := difference(reply)
		if !ok {
			return facts{}, refused(s.sub.Queue, err)
		}
		if wanted, asked := s.arguments[name]; asked {
			return facts{}, s.differs(name, wanted, err)
		}
		switch {
		case name == "durable":
			durable = value == "true"
		case name == "auto_delete":
			autoDelete = value == "true"
		case value == nil: // the broker has less than we took over: it was changed in the meantime
			delete(f.arguments, name)
		default:
			f.arguments[name] = value
		}
	}
	return facts{}, problem(jms.ErrConnectionLost, s.sub.Queue, errors.New("its declaration changes while it is compared"), "")
}

func (s *settings) differs(name string, wanted any, err error) error {
	advice := "an argument of a queue cannot be changed: change Factory.Arguments, or delete the queue and declare it anew"
	if name == amqp.SingleActiveConsumerArg {
		advice = "SingleActiveConsumer needs a queue that was declared with " + name + ": true; a queue cannot be changed: delete it and declare it anew, or set Factory.Exclusive if it is a classic queue, or turn SingleActiveConsumer off and let one process read"
	}
	return problem(jms.ErrConfig, s.sub.Queue, fmt.Errorf("argument %s is not %v: %w", name, wanted, err), advice)
}

var inequivalent = regexp.MustCompile(`(?s)inequivalent arg '([^']+)' for queue '.*: received .* but current is (?:none|the value '(.*)' of type '(\w+)'|'(.*)')$`)

// difference reads the broker's 406: which argument differs, and the value that the queue has; nil for none.
func difference(reply *amqp.Error) (name string, value any, ok bool) {
	if reply == nil || reply.Code != amqp.PreconditionFailed {
		return "", nil, false
	}
	m := inequivalent.FindStringSubmatch(reply.Reason)
	if m == nil {
		return "", nil, false
	}
	text := m[2]
	switch kind := m[3]; kind {
	case "":
		if m[4] != "" {
			return m[1], m[4], true
		}
		return m[1], nil, true
	case "longstr":
		return m[1], text, true
	case "bool":
		return m[1], text == "true", true
	default: // the integers: long, signedint, short, byte and their unsigned forms
		n, err := strconv.ParseInt(text, 10, 64)
		return m[1], n, err == nil
	}
}

// number reads an integer argument of any width.
func number(v any) (int64, bool) {
	n, ok := plain(v).(int64)
	return n, ok
}

// onChannel asks one question on a channel of its own, because a refusal costs the channel.
func onChannel[T any](l *link, ask func(*amqp.Channel) (T, error)) (T, error) {
	ch, err := l.Channel()
	if err != nil {
		var none T
		return none, err
	}
	answer, err := ask(ch)
	if err == nil {
		err = ch.Close()
	}
	return answer, err
}

// aside waits for calls of the client library, which know no context, no longer than ctx. They go on until they are answered or the link ends.
func aside[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type answer struct {
		v   T
		err error
	}
	back := make(chan answer, 1)
	go func() {
		v, err := f()
		back <- answer{v, err}
	}()
	select {
	case a := <-back:
		return a.v, a.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// bounded runs the first calls on a link that nobody else uses yet, and cuts it if ctx ends first.
func bounded(ctx context.Context, l *link, f func() error) error {
	stop := context.AfterFunc(ctx, l.cut)
	err := f()
	if !stop() {
		return ctx.Err()
	}
	return err
}

func isNotFound(err error) bool {
	var reply *amqp.Error
	_, meaning := refusal(err)
	return meaning == jms.ErrConfig && errors.As(err, &reply) && reply.Code == amqp.NotFound
}
