package model

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

var (
	// ErrNotATrace: no path of the model looks like what was observed.
	ErrNotATrace = errors.New("model: not a trace of the model")
	// ErrTooManyStates: too many states explain what was observed; allow fewer faults or messages.
	ErrTooManyStates = errors.New("model: too many states explain the observations")
)

// Checker decides, one observation after the other, whether what a manager did is a path of the model. It keeps every
// state of the model that explains what was observed so far, with every step the broker may have done unseen.
//
// The Config bounds the guesses: Faults is the number of faults that were really injected (observed ones count too), and
// so are MaxHolds and Shutdowns. Keys has the key of every message of the run.
type Checker struct {
	c      Config
	unseen map[ObservationKind]bool
	limit  int
	states map[State]struct{}
	seen   []Observation
}

// NewChecker begins before the first observation. Kinds in unseen are not recorded by the caller: the Checker guesses
// when they happened. limit bounds the number of states kept; 0 is 200,000.
func NewChecker(c Config, limit int, unseen ...ObservationKind) *Checker {
	if limit == 0 {
		limit = 200_000
	}
	k := &Checker{c: c, limit: limit, unseen: map[ObservationKind]bool{}, states: map[State]struct{}{c.Initial(): {}}}
	for _, u := range unseen {
		k.unseen[u] = true
	}
	return k
}

// Check says whether observations are what can be seen of a path of c.
func Check(c Config, observations []Observation, unseen ...ObservationKind) error {
	k := NewChecker(c, 0, unseen...)
	for _, o := range observations {
		if err := k.Observe(o); err != nil {
			return err
		}
	}
	return nil
}

// Observe takes the next observation. The error wraps ErrNotATrace, tells the last observations and what the model
// would have allowed instead, and the Checker then stays where it was; or it wraps ErrTooManyStates.
func (k *Checker) Observe(o Observation) error {
	if !o.Kind.hasMessage() {
		o.Msg = 0
	}
	if err := k.guess(); err != nil {
		return err
	}
	after := make(map[State]struct{})
	k.each(func(n *Successor) {
		if n.Step.Proc == o.Proc && (!o.Kind.hasMessage() || n.Step.Msg == o.Msg) &&
			slices.Contains(n.Step.Kind.observations(), o.Kind) {
			after[n.State] = struct{}{}
		}
	})
	if len(after) == 0 {
		return k.reject(o)
	}
	k.states = after
	k.seen = append(k.seen, o)
	return nil
}

// States is the number of states that explain what was observed.
func (k *Checker) States() int { return len(k.states) }

// Settled says whether every message may be settled by now.
func (k *Checker) Settled() (bool, error) {
	if err := k.guess(); err != nil {
		return false, err
	}
	for s := range k.states {
		if k.c.settledAll(&s) {
			return true, nil
		}
	}
	return false, nil
}

func (k *Checker) hidden(s StepKind) bool {
	kinds := s.observations()
	return len(kinds) == 0 || k.unseen[kinds[0]]
}

// guess adds every state that steps nobody has seen lead to.
func (k *Checker) guess() error {
	todo := slices.Collect(maps.Keys(k.states))
	var next []Successor
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		next = k.c.Successors(s, next[:0])
		for i := range next {
			n := &next[i]
			if _, known := k.states[n.State]; known || n.Violation != "" || !k.hidden(n.Step.Kind) {
				continue
			}
			if len(k.states) >= k.limit {
				return fmt.Errorf("%w: more than %d after %d observations", ErrTooManyStates, k.limit, len(k.seen))
			}
			k.states[n.State] = struct{}{}
			todo = append(todo, n.State)
		}
	}
	return nil
}

// each calls f with every step from every state that explains the past.
func (k *Checker) each(f func(*Successor)) {
	var next []Successor
	for s := range k.states {
		next = k.c.Successors(s, next[:0])
		for i := range next {
			if next[i].Violation == "" {
				f(&next[i])
			}
		}
	}
}

// reject tells what was observed last and what the model would have allowed.
func (k *Checker) reject(o Observation) error {
	allowed := map[string]bool{}
	k.each(func(n *Successor) {
		for _, a := range Observe([]Step{n.Step}) {
			allowed[a.String()] = true
		}
	})
	var past []string
	for _, p := range k.seen[max(0, len(k.seen)-8):] {
		past = append(past, p.String())
	}
	return fmt.Errorf("%w: observation %d, %q, after [%s]; the model allows [%s]", ErrNotATrace, len(k.seen)+1, o,
		strings.Join(past, ", "), strings.Join(slices.Sorted(maps.Keys(allowed)), ", "))
}
