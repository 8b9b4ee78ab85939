package memory

import "slices"

// waiters are the sessions of a connection that wait, first come first.
type waiters struct {
	first, last *session
	n           int
}

func (s *session) wait() {
	w := &s.c.waiters
	s.waiting, s.listening = true, true
	s.prev, s.next = w.last, nil
	if w.last == nil {
		w.first = s
	} else {
		w.last.next = s
	}
	w.last = s
	w.n++
	s.c.q.waiting++
	s.c.listeners = append(s.c.listeners, s)
}

func (s *session) unwait() {
	if !s.waiting {
		return
	}
	w := &s.c.waiters
	if s.prev == nil {
		w.first = s.next
	} else {
		s.prev.next = s.next
	}
	if s.next == nil {
		w.last = s.prev
	} else {
		s.next.prev = s.prev
	}
	s.prev, s.next, s.waiting = nil, nil, false
	w.n--
	s.c.q.waiting--
}

// hand gives a message to a waiting session. If the link is cut the client does not hear of it.
func (s *session) hand(e *entry) {
	s.unwait()
	s.hold(e)
	if !s.c.cut && !s.cut {
		s.answer()
	}
}

func (s *session) hold(e *entry) {
	s.held = e
	e.q.watchHold(e)
}

// refuse ends the client's waiting with an error. A dead client stays registered at a broker that has not noticed: it may still be given
// one message, which nobody knows.
func (s *session) refuse(err error) {
	if s.listening {
		s.refused = err
		s.answer()
	}
	if !s.c.cut && !s.cut {
		s.unwait()
	}
}

func (s *session) answer() {
	if s.listening {
		s.hangUp()
		s.wake <- struct{}{}
	}
}

func (s *session) hangUp() {
	s.listening = false
	s.c.listeners = slices.DeleteFunc(s.c.listeners, func(other *session) bool { return other == s })
}
