package keyseq

import "slices"

// State is what a manager is doing.
type State int

const (
	// StateStopped: not started, or ended by Stop or Shutdown.
	StateStopped State = iota
	// StateConnecting: connecting or reconnecting.
	StateConnecting
	// StateStandby: another instance is active, or may be while the broker is being asked; or what an earlier one held may still be locked by the
	// broker. Start returns here too: an instance that is alone goes on to StateActive by itself.
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
func (m *SequenceManager) confirm() { m.changeState(StateActive, nil, StateUnconfirmed) }

func (m *SequenceManager) setState(to State, err error) { m.changeState(to, err) }

// changeState tells of a new state; if only is given, nothing happens in any other one. The reader and supervise both change it: each change is told by who
// makes it, one at a time, in their order.
func (m *SequenceManager) changeState(to State, err error, only ...State) {
	m.mu.Lock()
	from := m.state
	if len(only) > 0 && !slices.Contains(only, from) {
		m.mu.Unlock()
		return
	}
	m.state, m.stateErr = to, err
	before, told := m.told, m.told
	if from != to {
		told = make(chan struct{})
		m.told = told
	}
	m.mu.Unlock()
	if r := m.current.Load(); r != nil && to != StateConnecting {
		r.upOnce.Do(func() { close(r.up) })
	}
	if from == to {
		return
	}
	if before != nil {
		<-before
	}
	defer close(told)
	about := []any{"queue", m.queue, "from", from.String(), "to", to.String()}
	if err != nil {
		about = append(about, "error", err)
	}
	m.log.Info("state", about...)
	for i := range m.cfg.Events {
		if f := m.cfg.Events[i].State; f != nil {
			m.rareCallback(func() { f(from, to, err) })
		}
	}
}
