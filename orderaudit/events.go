package orderaudit

import (
	"slices"
	"sort"
	"time"
)

// events are the losses, kills, stops and takeover delays of a history, by position.
type events struct {
	records  []Record
	losses   map[string][]int // by instance; "": of all. Kills are losses too
	merged   map[string][]int // losses of an instance and those of all
	kills    map[string][]int
	stops    map[string][]int
	takeover map[string]time.Duration
	all      []int // every loss
}

func newEvents(records []Record) events {
	return events{
		records: records, losses: map[string][]int{}, merged: map[string][]int{}, kills: map[string][]int{},
		stops: map[string][]int{}, takeover: map[string]time.Duration{},
	}
}

func (e *events) add(pos int, r *Record) {
	switch r.Kind {
	case KindKilled:
		e.kills[r.Instance] = append(e.kills[r.Instance], pos)
		fallthrough
	case KindLoss:
		e.losses[r.Instance] = append(e.losses[r.Instance], pos)
		e.all = append(e.all, pos)
	case KindStopping:
		e.stops[r.Instance] = append(e.stops[r.Instance], pos)
	case KindTakeover:
		e.takeover[r.Instance] = r.Delay
	}
}

// lossesOf are the positions of the losses that concern an instance.
func (e *events) lossesOf(instance string) []int {
	if m, ok := e.merged[instance]; ok {
		return m
	}
	m := append([]int(nil), e.losses[instance]...)
	if instance != "" {
		m = append(m, e.losses[""]...)
		sort.Ints(m)
	}
	e.merged[instance] = m
	return m
}

// lossBetween is the first loss of an instance after one position and before another.
func (e *events) lossBetween(instance string, after, before int) (int, bool) {
	return between(e.lossesOf(instance), after, before)
}

func (e *events) stopBetween(instance string, after, before int) bool {
	_, ok := between(e.stops[instance], after, before)
	return ok
}

func (e *events) killAfter(instance string, pos int) int {
	if k, ok := between(e.kills[instance], pos, never); ok {
		return k
	}
	return never
}

func (e *events) at(pos int) time.Duration { return e.records[pos].At }

func between(positions []int, after, before int) (int, bool) {
	i := sort.SearchInts(positions, after+1)
	if i == len(positions) || positions[i] >= before {
		return 0, false
	}
	return positions[i], true
}

// near are the positions of the losses, kills and stops that may matter to a key: those from its first start on, of its instances.
func (e *events) near(run *keyRun) []int {
	if len(run.attempts) == 0 {
		return nil
	}
	instances := map[string]bool{}
	for _, a := range run.attempts {
		instances[a.instance] = true
	}
	var found []int
	for instance := range instances {
		found = append(found, e.lossesOf(instance)...)
		found = append(found, e.stops[instance]...)
	}
	sort.Ints(found)
	found = slices.Compact(found)
	return found[sort.SearchInts(found, run.attempts[0].start):]
}

// without is a copy in which only the losses and stops in keep happened, for shrinking. Tasks that a kill has ended stay ended.
func (e *events) without(keep map[int]bool) events {
	c := newEvents(e.records)
	c.takeover = e.takeover
	for pos := range keep {
		c.add(pos, &e.records[pos])
	}
	for _, by := range []map[string][]int{c.losses, c.stops, c.kills} {
		for _, positions := range by {
			sort.Ints(positions)
		}
	}
	return c
}
