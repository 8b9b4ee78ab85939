package keyseq

import (
	"context"
	"fmt"
)

// keep leaves a link open for the next Start, if its idle sessions hide no messages and it carries no role.
func (r *run) keep(l *link) bool {
	m := r.m
	if !l.caps.RollbackInPlace || l.caps.Push || m.cfg.SingleActiveConsumer || l.lost.Load() {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept = l
	return true
}

// takeKept takes the link that Stop has left open, if it still is good. Its idle sessions hold nothing, so nothing is lost with one that is not.
func (m *SequenceManager) takeKept(ctx context.Context) *link {
	m.mu.Lock()
	l := m.kept
	m.kept = nil
	m.mu.Unlock()
	if l != nil && l.lost.Load() {
		_ = m.closeKept(ctx, l) // if ctx ended, who has called finds out by itself
		return nil
	}
	return l
}

// closeKept closes a link that holds nothing. It waits no longer than ctx, and returns an error only for that; the close then goes on.
func (m *SequenceManager) closeKept(ctx context.Context, l *link) error {
	err := boundedErr(ctx, 2*m.cfg.CallTimeout, func(context.Context) error { return m.closeLink(l) }) // which has a bound of its own
	if err == nil {
		return nil
	}
	m.log.Warn("closing the connection failed; the broker will notice", "queue", m.queue, "error", err)
	if ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("keyseq: queue %q: closing the connection that Stop has left open, on which nothing is held: %w", m.queue, ctx.Err())
}
