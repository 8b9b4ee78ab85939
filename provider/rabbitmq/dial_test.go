package rabbitmq

import (
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// After a pause in which the process was frozen, what the broker had sent before must not make the connection look alive (H6).
func TestSocketKnowsSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const heartbeat = 2 * time.Second
		here, there := net.Pipe()
		defer there.Close()
		s := &socket{Conn: here, limit: time.Minute}
		defer s.Close()
		read := func() error { _, err := s.Read(make([]byte, 1)); return err }
		send := func(after time.Duration) {
			go func() { time.Sleep(after); _, _ = there.Write([]byte("x")) }()
		}

		send(time.Hour)
		if err := read(); err != nil || s.stale() {
			t.Fatalf("during the handshakes: %v, stale %t; want no limit", err, s.stale())
		}
		s.agree(heartbeat)
		send(3 * heartbeat / 2)
		if err := read(); err != nil {
			t.Fatalf("Read after 1.5 heartbeats = %v", err)
		}
		time.Sleep(3 * heartbeat / 2)
		if s.stale() {
			t.Error("stale after 1.5 heartbeats, want later")
		}
		time.Sleep(time.Nanosecond)
		if !s.stale() {
			t.Error("not stale after more than 1.5 heartbeats")
		}
		send(3*heartbeat/2 + 1)
		if err := read(); !errors.Is(err, errSilent) {
			t.Errorf("Read that came too late = %v, want errSilent", err)
		}
		if !s.stale() {
			t.Error("what came too late made the connection look alive")
		}
	})
}

// A write that nobody reads ends at its deadline.
func TestSocketBoundsWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		defer there.Close()
		s := &socket{Conn: here, limit: 6 * time.Second}
		defer s.Close()
		go func() { _, _ = io.CopyN(io.Discard, there, 2) }()
		for range 2 { // the deadline is that of the latest write, not of the first
			if _, err := s.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
			time.Sleep(4 * time.Second)
		}
		began := time.Now()
		if _, err := s.Write([]byte("x")); err == nil {
			t.Error("a write that nobody reads returned without an error")
		}
		if took := time.Since(began); took < s.limit/2 || took > s.limit {
			t.Errorf("it took %v, want between half of %v and all of it", took, s.limit)
		}
	})
}
