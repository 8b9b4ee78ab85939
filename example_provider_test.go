package keyseq_test

import (
	"context"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
)

// list is a broker made of a list, all that a provider has to be: a factory, a connection and a session. It keeps what is given back at
// its place and needs no goroutine.
type list struct {
	mu     sync.Mutex
	bodies []string
	taken  map[int]bool
}

func (l *list) Connect(ctx context.Context, sub jms.Subscription) (jms.Connection, error) {
	if sub.SingleActiveConsumer {
		return nil, fmt.Errorf("%w: list has no single active consumer", jms.ErrConfig)
	}
	return listConnection{l}, nil
}

type listConnection struct{ *list }

func (c listConnection) OpenSession(context.Context) (jms.Session, error) {
	return &listSession{list: c.list, at: -1}, nil
}

// What is given back keeps its place and is there at once; the rest is left at its zero value, which promises least.
func (c listConnection) Capabilities() jms.Capabilities {
	return jms.Capabilities{Broker: "list", CheapSessions: true, RollbackInPlace: true, ReturnsAtOnce: true}
}
func (c listConnection) Done() <-chan struct{}       { return nil } // cannot be lost
func (c listConnection) Err() error                  { return nil }
func (c listConnection) Close(context.Context) error { return nil } // the manager has given back everything: RollbackInPlace

type listSession struct {
	*list
	at int // what it holds
}

func (s *listSession) Receive(ctx context.Context) (*jms.Message, error) {
	s.mu.Lock()
	for i, body := range s.bodies {
		if !s.taken[i] {
			s.taken[i], s.at = true, i
			s.mu.Unlock()
			return &jms.Message{GroupID: "4711", Body: []byte(body)}, nil
		}
	}
	s.mu.Unlock()
	<-ctx.Done() // nothing more will come
	return nil, ctx.Err()
}

func (s *listSession) Commit(ctx context.Context, out ...jms.Outgoing) error {
	if len(out) > 0 {
		return fmt.Errorf("%w: list cannot send", jms.ErrConfig)
	}
	s.at = -1
	return nil
}

func (s *listSession) Rollback(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at >= 0 {
		s.taken[s.at], s.at = false, -1
	}
	return nil
}

func (s *listSession) Close(ctx context.Context) error { return s.Rollback(ctx) }

// A provider for a broker of your own implements three small interfaces of package jms; package providertest then says whether it keeps the contract.
func Example_ownProvider() {
	broker := &list{bodies: []string{"first", "second"}, taken: map[int]bool{}}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	task := func(ctx context.Context, d *keyseq.Delivery) error {
		fmt.Printf("%s, attempt %d\n", d.Body, d.Attempt)
		if d.Attempt == 1 {
			return keyseq.RetryAfter(time.Millisecond, nil)
		}
		if string(d.Body) == "second" {
			stop()
		}
		return nil
	}
	m, err := keyseq.NewSequenceManager("LIST", broker, keyseq.ListenerFuncs{Task: task}, keyseq.KeyFromGroupID())
	if err != nil {
		log.Fatal(err)
	}
	if err := m.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// first, attempt 1
	// first, attempt 2
	// second, attempt 1
	// second, attempt 2
}
