package orderaudit

import (
	"cmp"
	"slices"
	"time"
)

// loss is one loss or kill. It may take some time: it happened somewhere from one position to the other.
type loss struct {
	instance string // "": every instance
	from, to int
	bound    int // most messages in flight; 0: not known
}

// within reports whether it may have happened between two positions.
func (l *loss) within(after, before int) bool { return l.from < before && l.to > after }

// events are what a history says of instances, not of messages.
type events struct {
	records  []Record
	losses   []*loss
	of       map[string]lossList // those that concern an instance, filled by lossesOf
	open     map[uint64]*loss    // by the ID that its end will have
	kills    map[string][]int    // positions, by instance
	stops    map[string][]int
	starts   map[string][]int
	takeover map[string]time.Duration
}

func newEvents(records []Record) events {
	return events{
		records: records, of: map[string]lossList{}, open: map[uint64]*loss{}, kills: map[string][]int{},
		stops: map[string][]int{}, starts: map[string][]int{}, takeover: map[string]time.Duration{},
	}
}

// add reports whether the record fits to what came before.
func (e *events) add(pos int, r *Record) bool {
	switch r.Kind {
	case KindKilled:
		e.kills[r.Instance] = append(e.kills[r.Instance], pos)
		e.losses = append(e.losses, &loss{instance: r.Instance, from: pos, to: pos})
	case KindLoss:
		l := &loss{instance: r.Instance, from: pos, to: pos, bound: max(r.N, 0)}
		e.losses = append(e.losses, l)
		e.open[r.ID] = l
	case KindLossDone:
		l := e.open[r.ID]
		if l == nil || r.ID == 0 || l.instance != r.Instance {
			return false
		}
		l.to = pos
		// A kill that it is about is no second loss: the bound of the first holds.
		e.losses = slices.DeleteFunc(e.losses, func(k *loss) bool {
			return k.from > l.from && k.instance == l.instance && e.records[k.from].Kind == KindKilled
		})
	case KindStopping:
		e.stops[r.Instance] = append(e.stops[r.Instance], pos)
	case KindStarted:
		e.starts[r.Instance] = append(e.starts[r.Instance], pos)
	case KindTakeover:
		e.takeover[r.Instance] = r.Delay
	}
	return true
}

// lossList is sorted by from.
type lossList struct {
	losses []*loss
	latest []int // the greatest to of the losses up to each
}

// since are the losses from the first on that may have happened after a position.
func (l lossList) since(pos int) []*loss {
	i, _ := slices.BinarySearch(l.latest, pos+1)
	return l.losses[i:]
}

// lossesOf are the losses that concern an instance.
func (e *events) lossesOf(instance string) lossList {
	found, ok := e.of[instance]
	if !ok {
		latest := -1
		for _, l := range e.losses {
			if l.instance == instance || l.instance == "" {
				latest = max(latest, l.to)
				found.losses, found.latest = append(found.losses, l), append(found.latest, latest)
			}
		}
		e.of[instance] = found
	}
	return found
}

// lossBetween is the first loss of an instance that may have happened between two positions, or nil.
func (e *events) lossBetween(instance string, after, before int) *loss {
	if l := e.lossesOf(instance).since(after); len(l) > 0 && l[0].within(after, before) {
		return l[0]
	}
	return nil
}

func (e *events) stopBetween(instance string, after, before int) bool {
	return between(e.stops[instance], after, before) != never
}

func (e *events) killAfter(instance string, pos int) int {
	return between(e.kills[instance], pos, never)
}

func (e *events) at(pos int) time.Duration { return e.records[pos].At }

// between is the first of some ascending positions that lies between two others, or never.
func between(positions []int, after, before int) int {
	i, _ := slices.BinarySearch(positions, after+1)
	if i == len(positions) || positions[i] >= before {
		return never
	}
	return positions[i]
}

// near are the positions of the losses, kills and stops that may matter to a key: those from its first start on, of its instances.
func (e *events) near(run *keyRun) []int {
	if len(run.attempts) == 0 {
		return nil
	}
	first := run.attempts[0].start
	instances := map[string]bool{}
	for _, a := range run.attempts {
		instances[a.instance] = true
	}
	var found []int
	for instance := range instances {
		for _, l := range e.lossesOf(instance).since(first) {
			found = append(found, l.from)
		}
		for _, pos := range e.stops[instance] {
			if pos > first {
				found = append(found, pos)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// only is a copy in which nothing happened but what is in keep, for shrinking. Tasks that a kill has ended stay ended.
func (e *events) only(keep []int) events {
	c := newEvents(e.records)
	c.takeover = e.takeover
	for _, pos := range keep {
		if i, found := e.lossAt(pos); found {
			c.losses = append(c.losses, e.losses[i])
		} else {
			stopped := e.records[pos].Instance
			c.stops[stopped] = append(c.stops[stopped], pos)
		}
	}
	return c
}

// lossAt is the index of the loss that began at a position.
func (e *events) lossAt(pos int) (int, bool) {
	return slices.BinarySearchFunc(e.losses, pos, func(l *loss, pos int) int { return cmp.Compare(l.from, pos) })
}
