package keyseq

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Snapshot is a look at a manager at one moment. Taking one costs a visit of every live key, some milliseconds at 100,000 of them.
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
	Attempt int       // of the head: the one that runs, or the last that failed
	Held    int       // messages, the head included
	Since   time.Time // when its head was received
	// NextAttempt is when the head runs again; zero if it runs, is ready or is blocked.
	NextAttempt time.Time
	Oldest      time.Time // as Since: the head is the oldest
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
	s.Blocked = m.blocked(now)
	m.d.Each(func(v keyView) {
		if v.Head != nil && (s.Oldest.IsZero() || v.Head.receivedAt.Before(s.Oldest)) {
			s.Oldest = v.Head.receivedAt
		}
	})
	return s
}

// Explain says why a key is where it is; false if nothing of it is held. It may be called from anywhere.
func (m *SequenceManager) Explain(key string) (KeyReport, bool) {
	var report KeyReport
	now := time.Now()
	found := m.d.Look(key, func(v keyView) { report = m.report(v, now) })
	return report, found
}

// blocked reports the keys whose head has been held longest, of those that do not just wait for a worker at their first attempt.
func (m *SequenceManager) blocked(now time.Time) []KeyReport {
	var oldest []KeyReport
	m.d.Each(func(v keyView) {
		if v.Head == nil || !v.Running && !v.Blocked && !v.Pinned && v.Head.past == nil {
			return
		}
		since := v.Head.receivedAt
		if len(oldest) == mostBlocked && !since.Before(oldest[mostBlocked-1].Since) {
			return
		}
		at, _ := slices.BinarySearchFunc(oldest, since, func(r KeyReport, t time.Time) int { return r.Since.Compare(t) })
		oldest = slices.Insert(oldest, at, m.report(v, now))
		oldest = oldest[:min(len(oldest), mostBlocked)]
	})
	return oldest
}

// report is made under the dispatcher's lock.
func (m *SequenceManager) report(v keyView, now time.Time) KeyReport {
	r := KeyReport{Key: v.Name, Held: v.Items}
	if v.Head == nil {
		r.Reason = "nothing is held; a call to the broker about it has not returned"
		return r
	}
	h := v.Head
	r.MessageID, r.Since, r.Oldest, r.NextAttempt = h.msg.ID, h.receivedAt, h.receivedAt, v.Due
	r.Attempt = h.attempts()
	var parts []string
	if p := h.past; p != nil {
		r.Err = p.err
		what := "settlement failed"
		if p.failures > 0 {
			what = fmt.Sprintf("attempt %s failed", m.ofAll(p.failures))
		}
		parts = append(parts, fmt.Sprintf("%s %s ago: %s", what, spoken(now.Sub(p.last)), firstLine(p.err)))
	}
	switch {
	case v.Running && h.pending != nil:
		parts = append(parts, h.pending.kind.String()+" is under way")
	case v.Running:
		r.Attempt++
		parts = append(parts, fmt.Sprintf("attempt %s is under way", m.ofAll(r.Attempt)))
	case v.Paused:
		parts = append(parts, "next in "+spoken(v.Due.Sub(now)))
	case v.Blocked:
		parts = append(parts, "blocked: goes back to the queue when everything lost is back there")
	case v.Pinned:
		parts = append(parts, "waits for a call to the broker that has not returned")
	default:
		parts = append(parts, "ready: waits for a worker")
	}
	if waiting := v.Items - 1; waiting > 0 {
		parts = append(parts, fmt.Sprintf("%d %s, oldest %s", waiting, plural(waiting, "message waits", "messages wait"), spoken(now.Sub(v.Second.receivedAt))))
	}
	r.Reason = strings.Join(parts, "; ")
	return r
}

func (m *SequenceManager) ofAll(n int) string {
	if m.cfg.Retry.MaxRetries == Unlimited {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d of %d", n, m.cfg.Retry.MaxRetries+1)
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
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
