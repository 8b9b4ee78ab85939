package keyseq

// State is what a manager is doing.
type State int

const (
	// StateStopped: not started, or ended by Stop or Shutdown.
	StateStopped State = iota
	// StateConnecting: connecting or reconnecting.
	StateConnecting
	// StateStandby: another instance is active, or what an earlier one held may still be locked by the broker.
	StateStandby
	// StateUnconfirmed: reading, but the broker cannot tell whether this instance is the active one.
	StateUnconfirmed
	// StateActive: reading.
	StateActive
	// StateDraining: a Stop or Shutdown is under way.
	StateDraining
	// StateFailed: ended by an error; Err says why.
	StateFailed
)

func (s State) String() string {
	switch s {
	case StateStopped:
		return "stopped"
	case StateConnecting:
		return "connecting"
	case StateStandby:
		return "standby"
	case StateUnconfirmed:
		return "unconfirmed"
	case StateActive:
		return "active"
	case StateDraining:
		return "draining"
	case StateFailed:
		return "failed"
	}
	return "unknown state"
}

// State says what the manager is doing. It may be called from anywhere.
func (m *SequenceManager) State() State {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state
}

// confirm: the first delivery shows that this instance is the active one.
func (m *SequenceManager) confirm() {
	m.mu.Lock()
	unconfirmed := m.state == StateUnconfirmed
	m.mu.Unlock()
	if unconfirmed {
		m.setState(StateActive, nil)
	}
}

func (m *SequenceManager) setState(to State, err error) {
	m.mu.Lock()
	from := m.state
	m.state = to
	m.mu.Unlock()
	if r := m.current.Load(); r != nil && to != StateConnecting {
		r.upOnce.Do(func() { close(r.up) })
	}
	if from == to {
		return
	}
	m.log.Info("state", "queue", m.queue, "from", from.String(), "to", to.String(), "error", err)
	for i := range m.cfg.Events {
		if f := m.cfg.Events[i].State; f != nil {
			m.rareCallback(func() { f(from, to, err) })
		}
	}
}
