package memory

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/keyseq/keyseq/jms"
)

// Broker is a message broker in the memory of this process. It is a jms.ConnectionFactory: give it to the manager as it is. Make one with
// NewBroker; all methods are safe for concurrent use and none of them blocks.
//
// It runs no goroutine. A broker that is no longer used needs no Close; its messages are gone with it.
type Broker struct {
	profile Profile
	hook    atomic.Pointer[Hook]

	mu        sync.Mutex // never held while something waits
	queues    map[string]*queue
	sessions  int // open ones, those of unnoticed dead clients included
	lastID    uint64
	quiescing bool
	closed    bool
}

// Option is what NewBroker takes: a Queue, or a Profile.
type Option interface {
	apply(b *Broker) error
}

// NewBroker makes a broker with the given queues, and with a Profile if one is given (the last one counts; none is the plain broker:
// everything comes back at once and in place). It reports every wrong setting at once, each as jms.ErrConfig.
func NewBroker(options ...Option) (*Broker, error) {
	b := &Broker{queues: make(map[string]*queue)}
	var errs []error
	for _, o := range options { // the profile first: queues depend on it
		if p, ok := o.(Profile); ok {
			errs = append(errs, p.apply(b))
		}
	}
	for _, o := range options {
		if _, ok := o.(Profile); !ok {
			errs = append(errs, o.apply(b))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return b, nil
}

// Queue is the declaration of a queue. Only Name is required. It is an Option of NewBroker.
type Queue struct {
	// Name is what Connect, Send and the other methods call it.
	Name string
	// MaxDepth is the most messages it holds, unsettled and delayed ones included; what would go beyond is refused with jms.ErrBusy.
	// 0: no limit.
	MaxDepth int
	// SingleActiveConsumer lets one connection receive; the others stand by in the order in which they came and take over when the
	// active one closes or is lost.
	SingleActiveConsumer bool
	// Shared lets several connections receive side by side. That breaks the order of a key, so a second connection to a queue that is
	// neither Shared nor SingleActiveConsumer is refused.
	Shared bool
	// BackoutQueue and BackoutThreshold are what jms.Inquirer reports: where a message goes that was delivered BackoutThreshold times
	// in vain (IBM MQ: BOQNAME, BOTHRESH). The broker itself moves nothing. Both or neither.
	BackoutQueue     string
	BackoutThreshold int
}

func (q Queue) apply(b *Broker) error { return b.Declare(q) }

// Declare adds queues, all or none. A queue that exists with the same settings is left alone; with others it is refused.
// Errors are jms.ErrConfig.
func (b *Broker) Declare(queues ...Queue) error {
	var errs []error
	for _, q := range queues {
		errs = append(errs, q.check())
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, q := range queues {
		if old := b.queues[q.Name]; old != nil && old.Queue != q {
			errs = append(errs, fmt.Errorf("memory: queue %q exists with other settings; use another name or the same settings: %w", q.Name, jms.ErrConfig))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, q := range queues {
		if b.queues[q.Name] == nil {
			b.queues[q.Name] = &queue{Queue: q, b: b}
		}
	}
	return nil
}

func (q Queue) check() error {
	var errs []error
	wrong := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("memory: queue %q: %s: %w", q.Name, fmt.Sprintf(format, args...), jms.ErrConfig))
	}
	if q.Name == "" {
		wrong("give it a name")
	}
	if q.MaxDepth < 0 {
		wrong("MaxDepth is %d; use 0 for no limit", q.MaxDepth)
	}
	if q.SingleActiveConsumer && q.Shared {
		wrong("choose SingleActiveConsumer or Shared, not both")
	}
	if q.BackoutThreshold < 0 {
		wrong("BackoutThreshold is %d; use 0 for none", q.BackoutThreshold)
	}
	if (q.BackoutQueue == "") != (q.BackoutThreshold == 0) {
		wrong("set both BackoutQueue and BackoutThreshold, or neither")
	}
	return errors.Join(errs...)
}

// queue is a declared queue at work. All of it is guarded by the broker's mutex.
type queue struct {
	Queue
	b *Broker

	ready     levels
	delayed   delayed
	delayTime *time.Timer
	holdTime  *time.Timer
	depth     int // all messages, whatever their state
	unsettled int // of these, those sent to a client
	expiring  int // of these, those with an expiry
	pending   int // used while a batch is checked

	lastSeq, lastReturn uint64

	conns   []*conn // as the broker sees them
	turn    int     // whose turn it is when several may receive
	waiting int     // sessions in Receive
	line    []*conn // single active consumer: the active one first, then those that stand by

	brokenOff bool // the active one before did not close in order

	noGet, noPut bool
	counters     counters
}

// find needs the mutex.
func (b *Broker) find(name string) (*queue, error) {
	if b.closed {
		return nil, fmt.Errorf("memory: the broker is closed: %w", jms.ErrConnectionLost)
	}
	if q := b.queues[name]; q != nil {
		return q, nil
	}
	return nil, fmt.Errorf("memory: queue %q does not exist; declare it with NewBroker or Declare: %w", name, jms.ErrConfig)
}

// InhibitGet switches receiving from a queue off or on. While it is off a Receive, also a waiting one, fails with jms.ErrBusy; what is
// held can be settled. An unknown queue is jms.ErrConfig.
func (b *Broker) InhibitGet(queue string, off bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	q, err := b.find(queue)
	if err != nil {
		return err
	}
	q.noGet = off
	if off {
		q.endReceives(q.inhibited())
	}
	q.dispatch()
	return nil
}

// InhibitPut switches sending to a queue off or on. While it is off a Send, and a Commit that sends to it, fail with jms.ErrBusy.
// An unknown queue is jms.ErrConfig.
func (b *Broker) InhibitPut(queue string, off bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	q, err := b.find(queue)
	if err != nil {
		return err
	}
	q.noPut = off
	return nil
}

func (q *queue) inhibited() error {
	return fmt.Errorf("memory: queue %q is inhibited for receiving; switch it on with InhibitGet: %w", q.Name, jms.ErrBusy)
}

// Quiesce announces the end: each Receive fails with jms.ErrQuiescing, Connect with jms.ErrConnectionLost, and what is held can still be
// settled. Restart ends it.
func (b *Broker) Quiesce() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.quiescing = true
	for _, q := range b.queues {
		q.endReceives(b.quiesceError())
	}
}

func (b *Broker) quiesceError() error {
	return fmt.Errorf("memory: the broker is about to stop: %w", jms.ErrQuiescing)
}

// Close loses every connection and refuses everything after it with jms.ErrConnectionLost. It is idempotent.
func (b *Broker) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	for _, q := range b.queues {
		q.loseAll(fmt.Errorf("memory: the broker is closed: %w", jms.ErrConnectionLost))
		if q.delayTime != nil {
			q.delayTime.Stop()
		}
		if q.holdTime != nil {
			q.holdTime.Stop()
		}
	}
	b.closed = true
}
