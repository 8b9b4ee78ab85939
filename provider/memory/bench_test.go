package memory_test

import (
	"strconv"
	"sync"
	"testing"

	"github.com/keyseq/keyseq/jms"
)

// BenchmarkReceiveCommit is one message received and settled; sending is not counted.
func BenchmarkReceiveCommit(b *testing.B) {
	broker := newBroker(b)
	out := make([]jms.Outgoing, b.N)
	for i := range out {
		out[i] = jms.Outgoing{Queue: queue, GroupID: "4711"}
	}
	if _, err := broker.SendBatch(out); err != nil {
		b.Fatal(err)
	}
	s := open(b, connect(b, broker, ""))
	ctx := b.Context()
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N { // b.Loop does not say how many messages to send
		if _, err := s.Receive(ctx); err != nil {
			b.Fatal(err)
		}
		if err := s.Commit(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReceiveThenCommitElsewhere receives on one goroutine and settles on another, as the manager does.
func BenchmarkReceiveThenCommitElsewhere(b *testing.B) {
	broker := newBroker(b)
	const chunk = 1 << 16
	out := make([]jms.Outgoing, chunk)
	for i := range out {
		out[i] = jms.Outgoing{Queue: queue}
	}
	c := connect(b, broker, "")
	free, held := make(chan jms.Session, 1024), make(chan jms.Session, 1024)
	for range 1024 {
		free <- open(b, c)
	}
	ctx := b.Context()
	var wg sync.WaitGroup
	wg.Go(func() {
		for s := range held {
			if err := s.Commit(ctx); err != nil {
				b.Error(err)
			}
			free <- s
		}
	})
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if i%chunk == 0 {
			b.StopTimer()
			if _, err := broker.SendBatch(out); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
		s := <-free
		if _, err := s.Receive(ctx); err != nil {
			b.Fatal(err)
		}
		held <- s
	}
	close(held)
	wg.Wait()
}

// BenchmarkRollback gives an old message back and takes it again, with many later ones held.
func BenchmarkRollback(b *testing.B) {
	for _, held := range []int{10, 10_000} {
		b.Run(strconv.Itoa(held), func(b *testing.B) {
			broker := newBroker(b)
			c := connect(b, broker, "")
			sessions := make([]jms.Session, held)
			ctx := b.Context()
			for i := range sessions {
				send(b, broker, "x")
				sessions[i] = receive(b, c, "x")
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				s := sessions[i%held]
				if err := s.Rollback(ctx); err != nil {
					b.Fatal(err)
				}
				if _, err := s.Receive(ctx); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSend is one message sent.
func BenchmarkSend(b *testing.B) {
	broker := newBroker(b)
	body := []byte("4711;12.50")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := broker.Send(jms.Outgoing{Queue: queue, Body: body}); err != nil {
			b.Fatal(err)
		}
	}
}
