package rabbitmq

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/keyseq/keyseq/jms"
)

// peer is the broker's end of a connection over a pipe, where a write returns when it was read.
type peer struct {
	*testing.T
	net.Conn
}

// connected makes a connection with its peer. It must be called, and everything ended, in one bubble.
func connected(t *testing.T, limit time.Duration) (*connection, *peer) {
	t.Helper()
	here, there := net.Pipe()
	p := &peer{t, there}
	go func() {
		_, _ = io.CopyN(io.Discard, p, 8)
		p.send(0, 10<<16|10, "\x00\x09\x00\x00\x00\x00\x00\x00\x00\x05PLAIN\x00\x00\x00\x05en_US") // connection.start
		p.method()
		p.send(0, 10<<16|30, "\x00\x10\x00\x02\x00\x00\x03\xe8") // connection.tune: 16 channels, frames of 128 KiB, heartbeats so rare that none waits for a lock
		p.method()
		p.method()
		p.send(0, 10<<16|41, "\x00") // connection.open-ok
		p.method()
		p.send(1, 20<<16|11, "\x00\x00\x00\x00") // channel.open-ok
	}()
	s := &settings{heartbeat: 1000 * time.Second, sub: jms.Subscription{Queue: "Q"}}
	l := &link{socket: &socket{Conn: here, limit: limit}, closed: make(chan *amqp.Error, 1)}
	var err error
	if l.Connection, err = amqp.Open(l.socket, amqp.Config{SASL: []amqp.Authentication{&amqp.PlainAuth{}}, Vhost: "/", Heartbeat: s.heartbeat}); err != nil {
		t.Fatal(err)
	}
	l.NotifyClose(l.closed)
	c := &connection{
		settings: s, link: l, done: make(chan struct{}), torn: make(chan struct{}), closing: make(chan struct{}), signs: make(chan signs, 1),
		publisher: newPublisher(s),
	}
	if c.channel, err = l.Channel(); err != nil {
		t.Fatal(err)
	}
	go c.watch()
	return c, p
}

func (p *peer) send(channel uint16, method uint32, arguments string) {
	frame := binary.BigEndian.AppendUint16([]byte{1}, channel)
	frame = binary.BigEndian.AppendUint32(frame, uint32(4+len(arguments)))
	frame = binary.BigEndian.AppendUint32(frame, method)
	if _, err := p.Write(append(append(frame, arguments...), 0xCE)); err != nil {
		p.Error(err)
	}
}

// method reads the next one.
func (p *peer) method() (method uint32, arguments []byte) {
	head := make([]byte, 7)
	for {
		if _, err := io.ReadFull(p, head); err != nil {
			p.Error(err)
			return 0, nil
		}
		payload := make([]byte, binary.BigEndian.Uint32(head[3:])+1)
		if _, err := io.ReadFull(p, payload); err != nil {
			p.Error(err)
			return 0, nil
		}
		if head[0] == 1 { // else a heartbeat
			return binary.BigEndian.Uint32(payload), payload[4 : len(payload)-1]
		}
	}
}

// A commit returns nil after its acknowledgement, or one that stands for it, was written, and what nobody commits is never acknowledged.
func TestAcknowledgementsAreWrittenBeforeCommitsReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := connected(t, time.Minute)
		const n, held = 30, 12
		var mu sync.Mutex
		returned := map[uint64]bool{}
		for tag := uint64(1); tag <= n; tag++ {
			if tag == held {
				continue
			}
			go func() {
				time.Sleep(time.Duration(tag%3) * time.Second) // three crowds, and nobody reads what the first one writes
				if err := c.acknowledge(tag); err != nil {
					t.Errorf("acknowledging %d: %v", tag, err)
				}
				mu.Lock()
				returned[tag] = true
				mu.Unlock()
			}()
		}
		time.Sleep(10 * time.Second)
		frames, written := 0, map[uint64]bool{}
		look := func() {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			for tag := range returned {
				if !written[tag] {
					t.Errorf("the commit of %d returned with %d of %d written", tag, len(written), n-1)
				}
			}
		}
		look()
		for len(written) < n-1 && !t.Failed() {
			method, arguments := p.method()
			if method != 60<<16|80 {
				t.Fatalf("method %x, want basic.ack", method)
			}
			frames++
			tag := binary.BigEndian.Uint64(arguments)
			if arguments[8] == 1 {
				for lower := range tag {
					if lower == held {
						t.Errorf("all up to %d were acknowledged, and %d is held", tag, held)
					}
					if lower > 0 {
						written[lower] = true
					}
				}
			}
			if tag == held || arguments[8] == 0 && written[tag] {
				t.Errorf("%d was acknowledged, which is held or was acknowledged before", tag)
			}
			written[tag] = true
			look()
		}
		if len(returned) != n-1 {
			t.Errorf("%d commits have returned, want %d", len(returned), n-1)
		}
		if frames >= n-1 {
			t.Errorf("%d frames for %d commits: none stood for another", frames, n-1)
		}
		p.Close()
		<-c.torn
	})
}

// A write that fails, fails all who wait for it, and the connection with them.
func TestFailedWriteFailsItsBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 6 * time.Second
		c, p := connected(t, limit)
		began := time.Now()
		var commits sync.WaitGroup
		for tag := uint64(2); tag <= 21; tag++ { // 1 is held, so each has a frame of its own
			commits.Go(func() {
				if err := c.acknowledge(tag); !errors.Is(err, jms.ErrConnectionLost) {
					t.Errorf("acknowledging %d = %v, want ErrConnectionLost", tag, err)
				}
			})
		}
		commits.Wait()
		if took := time.Since(began); took > limit+2*time.Second {
			t.Errorf("it took %v, want little more than %v", took, limit)
		}
		select {
		case <-c.done:
		default:
			t.Error("the connection is not lost")
		}
		if err := c.acknowledge(22); !errors.Is(err, jms.ErrConnectionLost) {
			t.Errorf("acknowledging after the loss = %v, want ErrConnectionLost", err)
		}
		<-c.torn
		p.Close()
	})
}
