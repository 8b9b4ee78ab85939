package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/keyseq/keyseq/orderaudit"
	"github.com/keyseq/keyseq/provider/rabbitmq/internal/audited"
	"github.com/keyseq/keyseq/provider/rabbitmq/internal/faultproxy"
)

// round is one run of producer, consumers and faults on a queue of its own.
type round struct {
	seed     uint64
	rand     *rand.Rand
	b        *broker
	dir      string
	kind     string // of the queues
	elect    bool   // the consumers elect the active one by consuming exclusively
	queue    string
	out      string // "": the tasks send nothing
	window   int
	task     time.Duration
	takeover time.Duration
	faults   int
	record   *orderaudit.Recorder
	slots    []*slot
	killed   bool // the broker, with kill -9
	sum      *totals
}

func newRound(seed uint64, b *broker, dir string) *round {
	r := &round{seed: seed, rand: rand.New(rand.NewPCG(seed, 1)), b: b, dir: dir}
	r.kind = []string{amqp.QueueTypeClassic, amqp.QueueTypeQuorum}[r.rand.IntN(2)]
	r.elect = r.kind == amqp.QueueTypeClassic && r.rand.IntN(2) == 0
	r.queue = fmt.Sprint("chaos-", seed)
	if r.rand.IntN(2) == 0 {
		r.out = r.queue + "-out"
	}
	r.window = []int{50, 200, 1000}[r.rand.IntN(3)]
	r.task = []time.Duration{0, 5 * time.Millisecond, 15 * time.Millisecond}[r.rand.IntN(3)]
	if r.rand.IntN(2) == 0 {
		r.takeover = 300 * time.Millisecond
	}
	r.faults = 4 + r.rand.IntN(4)
	return r
}

func (r *round) run(ctx context.Context, sum *totals) (err error) {
	r.sum = sum
	if r.record, err = orderaudit.OpenFile(filepath.Join(r.dir, "harness")); err != nil {
		return err
	}
	conn, ch, err := r.b.dial(ctx)
	if err != nil {
		return err
	}
	arguments := amqp.Table{amqp.QueueTypeArg: r.kind}
	if !r.elect {
		arguments[amqp.SingleActiveConsumerArg] = true
	}
	if _, err := ch.QueueDeclare(r.queue, true, false, false, false, arguments); err != nil {
		return err
	}
	if r.out != "" {
		if _, err := ch.QueueDeclare(r.out, true, false, false, false, amqp.Table{amqp.QueueTypeArg: r.kind}); err != nil {
			return err
		}
	}
	_ = conn.Close()
	for i := range 2 + r.rand.IntN(2) {
		p, err := faultproxy.New(r.b.address)
		if err != nil {
			return err
		}
		defer p.Close()
		s := &slot{r: r, id: string(rune('A' + i)), proxy: p}
		if err := s.launch(); err != nil {
			return err
		}
		defer s.end()
		r.slots = append(r.slots, s)
	}
	// A quorum queue that is younger than about a second does not survive a kill -9 of RabbitMQ 3.10.
	time.Sleep(1500 * time.Millisecond)

	p := &producer{b: r.b, queue: r.queue, keys: 10 + r.rand.IntN(40), record: r.record}
	producing, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- p.run(producing, 60*time.Millisecond) }()
	var log []string
	for range r.faults {
		time.Sleep(time.Duration(300+r.rand.IntN(1200)) * time.Millisecond)
		name, err := r.breakSomething()
		if err != nil {
			return err
		}
		log = append(log, name)
		sum.faults[name]++
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	p.stop.Store(true)
	if err := <-done; err != nil {
		return fmt.Errorf("producer: %w", err)
	}
	sum.doubtful += p.doubtful
	if err := r.drain(ctx); err != nil {
		return err
	}
	for _, s := range r.slots {
		r.record.InstanceStopping(s.name)
		if err := s.end(); err != nil {
			return err
		}
	}
	if err := r.outputs(ctx); err != nil {
		return err
	}
	return r.judge(log)
}

// drain waits until the queue is empty and nobody holds a message.
func (r *round) drain(ctx context.Context) error {
	least, moved := -1, time.Now()
	for empty := 0; empty < 2; time.Sleep(200 * time.Millisecond) {
		n, err := r.b.left(r.queue)
		if err != nil {
			return err
		}
		if n == 0 {
			empty++
			continue
		}
		empty = 0
		if least < 0 || n < least {
			least, moved = n, time.Now()
		}
		if time.Since(moved) > time.Minute {
			return fmt.Errorf("G8: for a minute nothing moves, %d messages are on the queue", n)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		for _, s := range r.slots {
			if err := s.died(); err != nil {
				return err
			}
		}
	}
	return nil
}

// outputs records what the tasks have sent, and removes the queues.
func (r *round) outputs(ctx context.Context) error {
	conn, ch, err := r.b.dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if r.out != "" {
		for {
			d, ok, err := ch.Get(r.out, true)
			if err != nil {
				return err
			}
			if !ok {
				break
			}
			key, number := audited.Name(d.Body)
			r.record.Output(key, number, 1)
		}
		if _, err := ch.QueueDelete(r.out, false, false, false); err != nil {
			return err
		}
	}
	_, err = ch.QueueDelete(r.queue, false, false, false)
	return err
}

// judge joins the histories of all processes.
func (r *round) judge(log []string) error {
	if err := r.record.Close(); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(r.dir, "*.history"))
	if err != nil {
		return err
	}
	h, err := orderaudit.Load(append(files, filepath.Join(r.dir, "harness"))...)
	if err != nil {
		return err
	}
	// The broker may not have processed the last acknowledgements of who was killed. One that is killed itself has forgotten those that it had
	// not written, which on a busy classic queue are those of many seconds; what comes again runs in order all the same.
	o := orderaudit.Options{AckDelay: 2 * time.Second, OutputsRepeat: true}
	if r.killed {
		o.AckDelay = time.Hour
	}
	if r.out != "" {
		o.Outputs = func(string, int64) int { return 1 }
	}
	v := h.Check(o)
	fmt.Printf("round %d: %s, exclusive %t, %d consumers, window %d, tasks up to %v, takeover delay %v, sends %t: %s\n", r.seed, r.kind, r.elect, len(r.slots), r.window, r.task,
		r.takeover, r.out != "", strings.Join(log, ", "))
	if v.OK() {
		fmt.Println("   ", v)
	}
	r.sum.messages += v.Messages
	r.sum.attempts += v.Attempts
	r.sum.repeats += v.Repeats
	r.sum.losses += v.Losses
	if t := takeovers(h); len(t) > 0 {
		how := fmt.Sprintf("TakeoverDelay %v, exclusive %t", r.takeover, r.elect)
		r.sum.takeovers[how] = append(r.sum.takeovers[how], t...)
	}
	if err := v.Err(); err != nil {
		return err
	}
	return os.RemoveAll(r.dir)
}

// takeovers measures from the kill of the instance that worked last to the next task of another.
func takeovers(h *orderaudit.History) []time.Duration {
	var all []time.Duration
	var active, victim string
	var at time.Duration
	for _, rec := range h.Records {
		switch rec.Kind {
		case orderaudit.KindLoss:
			if rec.Text == killConsumer && rec.Instance == active {
				victim, at = rec.Instance, rec.At
			} else {
				victim = "" // something else broke before anybody took over
			}
		case orderaudit.KindStart:
			if victim != "" && rec.Instance != victim {
				all = append(all, rec.At-at)
				victim = ""
			}
			active = rec.Instance
		}
	}
	return all
}
