package keyseq

import (
	"fmt"
	"slices"
	"strings"
)

// runningKeys are those that a worker has, in a task or in a call.
func (r *run) runningKeys() (keys []string) {
	r.m.d.Workers(func(_ *worker, v keyView, _ uint64) { keys = append(keys, v.Name) })
	return keys
}

// incomplete notes that the end was not orderly.
func (r *run) incomplete(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.undone = err
}

func (r *run) stuckError() error {
	return fmt.Errorf("keyseq: queue %q: %w: calls to the broker do not return; what becomes of the messages of these keys is not known, they may come again: %s",
		r.m.queue, ErrDrainTimeout, named(r.runningKeys()))
}

func drainError(queue string, keys []string) error {
	if len(keys) == 0 {
		return fmt.Errorf("keyseq: queue %q: %w: what the broker may still hold was waited for", queue, ErrDrainTimeout)
	}
	return fmt.Errorf("keyseq: queue %q: %w: tasks of these keys were running and were cancelled: %s", queue, ErrDrainTimeout, named(keys))
}

// mostNamed bounds the keys that an error names.
const mostNamed = 20

func named(keys []string) string {
	slices.Sort(keys)
	more := ""
	if len(keys) > mostNamed {
		more = fmt.Sprintf(" and %d more", len(keys)-mostNamed)
		keys = keys[:mostNamed]
	}
	for i, k := range keys {
		keys[i] = fmt.Sprintf("%q", k)
	}
	return strings.Join(keys, ", ") + more
}
