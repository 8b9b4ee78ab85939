package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/keyseq/keyseq/jms"
)

// Connect opens the consuming connection and looks at the queue. It consumes nothing yet: that begins with the first Receive, so that
// no message is prefetched while the manager still waits for a dead predecessor's messages to come back.
func (f *Factory) Connect(ctx context.Context, sub jms.Subscription) (jms.Connection, error) {
	s, err := f.settings(sub)
	if err != nil {
		return nil, err
	}
	l, err := s.dial(ctx, "consumer")
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		advice, meaning := dialMeaning(err)
		return nil, problem(meaning, sub.Queue, err, advice)
	}
	c, err := s.open(ctx, l)
	if err != nil {
		_ = l.end(time.Now().Add(time.Second))
		return nil, err
	}
	if s.exclusive {
		return &candidate{c}, nil
	}
	return c, nil
}

func (s *settings) open(ctx context.Context, l *link) (*connection, error) {
	if l.Config.Heartbeat < time.Second {
		return nil, problem(jms.ErrConfig, s.sub.Queue, errors.New("heartbeats are off"),
			"without them a dead link is never noticed; remove heartbeat=0 from the URL or set a heartbeat on the broker")
	}
	s.heartbeat = l.Config.Heartbeat // what was agreed on
	queue, err := s.inspect(ctx, l)
	if err != nil {
		return nil, err
	}
	c := &connection{
		settings: s, link: l, queue: queue, done: make(chan struct{}), torn: make(chan struct{}), subscribed: make(chan struct{}), closing: make(chan struct{}), ended: make(chan struct{}),
		signs: make(chan signs, 1),
	}
	c.publisher = newPublisher(s)
	if !s.exclusive {
		err = bounded(ctx, l, func() error {
			ch, err := c.prepare()
			if err == nil {
				c.use(ch)
			}
			return err
		})
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, problem(jms.ErrConnectionLost, s.sub.Queue, err, "")
		}
	}
	c.capabilities = s.capabilities(l, queue)
	go c.watch()
	return c, nil
}

// returnDelay is how long the broker may keep the messages of a client that it has not found dead: it looks for two missed heartbeats
// and was measured to need just under three (5.7 s at 2 s, 29.7 s at 10 s).
func (s *settings) returnDelay() time.Duration { return 3 * s.heartbeat }

func (s *settings) capabilities(l *link, queue facts) jms.Capabilities {
	c := jms.Capabilities{
		Broker:        fmt.Sprintf("%v %v", l.Properties["product"], l.Properties["version"]),
		MaxInFlight:   s.prefetch,
		CheapSessions: true,
		Push:          true,
		MaxHold:       s.consumerTimeout / 2,
		DeliveryCount: queue.quorum(),
	}
	if queue.single() || s.exclusive {
		// A new consumer gets nothing, or is not accepted, before the broker has taken back what the old one held.
		c.ReturnsAtOnce = true
	} else {
		c.ReturnDelay = s.returnDelay()
	}
	return c
}
