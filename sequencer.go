package keyseq

import (
	"errors"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/keyseq/keyseq/internal/keyqueue"
	"github.com/keyseq/keyseq/jms"
)

// SequenceManager reads one queue and runs the Listener's tasks: the messages of a key one after another, in queue order, and those of
// different keys side by side. All methods are safe for concurrent use. None may be called from a callback but Snapshot,
// Explain, State, Config, Live and Ready.
type SequenceManager struct {
	queue    string
	factory  jms.ConnectionFactory
	listener Listener
	key      KeyExtractor
	cfg      Config
	log      *slog.Logger
	observed bool // somebody listens to Events
	slack    int  // how many more keys than workers the window holds where sessions are costly

	d            *dispatcher
	memory       attemptMemory
	survived     seenBefore // with MaxDeliveries
	counters     counters
	emptyKey     sync.Once
	current      atomic.Pointer[run] // nil: stopped
	readerID     atomic.Int64        // goroutines that call the user's code, beside the workers
	supervisorID atomic.Int64
	callers      sync.Map // goroutines inside a rareCallback
	looked       lastLook
	extracting   atomic.Int64 // since when the reader is in user code, in Unix nanoseconds; 0: it is not

	mu        sync.Mutex
	state     State
	runErr    error         // of the last run
	stateErr  error         // why the state is what it is
	told      chan struct{} // closed when everybody has been told of it
	done      chan struct{} // of the present or last run; closed when it has ended
	kept      *link         // left open by Stop
	readAfter time.Time     // clause 4 of the give-back rule; outlives a run
	losing    int           // lost sessions that are being closed
	everRead  bool
	epoch     uint64

	passedHold time.Duration // the MaxHold of a link that the settings have passed: see checkHold
}

type counters struct {
	received, committed, failures, rolledBack, deadLettered, discarded atomic.Uint64
}

// NewSequenceManager makes a manager for one queue. It does no I/O and reports every wrong argument and setting at once: the error joins
// one *ConfigError for each. Each configure function gets the Config with its defaults, in turn, and changes what it likes.
func NewSequenceManager(queue string, factory jms.ConnectionFactory, listener Listener, key KeyExtractor, configure ...func(*Config)) (*SequenceManager, error) {
	cfg := defaultConfig()
	for _, f := range configure {
		if f != nil {
			f(&cfg)
		}
	}
	var p problems
	p.add(queue != "", "queue", "is empty: name the queue to read")
	p.add(!missing(factory), "factory", "is nil: pass a provider's connection factory")
	p.add(!missing(listener), "listener", "is nil: pass your Listener")
	p.add(!missing(key), "key", "is nil: pass a KeyExtractor such as KeyFromProperty")
	var funcs *ListenerFuncs
	switch l := listener.(type) {
	case ListenerFuncs:
		funcs = &l
	case *ListenerFuncs:
		funcs = l
	}
	p.add(funcs == nil || funcs.Task != nil, "listener", "ListenerFuncs.Task is nil: give it the function that handles a message")
	if c, ok := key.(checkedExtractor); ok {
		if err := c.check(); err != nil {
			p = append(p, err)
		}
	}
	p.add(cfg.DeadLetterQueue == "" || cfg.DeadLetterQueue != queue, "DeadLetterQueue", "is %q, the queue that is read: what is given up would come again for ever; name another one", queue)
	cfg.check(&p)
	if len(p) > 0 {
		return nil, errors.Join(p...)
	}
	m := &SequenceManager{queue: queue, factory: factory, listener: listener, key: key, cfg: cfg.clone(), log: cfg.Logger}
	m.observed = len(m.cfg.Events) > 0
	m.slack = max(1, cfg.Workers/10)
	m.d = keyqueue.New(cfg.Workers, m.turn)
	return m, nil
}

// missing says whether an argument is nil, or an interface around a nil pointer or func, which would panic at its first use.
func missing(argument any) bool {
	if argument == nil {
		return true
	}
	switch v := reflect.ValueOf(argument); v.Kind() {
	case reflect.Pointer, reflect.Func:
		return v.IsNil()
	}
	return false
}

// Config returns a copy of the settings.
func (m *SequenceManager) Config() Config { return m.cfg.clone() }
