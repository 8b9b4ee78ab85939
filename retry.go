package keyseq

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Unlimited is the RetryPolicy.MaxRetries that retries for ever.
const Unlimited = -1

// RetryPolicy says what becomes of a failed attempt. A retry is made in place: the message and its session are kept, the key waits,
// no worker is held and the other keys go on.
type RetryPolicy struct {
	// MaxRetries is how often a message is tried again: n gives n+1 attempts; 0 is none, Unlimited never ends. Default 16.
	MaxRetries int
	// Backoff gives the pause before each retry. Default ExponentialBackoff(1 s, 1 min).
	Backoff Backoff
	// OnExhausted says what becomes of a message after its last attempt. Default ActionAuto.
	OnExhausted Action
}

// Backoff gives the pause before retry n, counted from 1. It runs on workers' goroutines, at once for many keys, and must be quick.
// A negative result is taken for 0. A panic is logged, and the pause is a minute.
type Backoff func(n int) time.Duration

// pauseInstead is taken where a Backoff panics: the longest of the default policy.
const pauseInstead = time.Minute

// pause asks a Backoff, which is user code: a step that is not there must not end the process.
func (m *SequenceManager) pause(backoff Backoff, n int) time.Duration {
	pause := pauseInstead
	m.guard("Backoff", func() { pause = backoff(n) })
	return pause
}

// checkRetries says whether the pauses of a message that always fails would outlast hold where a message that was given back is not known again: its
// attempts would begin anew each time, and it would never be given up.
func (m *SequenceManager) checkRetries(hold time.Duration) []error {
	retry := m.cfg.Retry
	if retry.MaxRetries == Unlimited {
		return nil
	}
	// Of a pause with jitter the longest of a few counts, so that it is hardly a matter of luck; the last that is looked at stands for all beyond.
	const looks, far = 8, 64
	var sum, pause time.Duration
	for n := 1; n <= retry.MaxRetries && sum <= hold; n++ {
		if n > far {
			sum += pause * time.Duration(min(int64(retry.MaxRetries-far), int64(hold/max(pause, 1))+1))
			break
		}
		pause = 0
		for range looks {
			pause = max(pause, m.pause(retry.Backoff, n))
		}
		sum += pause
	}
	if sum <= hold {
		return nil
	}
	return []error{&ConfigError{"Retry", fmt.Sprintf("pauses longer than MaxHold %v before its %d retries are over: the message would be given back meanwhile, and this broker's message IDs do not "+
		"tell that it was tried before, so its attempts would begin anew and it would never be given up; lower MaxRetries, shorten the pauses, use ActionHold, or lengthen what the broker allows", hold, retry.MaxRetries)}}
}

// FixedBackoff always pauses for d.
func FixedBackoff(d time.Duration) Backoff {
	return func(int) time.Duration { return d }
}

// ExponentialBackoff doubles from first to most, with full jitter: each pause is drawn evenly between 0 and that value, so that keys
// that failed together do not come back together.
func ExponentialBackoff(first, most time.Duration) Backoff {
	return func(n int) time.Duration {
		limit := most
		if n >= 1 && n < 63 {
			if d := first << (n - 1); d > 0 && d>>(n-1) == first {
				limit = min(d, most)
			}
		}
		if limit <= 0 {
			return 0
		}
		return time.Duration(rand.Int64N(int64(limit) + 1))
	}
}

// StepBackoff pauses for the n-th step before retry n; the last one repeats. Without steps it does not pause.
func StepBackoff(steps ...time.Duration) Backoff {
	steps = slices.Clone(steps) // the caller may go on using its own
	return func(n int) time.Duration {
		if len(steps) == 0 {
			return 0
		}
		return steps[min(max(n, 1), len(steps))-1]
	}
}

// Action is what becomes of a message that is given up.
type Action int

const (
	// ActionAuto dead-letters if a dead-letter queue is known (Config.DeadLetterQueue, or the queue's own backout queue), else holds the
	// key; a message without a key (OnKeyError) stops the run instead of being held.
	ActionAuto Action = iota
	// ActionHold goes on retrying at the pause that the Backoff gives for such a number; the key waits, Events.Blocked names it. Not for OnKeyError.
	ActionHold
	// ActionDeadLetter sends it to the dead-letter queue in the unit of work that removes it. Without a known queue Start fails.
	ActionDeadLetter
	// ActionDiscard removes it, counted and told by Events.Discarded.
	ActionDiscard
	// ActionStop gives it back and ends the run with its error.
	ActionStop
)

func (a Action) String() string {
	switch a {
	case ActionAuto:
		return "auto"
	case ActionHold:
		return "hold"
	case ActionDeadLetter:
		return "dead letter"
	case ActionDiscard:
		return "discard"
	case ActionStop:
		return "stop"
	}
	return "unknown action"
}
