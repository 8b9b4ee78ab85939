package keyseq

// SetSlack changes how many more keys than workers a manager's window holds where sessions are costly, for tests of that window. Call it before Start.
func SetSlack(m *SequenceManager, n int) { m.slack = n }
