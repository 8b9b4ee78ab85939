package providertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/orderaudit"
)

// instance is the name of the one process that a case is, in the history.
const instance = "manager"

// audit is one case of RunManager: it records what managers do, in numbers and as a history for package orderaudit.
type audit struct {
	*kase
	limit   time.Duration // for a wait
	returns time.Duration // how long a manager waits after a loss; known once one has been started
	history *orderaudit.Recorder
	factory *tracked

	mu       sync.Mutex
	news     chan struct{} // closed and replaced when something has happened
	messages map[string]*track
	running  int
	held     int // received and not settled
	sent     int
	settled  int // messages that have left the queue, as far as is known
	bytes    int // of the held ones' bodies

	mostRunning, mostHeld, mostBytes int
}

// track is what is known of one message.
type track struct {
	tasks   int // begun
	open    bool
	intent  orderaudit.Outcome
	outcome orderaudit.Outcome
}

// errFailed is what a task returns that fails on purpose.
var errFailed = errors.New("failed on purpose")

func (a *audit) open() {
	a.history = orderaudit.NewRecorder()
	a.factory = &tracked{ConnectionFactory: a.b.Factory, name: a.named}
}

// name parses a body: key, dot, number, and perhaps padding behind a blank.
func name(body []byte) (key string, number int64) {
	head, _, _ := bytes.Cut(body, []byte(" "))
	key, digits, _ := strings.Cut(string(head), ".")
	number, _ = strconv.ParseInt(digits, 10, 64)
	return key, number
}

// load sends messages "key.number" for each key, the numbers from..to-1, interleaved: all keys' first messages come first.
func (a *audit) load(keys []string, from, to int) {
	a.Helper()
	var out []jms.Outgoing
	flush := func() {
		a.send(a.b.Queue, out...)
		for _, o := range out {
			a.history.Sent(name(o.Body))
		}
		a.sent += len(out)
		out = out[:0]
	}
	for n := from; n < to; n++ {
		for _, key := range keys {
			out = append(out, jms.Outgoing{Text: true, Body: fmt.Appendf(nil, "%s.%d", key, n)})
			if len(out) == 100 {
				flush()
			}
		}
	}
	if len(out) > 0 {
		flush()
	}
}

// keys gives n names of keys.
func keys(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("k%d", i)
	}
	return all
}

// manager makes a manager whose tasks and events are recorded. n is how often the message's task has begun, this time included.
func (a *audit) manager(task func(ctx context.Context, d *keyseq.Delivery, n int) error, configure func(c *keyseq.Config)) *keyseq.SequenceManager {
	a.Helper()
	listener := keyseq.ListenerFuncs{Task: func(ctx context.Context, d *keyseq.Delivery) error { return a.task(ctx, d, task) }}
	m, err := keyseq.NewSequenceManager(a.b.Queue, a.factory, listener, keyseq.KeyFromBodyBefore("."), func(c *keyseq.Config) {
		c.Workers, c.MaxInFlight = 20, 200
		c.SingleActiveConsumer = a.single
		c.Retry = keyseq.RetryPolicy{MaxRetries: keyseq.Unlimited, Backoff: keyseq.FixedBackoff(5 * time.Millisecond)}
		c.Reconnect = keyseq.FixedBackoff(20 * time.Millisecond)
		c.Events = append(c.Events, a.events())
		if configure != nil {
			configure(c)
		}
		if a.h.Config != nil {
			a.h.Config(c)
		}
	})
	if err != nil {
		a.Fatalf("NewSequenceManager: %v", err)
	}
	a.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), a.h.Patience)
		defer cancel()
		_ = m.Shutdown(ctx)
	})
	return m
}

// started is manager, and starts it.
func (a *audit) started(task func(ctx context.Context, d *keyseq.Delivery, n int) error, configure func(c *keyseq.Config)) *keyseq.SequenceManager {
	a.Helper()
	m := a.manager(task, configure)
	a.start(m)
	return m
}

func (a *audit) start(m *keyseq.SequenceManager) {
	a.Helper()
	a.bounded("Start", a.limit, m.Start)
	if a.returns = m.Config().ReturnDelay; a.returns == 0 {
		a.returns = a.factory.capabilities().Returns()
	}
	if !a.h.Bubble { // once before the first receive, if the provider cannot tell that nothing is locked, and after each loss
		a.mu.Lock()
		defer a.mu.Unlock()
		a.limit = 3*a.h.Patience + 3*a.returns
	}
}

// cuts skips the case if the connection cannot be cut, or the wait after it is longer than anybody would wait for a test. It gives how often
// to cut.
func (a *audit) cuts(most int) int {
	a.Helper()
	a.needs(a.b.Break != nil, "Break, which cuts a connection")
	switch {
	case a.h.Bubble || a.returns == 0:
		return most
	case a.returns > 3*a.h.Patience:
		a.Skipf("the manager waits %v after a loss, longer than the suite does: let the broker notice early and set Config.ReturnDelay", a.returns)
	}
	return min(most, 2)
}

func (a *audit) shutdown(m *keyseq.SequenceManager) {
	a.Helper()
	a.history.InstanceStopping(instance)
	a.bounded("Shutdown", a.limit, m.Shutdown)
}

// bounded makes a call that must succeed in time.
func (a *audit) bounded(what string, limit time.Duration, call func(context.Context) error) {
	a.Helper()
	ctx, cancel := context.WithTimeout(a.ctx, limit)
	defer cancel()
	if _, err := within(a.kase, limit+a.h.Patience, what, func() (any, error) { return nil, call(ctx) }); err != nil {
		a.broken("%s returned %v", what, err)
	}
}

// until waits for news until ok says so; ok runs with a.mu held.
func (a *audit) until(what string, ok func() bool) {
	a.Helper()
	if !a.await(ok) {
		a.broken("not within %v: %s\n%s", a.limit, what, a.state())
	}
}

// await is until for tasks, which must not end the case from their goroutine. It reports whether ok said so in time.
func (a *audit) await(ok func() bool) bool {
	a.mu.Lock()
	deadline := time.NewTimer(a.limit)
	a.mu.Unlock()
	defer deadline.Stop()
	for {
		a.mu.Lock()
		done, news := ok(), a.news
		a.mu.Unlock()
		if done {
			return true
		}
		select {
		case <-news:
		case <-deadline.C:
			return false
		}
	}
}

// state describes the case for a message.
func (a *audit) state() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return fmt.Sprintf("%d messages settled of %d seen, %d held, %d running", a.settled, len(a.messages), a.held, a.running)
}

// settles reports whether an outcome takes the message off the queue, or may have done so: what is in doubt need not come again.
func settles(o orderaudit.Outcome) bool {
	return o == orderaudit.Settled || o == orderaudit.DeadLettered || o == orderaudit.Discarded || o == orderaudit.Unknown
}

// untilSettled waits until so many messages have left the queue.
func (a *audit) untilSettled(n int) {
	a.Helper()
	a.until(fmt.Sprintf("%d messages are settled", n), func() bool { return a.settled >= n })
}
