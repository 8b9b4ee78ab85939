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

// What is written between cork and uncork goes out in one piece and in order, and whoever uncorks knows whether it did.
func TestSocketCorked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		defer there.Close()
		s := &socket{Conn: here, limit: 6 * time.Second}
		defer s.Close()
		write := func(text string) {
			t.Helper()
			if _, err := s.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		s.cork()
		write("ab")
		write("c")
		done := make(chan error, 1)
		go func() { done <- s.uncork() }()
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("uncork returned %v before anything was read", err)
		default:
		}
		got := make([]byte, 10)
		if n, err := there.Read(got); string(got[:n]) != "abc" || err != nil {
			t.Errorf("the first piece is %q (%v), want abc", got[:n], err)
		}
		if err := <-done; err != nil {
			t.Errorf("uncork = %v", err)
		}
		go func() { _, _ = io.ReadFull(there, got[:1]) }()
		write("d") // not kept back any more

		s.cork()
		write("ef")
		began := time.Now()
		if err := s.uncork(); err == nil {
			t.Error("uncork of what nobody reads returned without an error")
		}
		if took := time.Since(began); took > s.limit {
			t.Errorf("it took %v, want %v at most", took, s.limit)
		}
		go func() { _, _ = io.Copy(io.Discard, there) }()
		if _, err := s.Write([]byte("g")); err == nil {
			t.Error("something was written behind a piece that failed")
		}
	})
}

// A deadline for closing is not moved by what is written until then.
func TestSocketKeepsADeadlineForClosing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		defer there.Close()
		s := &socket{Conn: here, limit: 6 * time.Second}
		defer s.Close()
		if err := s.SetDeadline(time.Now().Add(time.Second)); err != nil { // the client library, before an orderly close
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := s.Write([]byte("x")); err == nil || time.Since(began) != time.Second {
			t.Errorf("a write with a deadline of 1 s took %v and returned %v", time.Since(began), err)
		}
	})
}

// The client library takes all deadlines away at the end of the handshakes: the next write has its own again.
func TestSocketBoundsWritesAfterTheHandshakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		defer there.Close()
		s := &socket{Conn: here, limit: 6 * time.Second}
		defer s.Close()
		go func() { _, _ = io.CopyN(io.Discard, there, 1) }()
		if _, err := s.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if err := s.SetDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := s.Write([]byte("x")); err == nil || time.Since(began) > s.limit {
			t.Errorf("a write that nobody reads took %v and returned %v", time.Since(began), err)
		}
	})
}
