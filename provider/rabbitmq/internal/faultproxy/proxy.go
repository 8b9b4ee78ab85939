// Package faultproxy is a TCP proxy that fails on command, as networks do: it resets connections, or goes silent.
package faultproxy

import (
	"io"
	"net"
	"sync"
)

// Proxy forwards everything that connects to Addr to a target. All methods are safe for concurrent use.
type Proxy struct {
	target   string
	listener net.Listener
	mu       sync.Mutex
	pairs    map[*pair]bool
	silent   bool
	closed   bool
	wait     sync.WaitGroup
}

// pair is one forwarded connection.
type pair struct {
	client, server net.Conn
	hush           chan struct{} // closed: nothing is forwarded any more
	once           sync.Once
}

// New listens on a free port of loopback.
func New(target string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{target: target, listener: l, pairs: map[*pair]bool{}}
	p.wait.Go(p.accept)
	return p, nil
}

// Addr is host:port of the proxy.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			reset(client)
			continue
		}
		c := &pair{client: client, server: server, hush: make(chan struct{})}
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			reset(client)
			reset(server)
			return
		}
		p.pairs[c] = true
		if p.silent {
			c.silence()
		}
		p.mu.Unlock()
		p.wait.Go(func() { p.forward(c, client, server) })
		p.wait.Go(func() { p.forward(c, server, client) })
	}
}

// forward copies one direction until it ends. A silent pair stays open, and what comes is thrown away.
func (p *Proxy) forward(c *pair, from, to net.Conn) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		select {
		case <-c.hush:
			if err == nil {
				continue
			}
		default:
			if n > 0 {
				if _, werr := to.Write(buffer[:n]); werr != nil {
					err = werr
				}
			}
		}
		if err == nil {
			continue
		}
		select {
		case <-c.hush: // the other side does not hear of it
			from.Close()
		default:
			if err == io.EOF {
				from.Close()
				to.Close()
			} else {
				reset(from)
				reset(to)
			}
			p.mu.Lock()
			delete(p.pairs, c)
			p.mu.Unlock()
		}
		return
	}
}

func (c *pair) silence() { c.once.Do(func() { close(c.hush) }) }

// reset closes a connection so that the other side sees a reset, not an orderly end.
func reset(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = c.Close()
}

// Cut resets every connection on both sides; new ones are accepted.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.pairs {
		reset(c.client)
		reset(c.server)
		delete(p.pairs, c)
	}
}

// Silence throws away everything that comes over the present connections, without closing them: neither side hears of it. New
// connections are silent too, until Speak.
func (p *Proxy) Silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent = true
	for c := range p.pairs {
		c.silence()
	}
}

// Speak ends the silence for new connections; those that went silent stay so.
func (p *Proxy) Speak() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent = false
}

// Close ends the proxy and all its connections.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	_ = p.listener.Close()
	p.Cut()
	p.wait.Wait()
}
