package keyseq

import "time"

// freeStuckWorkers lets other workers take the place of those whose settlement has overrun CallTimeout. The message stays the head of its key until
// the call returns.
func (r *run) freeStuckWorkers(now time.Time) {
	type stuckCall struct {
		w    *worker
		turn uint64
		key  string
	}
	var calls []stuckCall
	limit := r.m.cfg.CallTimeout
	r.m.d.Workers(func(w *worker, v keyView, turn uint64) {
		o := &w.Own
		n := o.calls.Load()
		if n%2 == 0 || n != o.seen {
			o.seen, o.seenSince = n, now
			return
		}
		if now.Sub(o.seenSince) >= limit {
			o.seenSince = now.Add(100 * 365 * 24 * time.Hour) // said once
			calls = append(calls, stuckCall{w, turn, v.Name})
		}
	})
	for _, c := range calls {
		if r.m.d.Detach(c.w, c.turn) {
			r.stuck(c.key, callCommit)
		}
	}
}

// stuck tells of a call that has overrun its time. A commit leaves its key waiting; a Receive, which has no key, and a Rollback cost their
// connection.
func (r *run) stuck(key, call string) {
	m := r.m
	report := KeyReport{Key: key}
	if call == callCommit {
		if known, ok := m.Explain(key); ok {
			report = known
		}
		m.log.Error("a call to the broker does not return; its key waits for it, its worker does not: look at the broker and the network",
			"queue", m.queue, "key", key, "message", report.MessageID, "call", call, "call_timeout", m.cfg.CallTimeout)
		report.Reason = call + " does not return: " + report.Reason
	} else {
		m.log.Error("a call to the broker does not return: its connection is closed; look at the broker and the network",
			"queue", m.queue, "key", key, "call", call, "call_timeout", m.cfg.CallTimeout)
		report.Reason = call + " does not return: its connection is closed"
	}
	m.toldStuck(report)
}

func (m *SequenceManager) toldStuck(report KeyReport) {
	for i := range m.cfg.Events {
		if f := m.cfg.Events[i].Stuck; f != nil {
			m.rareCallback(func() { f(report) })
		}
	}
}
