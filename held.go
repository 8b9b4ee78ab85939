package keyseq

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/keyseq/keyseq/internal/keyqueue"
)

type (
	dispatcher = keyqueue.Dispatcher[held, workerState]
	worker     = keyqueue.Worker[held, workerState]
	keyQueue   = keyqueue.Key[held]
	keyView    = keyqueue.View[held]
)

// held is a message received and not settled, in its place in the queue of its key.
type held struct {
	key        string
	msg        *Message
	session    *session
	receivedAt time.Time
	past       *history    // nil: no attempt has failed, and no settlement of one
	pending    *settlement // what is to be done instead of an attempt: a settlement to be repeated, or of a message without a key
}

// history is what is known of a message's attempts that did not settle it.
type history struct {
	seen          int // attempts that the task has seen to their end
	failures      int // those of them that failed: only these use up retries
	unsettled     int // settlements that were tried, and with which it left all the same
	first, last   time.Time
	err           error
	text          string // the first line of what err says; its method is the user's and must not be called under a lock
	refused       bool   // err is of a settlement, not of an attempt
	undeliverable bool   // it was to be dead-lettered, and no dead-letter queue is known
}

// attempts is how many attempts the task has seen.
func (h *held) attempts() int {
	if h.past == nil {
		return 0
	}
	return h.past.seen
}

// failures is how many of them have failed.
func (h *held) failures() int {
	if h.past == nil {
		return 0
	}
	return h.past.failures
}

// overdue says that it was held as long as allowed: it goes back before anything more is done with it. Without pauses between its attempts no sweep
// would ever find it at rest.
func (h *held) overdue() bool {
	limit := h.session.link.maxHold
	return limit > 0 && time.Since(h.receivedAt) >= limit
}

// failedOnce returns the history with one more failure; the old one is not changed, for others may be reading it.
func (h *held) failedOnce(err error) *history {
	now := time.Now()
	next := &history{seen: 1, failures: 1, first: now, last: now, err: err, text: firstLine(err)}
	if h.past != nil {
		next.seen, next.failures, next.first, next.unsettled = h.past.seen+1, h.past.failures+1, h.past.first, h.past.unsettled
	}
	return next
}

// unsettledOnce returns the history with one more settlement with which the message left unsettled. If that was to end an attempt whose task was done, the
// attempt was seen, and is no failure of the task.
func (h *held) unsettledOnce(err error, performed bool) *history {
	next := h.failedOnce(err)
	next.failures--
	if !performed {
		next.seen--
	}
	next.unsettled++
	next.refused = true
	return next
}

// rememberedMessages bounds attemptMemory: a message that left unsettled usually comes again within seconds.
const rememberedMessages = 10_000

// attemptMemory keeps the attempts of messages that left unsettled, by message ID, so that a redelivery does not start counting anew. The
// oldest is forgotten when there are too many.
type attemptMemory struct {
	mu    sync.Mutex
	n     atomic.Int32 // len(byID), so that an empty memory costs nothing
	byID  map[string]*history
	order []string
}

func (a *attemptMemory) remember(id string, past *history) {
	if id == "" || past == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byID == nil {
		a.byID = map[string]*history{}
	}
	known, again := a.byID[id]
	if again && known.seen > past.seen { // a copy that the broker sent while the one before it was still tried
		return
	}
	if !again {
		a.order = append(a.order, id)
	}
	a.byID[id] = past
	for len(a.order) > rememberedMessages {
		delete(a.byID, a.order[0])
		a.order = a.order[1:]
	}
	a.n.Store(int32(len(a.byID)))
}

// recall gives what is known of a message.
func (a *attemptMemory) recall(id string) *history {
	if a.n.Load() == 0 {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.byID[id]
}

// forget drops a message that has been settled.
func (a *attemptMemory) forget(id string) {
	if a.n.Load() == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, known := a.byID[id]; !known {
		return
	}
	delete(a.byID, id)
	a.n.Store(int32(len(a.byID)))
	for i, x := range a.order {
		if x == id {
			a.order = append(a.order[:i], a.order[i+1:]...)
			break
		}
	}
}
