package rabbitmq

import (
	"context"
	"errors"
	"net"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// dialTimeout bounds TCP, TLS and AMQP handshakes where the context has no earlier end.
const dialTimeout = 30 * time.Second

var errHandshake = errors.New("the broker did not finish the handshakes within " + dialTimeout.String())

// link is one AMQP connection with the socket under it.
type link struct {
	*amqp.Connection
	socket *socket
	closed chan *amqp.Error
}

// cut ends the link without a word. It is the only call that ends a write which the broker does not read.
func (l *link) cut() { _ = l.socket.Close() }

// end closes the link in order until the deadline, then cuts it.
func (l *link) end(deadline time.Time) error {
	err := l.CloseDeadline(deadline)
	l.cut()
	if errors.Is(err, amqp.ErrClosed) {
		return nil
	}
	return err
}

// dial opens a connection to the broker; purpose tells it from others in the broker's tools.
func (s *settings) dial(ctx context.Context, purpose string) (*link, error) {
	l, err := s.dialOnce(ctx, purpose)
	// A refused login looks like a connection that breaks at this step: the broker closes without a word. A broker
	// that is going down does the same once, but not twice.
	if errors.Is(err, amqp.ErrCredentials) && ctx.Err() == nil {
		l, err = s.dialOnce(ctx, purpose)
	}
	return l, err
}

func (s *settings) dialOnce(parent context.Context, purpose string) (*link, error) {
	ctx, cancel := context.WithTimeout(parent, dialTimeout)
	defer cancel()
	l := &link{closed: make(chan *amqp.Error, 1)}
	inTime := func() bool { return true }
	config := amqp.Config{
		Vhost: s.vhost, Heartbeat: s.heartbeat, Locale: "en_US", Properties: amqp.NewConnectionProperties(),
		Dial: func(network, address string) (net.Conn, error) {
			raw, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			l.socket = &socket{Conn: raw, limit: 3 * s.heartbeat}
			// The handshakes of TLS and AMQP know no context: they end with their socket.
			inTime = context.AfterFunc(ctx, l.cut)
			return l.socket, nil
		},
	}
	config.Properties.SetClientConnectionName(s.name + " " + purpose)
	if s.tls != nil {
		config.TLSClientConfig = s.tls.Clone()
	}
	if s.username != "" {
		config.SASL = []amqp.Authentication{&amqp.PlainAuth{Username: s.username, Password: s.password}}
	}
	conn, err := amqp.DialConfig(s.url, config)
	if !inTime() || err != nil {
		if l.socket != nil {
			l.cut()
		}
		if ended := parent.Err(); ended != nil {
			return nil, ended
		}
		if err == nil || ctx.Err() != nil {
			err = errHandshake
		}
		return nil, err
	}
	l.Connection = conn
	l.socket.agree(conn.Config.Heartbeat)
	conn.NotifyClose(l.closed)
	return l, nil
}
