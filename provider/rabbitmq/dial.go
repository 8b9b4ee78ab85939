package rabbitmq

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
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

// socket is a TCP connection with what the client library lacks.
//
// Every write has a deadline: the library has none, holds its locks while it writes, and would wait for ever for a broker that is alive but
// does not read (memory alarm).
//
// It knows how long nothing has come. A process that was frozen, with its machine or by a debugger, goes on where it was, and the
// broker has long given its messages to another. What the broker had sent before that is still to be read, so the library notices
// a moment later; by then a commit would have told a task that all is well.
type socket struct {
	net.Conn
	limit   time.Duration // of a write
	until   atomic.Int64  // the write deadline in force; moved only when it comes near, because each move costs a timer
	silence atomic.Int64  // how long the broker may be silent; 0: during the handshakes, no limit
	heard   atomic.Int64  // when something came last, as Unix nanoseconds
}

var errSilent = errors.New("nothing came from the broker for more than 1.5 heartbeats")

func (s *socket) Write(p []byte) (int, error) {
	now := time.Now()
	if time.Duration(s.until.Load()-now.UnixNano()) < s.limit/2 {
		end := now.Add(s.limit)
		if err := s.SetWriteDeadline(end); err != nil {
			return 0, err
		}
		s.until.Store(end.UnixNano())
	}
	return s.Conn.Write(p)
}

// Read does not return what comes too late.
func (s *socket) Read(p []byte) (int, error) {
	began := time.Now()
	n, err := s.Conn.Read(p)
	now := time.Now()
	if limit := s.silence.Load(); limit > 0 && int64(now.Sub(began)) > limit {
		return 0, errSilent
	}
	s.heard.Store(now.UnixNano())
	return n, err
}

// agree sets the limit once the heartbeat is known: the library's own, after which it gives up.
func (s *socket) agree(heartbeat time.Duration) { s.silence.Store(int64(3 * heartbeat / 2)) }

// stale says that the broker has been silent for so long that it may have given up this connection.
func (s *socket) stale() bool {
	limit := s.silence.Load()
	return limit > 0 && time.Now().UnixNano()-s.heard.Load() > limit
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
