package keyseq

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Snapshot is a look at a manager at one moment. Oldest and Blocked need a visit of every live key, some 50 ms at 100,000 of them, so they
// are taken anew only as often as costs a hundredth of the time: there they may be some seconds old, and never more than ten. All
// else, and Explain, is of the moment, and cheap.
type Snapshot struct {
	State State
	// Workers exist, Running of them run a task or a settlement. Ready keys wait for a worker, Retrying ones for their next
	// attempt, Keys have at least one message.
	Workers, Running, Ready, Retrying, Keys int
	// InFlight messages are received and unsettled, a place reserved for the next included; MaxInFlight is the limit now. Sessions are open.
	InFlight, MaxInFlight, Sessions int
	// Counters since the manager was made. Retries counts failed attempts.
	Received, Committed, Retries, RolledBack, DeadLettered, Discarded uint64
	// Oldest is when the message was received that is held longest; zero if none is.
	Oldest time.Time
	// Blocked are the up to 20 keys whose head has been held longest without its task being done.
	Blocked []KeyReport
}

// KeyReport says why a key does not move.
type KeyReport struct {
	Key       string
	MessageID string // of its head
	// Reason is in words: "attempt 3 of 17 failed 12 s ago: timeout; next in 48 s; 5 messages wait, oldest 2 min".
	Reason  string
	Attempt int // of the head: the one that runs, or the last that failed
	Held    int // messages, the head included
	// Since is when the trouble began: the first failure of its head, also one before it was received anew, as far as that is remembered. Without a failure
	// it is when the attempt began that runs, or when the head was received if none does.
	Since time.Time
	// NextAttempt is when the head runs again; zero if it runs, is ready or is blocked.
	NextAttempt time.Time
	Oldest      time.Time // when its head, the oldest of its messages, was received
	Err         error     // of the last failed attempt
}

const mostBlocked = 20

// Snapshot describes the manager now. It may be called from anywhere.
func (m *SequenceManager) Snapshot() Snapshot {
	now := time.Now()
	d := m.d.Stats()
	s := Snapshot{
		State: m.State(), Workers: d.Workers, Running: d.Running, Ready: d.Ready, Retrying: d.Paused, Keys: d.Keys,
		InFlight: d.Held, MaxInFlight: d.Limits.Items,
		Received: m.counters.received.Load(), Committed: m.counters.committed.Load(), Retries: m.counters.failures.Load(),
		RolledBack: m.counters.rolledBack.Load(), DeadLettered: m.counters.deadLettered.Load(), Discarded: m.counters.discarded.Load(),
	}
	if r := m.current.Load(); r != nil {
		r.mu.Lock()
		if r.reading != nil {
			s.Sessions = r.reading.pool.size()
		}
		r.mu.Unlock()
	}
	if s.Keys > 0 {
		s.Blocked, s.Oldest = m.look(now)
	}
	return s
}

// lastLook is the last visit of every key, to be used again while it is fresh enough for what it has cost.
type lastLook struct {
	mu      sync.Mutex
	until   time.Time
	blocked []KeyReport
	oldest  time.Time
}

// A visit of every key may take a hundredth of the time, but is not older than this.
const (
	lookShare  = 100
	oldestLook = 10 * time.Second
)

// look gives what Snapshot says of keys. The slice is the caller's.
func (m *SequenceManager) look(now time.Time) ([]KeyReport, time.Time) {
	l := &m.looked
	l.mu.Lock()
	defer l.mu.Unlock()
	if !now.Before(l.until) {
		l.blocked, l.oldest = m.blocked(now)
		end := time.Now()
		l.until = end.Add(min(lookShare*end.Sub(now), oldestLook))
	}
	return slices.Clone(l.blocked), l.oldest
}

// Explain says why a key is where it is; false if nothing of it is held. It may be called from anywhere.
func (m *SequenceManager) Explain(key string) (KeyReport, bool) {
	var report KeyReport
	now := time.Now()
	running := m.running()
	found := m.d.Look(key, func(v keyView) { report = m.report(v, running, now) })
	return report, found
}

// inTask is a message that a worker has.
type inTask struct {
	attempt  int
	began    time.Time
	settling bool // the task is done, or never was: a call to the broker is under way
}

// running says what the workers do.
func (m *SequenceManager) running() map[*Message]inTask {
	all := map[*Message]inTask{}
	m.d.Workers(func(w *worker, _ keyView, _ uint64) {
		if a := w.Own.attempt.Load(); a != nil {
			all[a.Message] = inTask{a.Attempt, a.started, w.Own.calls.Load()%2 == 1}
		}
	})
	return all
}

// blocked reports the keys whose head has been held longest, of those that do not just wait for a worker at their first attempt, and since when
// the message is held that is held longest of all.
func (m *SequenceManager) blocked(now time.Time) (reports []KeyReport, oldest time.Time) {
	running := m.running()
	m.d.Each(func(v keyView) {
		if v.Head == nil {
			return
		}
		since := v.Head.receivedAt
		if oldest.IsZero() || since.Before(oldest) {
			oldest = since
		}
		if !v.Running && !v.Blocked && v.Head.past == nil {
			return
		}
		if len(reports) == mostBlocked && !since.Before(reports[mostBlocked-1].Oldest) {
			return
		}
		at, _ := slices.BinarySearchFunc(reports, since, func(r KeyReport, t time.Time) int { return r.Oldest.Compare(t) })
		reports = slices.Insert(reports, at, m.report(v, running, now))
		reports = reports[:min(len(reports), mostBlocked)]
	})
	return reports, oldest
}

// report is made under the dispatcher's lock.
func (m *SequenceManager) report(v keyView, running map[*Message]inTask, now time.Time) KeyReport {
	r := KeyReport{Key: v.Name, Held: v.Items}
	if v.Head == nil {
		r.Reason = "nothing is held; what was goes back to the queue"
		return r
	}
	h := v.Head
	r.MessageID, r.Since, r.Oldest, r.NextAttempt = h.msg.ID, h.receivedAt, h.receivedAt, v.Due
	r.Attempt = h.attempts()
	var parts []string
	if p := h.past; p != nil {
		r.Err, r.Since = p.err, p.first
		what := fmt.Sprintf("attempt %s failed", m.ofAll(p.failures))
		switch {
		case p.refused && h.pending != nil:
			what = h.pending.kind.String() + " refused"
		case p.refused:
			what = "settlement failed"
		}
		parts = append(parts, fmt.Sprintf("%s %s ago: %s", what, spoken(now.Sub(p.last)), p.text))
		if p.undeliverable {
			parts = append(parts, "no dead-letter queue is known, the key is held")
		} else if most := m.cfg.Retry.MaxRetries; most != Unlimited && p.failures > most && h.pending == nil {
			parts = append(parts, "retries are exhausted, the key is held")
		}
	}
	at, inTask := running[h.msg]
	if inTask {
		r.Attempt = at.attempt
		if h.past == nil {
			r.Since = at.began
		}
	}
	switch {
	case inTask && !at.settling:
		parts = append(parts, fmt.Sprintf("attempt %s runs for %s", m.ofAll(r.Attempt), spoken(now.Sub(at.began))))
	case v.Running && h.pending != nil:
		parts = append(parts, h.pending.kind.String()+" is under way")
	case v.Running:
		parts = append(parts, "settlement is under way")
	case v.Paused:
		parts = append(parts, "next in "+spoken(v.Due.Sub(now)))
	case v.Blocked:
		parts = append(parts, "blocked: goes back to the queue when everything lost is back there")
	default:
		parts = append(parts, "ready: waits for a worker")
	}
	if waiting := v.Items - 1; waiting > 0 {
		parts = append(parts, fmt.Sprintf("%d %s, oldest %s", waiting, plural(waiting, "message waits", "messages wait"), spoken(now.Sub(v.Second.receivedAt))))
	}
	r.Reason = strings.Join(parts, "; ")
	return r
}

// ofAll says "3 of 17"; beyond the last retry, and where there is none, "18".
func (m *SequenceManager) ofAll(n int) string {
	if most := m.cfg.Retry.MaxRetries; most != Unlimited && n <= most+1 {
		return fmt.Sprintf("%d of %d", n, most+1)
	}
	return fmt.Sprint(n)
}

// spoken writes a duration as a person would say it.
func spoken(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Round(time.Second).Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Round(time.Minute).Minutes()))
	}
	return fmt.Sprintf("%d h", int(d.Round(time.Hour).Hours()))
}

func firstLine(err error) string {
	if err == nil {
		return ""
	}
	line, _, _ := strings.Cut(fmt.Sprint(err), "\n") // also of an error whose Error method panics
	return line
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
