package rabbitmq

import (
	"context"
	"errors"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/keyseq/keyseq/jms"
)

// session is one delivery at most. It is bound to its connection and channel for ever, so its delivery tag cannot meet another channel.
type session struct {
	c    *connection
	tag  uint64
	held bool
	dead error // the sentinel after which only Close may follow
}

var errHolds = errors.New("rabbitmq: the session holds a message: commit it before the next Receive")

func (s *session) Receive(ctx context.Context) (*jms.Message, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	if s.held {
		return nil, errHolds
	}
	s.c.subscribe.Do(func() { go s.c.consume() })
	select {
	case <-s.c.subscribed:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	deliveries := s.c.deliveries
	select {
	case d, ok := <-deliveries:
		if m, err := s.hold(d, ok); m != nil || err != nil {
			return m, err
		}
		deliveries = nil
	default: // a message at hand is preferred to the end of a context
	}
	for {
		select {
		case d, ok := <-deliveries:
			if m, err := s.hold(d, ok); m != nil || err != nil {
				return m, err
			}
			deliveries = nil
		case <-s.c.done:
			return nil, s.end(s.c.Err())
		case <-s.c.closing:
			return nil, s.end(s.c.gone())
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// hold takes a delivery. A stream of deliveries that has ended (!ok) gives neither message nor error: the reason follows at once.
func (s *session) hold(d amqp.Delivery, ok bool) (*jms.Message, error) {
	if !ok {
		return nil, nil
	}
	if err := s.c.present(); err != nil {
		return nil, s.end(err)
	}
	s.tag, s.held = d.DeliveryTag, true
	return message(&d, s.c.capabilities.DeliveryCount), nil
}

func (s *session) Commit(ctx context.Context, out ...jms.Outgoing) error {
	if err := s.usable(); err != nil {
		return err
	}
	if len(out) > 0 {
		if err := s.c.publisher.publish(ctx, out); err != nil {
			return s.end(err)
		}
	}
	if !s.held {
		return nil
	}
	if err := s.c.acknowledge(s.tag); err != nil {
		return s.end(err)
	}
	s.held = false
	return nil
}

// Rollback of a held message ends the connection, because RabbitMQ cannot give back one message at its place.
func (s *session) Rollback(ctx context.Context) error {
	if err := s.usable(); err != nil {
		return err
	}
	if !s.held {
		return nil
	}
	return s.end(s.c.giveBack(ctx))
}

// Close gives a held message back the only way there is: with everything else that the connection holds.
func (s *session) Close(ctx context.Context) error {
	held := s.held
	s.held = false
	if s.dead == nil {
		s.dead = problem(jms.ErrSessionLost, s.c.sub.Queue, errors.New("the session is closed"), "")
	}
	if !held || s.c.gone() != nil {
		return nil
	}
	_ = s.c.giveBack(ctx)
	return nil
}

// usable is the error that ended the session or the connection.
func (s *session) usable() error {
	if s.dead != nil {
		return s.dead
	}
	if err := s.c.gone(); err != nil {
		return s.end(err)
	}
	return nil
}

// end remembers an error after which only Close may follow.
func (s *session) end(err error) error {
	if jms.EndsSession(err) {
		s.dead = err
	}
	return err
}
