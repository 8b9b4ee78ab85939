package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/orderaudit"
	"github.com/keyseq/keyseq/provider/memory"
)

const (
	queue, deadQueue, outQueue = "Q", "Q.DEAD", "OUT"
	taskTimeout                = 5 * time.Second
	callTimeout                = 4 * time.Second
	takeover                   = 20 * time.Second // more than the longest notice and the longest return delay with an election
	settleWithin               = 12 * time.Hour
)

// world is one run of a schedule.
type world struct {
	t      *testing.T
	s      schedule
	broker *memory.Broker
	rec    *orderaudit.Recorder
	logs   *logBuffer

	mu       sync.Mutex
	managers map[string]*keyseq.SequenceManager
	sent     map[string]int64            // messages of a key
	faults   map[memory.CallKind][]fault // pending, one call each
	running  map[string]int              // tasks of an instance
	started  map[string]bool             // instance/key/seq
	begun    map[string]int
	keyTries map[string]int // how often the key of a message was asked for
	opens    int64          // calls of OpenSession
	bad      map[string]int // messages without a key that were settled, by number
	sentBad  int
	hanging  atomic.Int32 // calls that do not return yet
	over     bool         // nothing is to be started again
	problems []string
}

type fault struct {
	after bool
	err   error
	hang  time.Duration
}

func newWorld(t *testing.T, s schedule) *world {
	w := &world{t: t, s: s, rec: orderaudit.NewRecorder(), managers: map[string]*keyseq.SequenceManager{}, sent: map[string]int64{},
		faults: map[memory.CallKind][]fault{}, running: map[string]int{}, started: map[string]bool{}, begun: map[string]int{},
		keyTries: map[string]int{}, bad: map[string]int{}, logs: &logBuffer{}}
	b, err := memory.NewBroker(s.broker(), memory.Queue{Name: queue, SingleActiveConsumer: s.sac}, memory.Queue{Name: deadQueue}, memory.Queue{Name: outQueue})
	if err != nil {
		t.Fatal(err)
	}
	w.broker = b
	b.SetHook(w.hook)
	instances := []string{"A"}
	if s.sac {
		instances = append(instances, "B")
	}
	for _, name := range instances {
		w.managers[name] = w.manager(name)
	}
	return w
}

func (w *world) manager(name string) *keyseq.SequenceManager {
	m, err := keyseq.NewSequenceManager(queue, w.broker, &task{w, name}, keyseq.KeyExtractorFunc(w.key), func(c *keyseq.Config) {
		c.Workers, c.MaxInFlight = w.s.workers, w.s.maxInFlight
		c.TaskTimeout, c.CallTimeout = taskTimeout, callTimeout
		c.Retry = keyseq.RetryPolicy{MaxRetries: w.s.maxRetries, Backoff: keyseq.StepBackoff(0, 100*time.Millisecond, 2*time.Second, 7*time.Second)}
		c.Retry.OnExhausted, c.OnKeyError, c.MaxDeliveries = w.s.exhausted, w.s.onKeyError, w.s.deliveries
		if w.s.maxBytes > 0 {
			c.MaxInFlightBytes = w.s.maxBytes
		}
		if w.s.deadLetters {
			c.DeadLetterQueue = deadQueue
		}
		c.MaxHold = w.s.maxHold
		c.SingleActiveConsumer = w.s.sac
		c.Reconnect = keyseq.FixedBackoff(300 * time.Millisecond)
		c.DrainTimeout = 10 * time.Second
		c.ClientName = name
		if w.s.sac {
			c.TakeoverDelay = takeover
		}
		c.Logger = w.logs.logger(name)
		c.Events = []keyseq.Events{w.events(name)}
	})
	if err != nil {
		w.t.Fatalf("%v%v", w.s, err)
	}
	return m
}

// hook lets one call after the other have a fault of its kind.
func (w *world) hook(ctx context.Context, c memory.Call) error {
	if c.Kind == memory.CallOpenSession && !c.After && w.s.opening > 0 {
		time.Sleep(w.opensIn(c.Client))
	}
	w.mu.Lock()
	list := w.faults[c.Kind]
	i := slices.IndexFunc(list, func(f fault) bool { return f.after == c.After })
	if i < 0 || c.Queue != queue {
		w.mu.Unlock()
		return nil
	}
	f := list[i]
	w.faults[c.Kind] = slices.Delete(slices.Clone(list), i, i+1)
	w.mu.Unlock()
	loss := w.rec.Loss("", "fault of a call", 0)
	go func() {
		time.Sleep(f.hang + 40*time.Second)
		loss.Done()
	}()
	w.logs.add("hook", fmt.Sprintf("%v after=%t by %s: hang %v, error %v", c.Kind, c.After, c.Client, f.hang, f.err))
	if f.hang > 0 {
		w.hanging.Add(1)
		defer w.hanging.Add(-1)
		time.Sleep(f.hang)
	}
	return f.err
}

// opensIn is how long the next session takes to be opened.
func (w *world) opensIn(client string) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.opens++
	return time.Duration(w.s.choice(client, w.opens, 0, "open") * float64(w.s.opening))
}

func (w *world) send() {
	for i := range w.s.messages {
		of := int(w.s.choice("", int64(i), 0, "key") * float64(w.s.keys))
		key := "k" + strconv.Itoa(of)
		out := jms.Outgoing{Queue: queue, Body: make([]byte, int(w.s.choice("", int64(i), 0, "size")*300))}
		if w.s.priorities {
			priority := of % 10
			out.Priority = &priority
		}
		if bad := w.s.choice("", int64(i), 0, "bad") < w.s.keyErrors; bad && !w.keyErrorStops() {
			w.sentBad++
			out.Properties = map[string]any{"bad": int64(i)}
		} else {
			out.Properties = map[string]any{"key": key, "seq": w.sent[key], "stops": bad}
			w.sent[key]++
		}
		if _, err := w.broker.Send(out); err != nil {
			w.t.Fatal(err)
		}
		if seq, good := out.Properties["seq"].(int64); good {
			w.rec.Sent(key, seq)
		}
	}
}

// run plays the schedule and returns what is wrong with it, "" if nothing.
func (w *world) run() string {
	w.send()
	ctx := context.Background()
	for _, name := range w.names() {
		if w.s.sac {
			w.rec.Takeover(name, takeover)
		}
		w.start(name)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.keepRunning()
	}()
	defer func() { <-ended }()
	defer w.stopRunning()
	var all sync.WaitGroup
	for _, st := range w.s.steps {
		all.Go(func() {
			time.Sleep(st.at)
			w.do(st)
		})
	}
	all.Wait()
	w.mu.Lock()
	clear(w.faults)
	w.mu.Unlock()
	began := time.Now()
	for w.broker.Depth(queue) > 0 {
		time.Sleep(time.Second)
		if time.Since(began) > settleWithin {
			return w.stuck()
		}
	}
	for w.hanging.Load() > 0 { // what it has held up would be an error of Shutdown
		time.Sleep(time.Second)
	}
	w.stopRunning()
	<-ended
	for _, name := range w.names() {
		stop, cancel := context.WithTimeout(ctx, time.Hour)
		if err := w.managers[name].Shutdown(stop); err != nil {
			w.problems = append(w.problems, fmt.Sprintf("shutdown of %s: %v", name, err))
		}
		cancel()
	}
	defer time.Sleep(3 * time.Minute) // calls that hang return within it
	defer w.broker.Close()
	return w.judge()
}

// keepRunning starts the managers again that have ended by an error, as whoever operates them would.
func (w *world) keepRunning() {
	for {
		time.Sleep(time.Second)
		for _, name := range w.names() {
			w.mu.Lock()
			over := w.over
			w.mu.Unlock()
			if over {
				return
			}
			if w.managers[name].State() == keyseq.StateFailed {
				w.start(name)
			}
		}
	}
}

func (w *world) stopRunning() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
}

// end ends a run that has failed, so that its bubble can be left.
func (w *world) end() {
	for _, name := range w.names() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		_ = w.managers[name].Shutdown(ctx)
		cancel()
	}
	w.broker.Close()
	time.Sleep(time.Hour)
}

func (w *world) names() []string {
	if w.s.sac {
		return []string{"A", "B"}
	}
	return []string{"A"}
}

// start tries until the manager runs.
func (w *world) start(name string) {
	for {
		err := w.managers[name].Start(context.Background())
		if err == nil {
			return
		}
		if errors.Is(err, keyseq.ErrRunning) { // another step has started it
			return
		}
		// A Connect that was given up may still hold the queue.
		if errors.Is(err, jms.ErrConfig) && !strings.Contains(err.Error(), "already read") {
			w.mu.Lock()
			w.problems = append(w.problems, fmt.Sprintf("start of %s: %v", name, err))
			w.mu.Unlock()
			return
		}
		w.mu.Lock()
		over := w.over
		w.mu.Unlock()
		if over {
			return
		}
		time.Sleep(time.Second)
	}
}

func (w *world) stuck() string {
	var b strings.Builder
	fmt.Fprintf(&b, "stuck: %d messages of %d are left after %v\n", w.broker.Depth(queue), w.s.messages, settleWithin)
	for _, name := range w.names() {
		fmt.Fprintf(&b, "%s: %+v\n", name, w.managers[name].Snapshot())
	}
	b.WriteString(strings.Join(w.problems, "\n"))
	return b.String()
}

func (w *world) judge() string {
	out, err := w.broker.Browse(outQueue)
	if err != nil {
		w.t.Fatal(err)
	}
	count := map[string]int{}
	for i := range out {
		key, _ := out[i].Properties["key"].(string)
		count[fmt.Sprint(key, "/", seqOf(&out[i]))]++
	}
	p := w.s.broker()
	v := w.rec.History().Check(orderaudit.Options{AckDelay: p.AckDelay})
	problems := slices.Clone(w.problems)
	if err := v.Err(); err != nil {
		problems = append(problems, err.Error())
	}
	if p.Prefetch == 0 && v.Uncertain == 0 { // atomic sends: each committed message has sent exactly once
		for key, n := range count {
			if n != 1 {
				problems = append(problems, fmt.Sprintf("outputs: %s came out %d times", key, n))
			}
		}
		if want := v.Settled; len(count) != want {
			problems = append(problems, fmt.Sprintf("outputs: %d messages have sent, %d were settled", len(count), want))
		}
	}
	for i := range w.bad {
		if w.keyErrorStops() {
			delete(w.bad, i)
		}
	}
	if len(w.bad) < w.sentBad {
		problems = append(problems, fmt.Sprintf("%d of %d messages without a key were settled, or may have been", len(w.bad), w.sentBad))
	}
	return strings.Join(problems, "\n")
}
