package rabbitmq

import amqp "github.com/rabbitmq/amqp091-go"

// signs tell that a channel is at its end.
type signs struct {
	closed   chan *amqp.Error
	canceled chan string
}

// prepared is a channel that may consume.
type prepared struct {
	*amqp.Channel
	signs
}

// prepare opens a channel to consume on.
func (c *connection) prepare() (prepared, error) {
	ch, err := c.link.Channel()
	if err != nil {
		return prepared{}, err
	}
	p := prepared{ch, signs{make(chan *amqp.Error, 1), make(chan string, 1)}}
	ch.NotifyClose(p.closed)
	ch.NotifyCancel(p.canceled)
	return p, ch.Qos(c.prefetch, 0, false)
}

// use makes it the connection's channel, for good; false: the connection has ended.
func (c *connection) use(p prepared) bool {
	c.lossMu.Lock()
	defer c.lossMu.Unlock()
	select {
	case <-c.closing:
		return false
	case <-c.done:
		return false
	default:
	}
	c.channel = p.Channel
	c.signs <- p.signs
	return true
}

// consumer is the connection's channel; nil while there is none.
func (c *connection) consumer() *amqp.Channel {
	c.lossMu.Lock()
	defer c.lossMu.Unlock()
	return c.channel
}

// closeConsumer puts everything unsettled back in order and releases the role.
func (c *connection) closeConsumer() error {
	ch := c.consumer()
	if ch == nil {
		return nil
	}
	return ch.Close()
}
