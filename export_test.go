package keyseq

import "time"

// SetSlack changes how many more keys than workers a manager's window holds where sessions are costly, for tests of that window. Call it before Start.
func SetSlack(m *SequenceManager, n int) { m.slack = n }

// StandStill has a manager see what it sees after its process was stopped for d; asleep, what it sees after its machine slept, whose monotonic clock has not
// moved.
func StandStill(m *SequenceManager, d time.Duration, asleep bool) {
	p := m.current.Load().pulse
	last := p.last.Load().Add(-d)
	if asleep {
		last = last.Round(0)
	}
	p.last.Store(&last)
}
