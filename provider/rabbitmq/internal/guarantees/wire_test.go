package guarantees

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
)

// Methods of class basic that a consumer may write.
const (
	basicConsume = 60<<16 | 20
	basicAck     = 60<<16 | 80
)

// forbidden are those that keyseq does without: the first reads without a consumer, the others give back one message alone or stop the
// consumer while it holds messages.
var forbidden = map[uint32]string{
	60<<16 | 70: "basic.get", 60<<16 | 90: "basic.reject", 60<<16 | 100: "basic.recover-async", 60<<16 | 110: "basic.recover", 60<<16 | 120: "basic.nack", 60<<16 | 30: "basic.cancel",
}

// tap is a proxy that reads the methods which a client writes.
type tap struct {
	listener net.Listener
	wait     sync.WaitGroup
	mu       sync.Mutex
	methods  map[uint32]int
	faults   []string
}

func newTap(t *testing.T, target string) *tap {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &tap{listener: l, methods: map[uint32]int{}}
	p.wait.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target)
			if err != nil {
				client.Close()
				continue
			}
			p.wait.Go(func() {
				_, _ = io.Copy(client, server)
				client.Close()
			})
			p.wait.Go(func() {
				if err := p.read(io.TeeReader(client, server)); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
					p.fault("reading frames: %v", err)
				}
				server.Close()
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		p.wait.Wait()
	})
	return p
}

func (p *tap) fault(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, fmt.Sprintf(format, args...))
}

// read takes the stream of one connection apart: a header of 8 bytes, then frames of type, channel, size, payload and an end octet.
func (p *tap) read(in io.Reader) error {
	if _, err := io.CopyN(io.Discard, in, 8); err != nil {
		return err
	}
	consuming := map[uint16]bool{}
	for {
		var head struct {
			Type    uint8
			Channel uint16
			Size    uint32
		}
		if err := binary.Read(in, binary.BigEndian, &head); err != nil {
			return err
		}
		payload := make([]byte, head.Size+1)
		if _, err := io.ReadFull(in, payload); err != nil {
			return err
		}
		if head.Type != 1 { // no method
			continue
		}
		method := binary.BigEndian.Uint32(payload)
		p.mu.Lock()
		p.methods[method]++
		p.mu.Unlock()
		if name, bad := forbidden[method]; bad {
			p.fault("%s was written", name)
		}
		switch method {
		case basicConsume:
			consuming[head.Channel] = true
			rest := payload[6:]                   // behind a reserved short
			rest = rest[1+int(rest[0]):]          // the queue
			if rest[1+int(rest[0])]&(1<<1) != 0 { // behind the tag: no-local, no-ack
				p.fault("the consumer was made with no-ack")
			}
		case basicAck:
			if tag := binary.BigEndian.Uint64(payload[4:]); tag == 0 || !consuming[head.Channel] {
				p.fault("delivery tag %d was acknowledged on channel %d, which consumes: %t", tag, head.Channel, consuming[head.Channel])
			}
		}
		if !bytes.HasSuffix(payload, []byte{0xCE}) {
			return errors.New("a frame without its end")
		}
	}
}
