package model

// Result is what an exploration found.
type Result struct {
	States, Steps int
	// Truncated: the limit of states was reached; nothing is proved.
	Truncated bool
	// Violation is the first guarantee that broke, Trace the shortest way there.
	Violation string
	Trace     []Step
	// Stuck is the number of states from which not all can be settled any more, StuckTrace the way to the nearest.
	Stuck      int
	StuckTrace []Step
	// Livelock: Cycle can be repeated for ever without a fault, and the rule fires in it; LivelockTrace leads there.
	Livelock             bool
	LivelockTrace, Cycle []Step
	// Settled is the number of states in which all is settled, Innocents the most messages given back in health.
	Settled, Innocents int
	Situations         Situations
}

// Edges carry the target and two marks.
const (
	edgeNotProgress = uint32(1) << 31 // a fault, or a step up to user or policy
	edgeFires       = uint32(1) << 30
	edgeTarget      = edgeFires - 1
)

// graph is the explored part of the state space.
type graph struct {
	c      *Config
	index  map[State]uint32
	states []State
	parent []uint32
	by     []Step
	edges  []uint32
	first  []int // edges of state v are edges[first[v]:first[v+1]]
}

func (g *graph) push(s State, parent uint32, by Step) uint32 {
	if i, ok := g.index[s]; ok {
		return i
	}
	i := uint32(len(g.states))
	g.index[s] = i
	g.states = append(g.states, s)
	g.parent = append(g.parent, parent)
	g.by = append(g.by, by)
	return i
}

// trace is a shortest way from the initial state to state i.
func (g *graph) trace(i uint32) []Step {
	var out []Step
	for ; i != 0; i = g.parent[i] {
		out = append(out, g.by[i])
	}
	for a, b := 0, len(out)-1; a < b; a, b = a+1, b-1 {
		out[a], out[b] = out[b], out[a]
	}
	return out
}

// FindViolation looks for the shortest way to break a guarantee and stops there, or at limit states.
func (c *Config) FindViolation(limit int) Result { return c.explore(limit, false) }

// Explore visits every state, breadth first, up to limit, and then examines the whole graph.
func (c *Config) Explore(limit int) Result { return c.explore(limit, true) }

func (c *Config) explore(limit int, whole bool) Result {
	var r Result
	g := graph{c: c, index: make(map[State]uint32)}
	g.push(c.Initial(), 0, Step{})
	var next []Successor
	for v := 0; v < len(g.states); v++ {
		if len(g.states) > limit {
			r.Truncated = true
			break
		}
		s := g.states[v]
		r.Situations.count(c, &s)
		r.Innocents = max(r.Innocents, int(s.Innocents))
		next = c.Successors(s, next[:0])
		g.first = append(g.first, len(g.edges))
		for i := range next {
			n := &next[i]
			if n.Violation != "" && r.Violation == "" {
				r.Violation = n.Violation
				r.Trace = append(g.trace(uint32(v)), n.Step)
				if !whole {
					r.States = len(g.states)
					return r
				}
			}
			to := g.push(n.State, uint32(v), n.Step)
			r.Steps++
			if !whole {
				continue
			}
			if n.Fault || n.Policy {
				to |= edgeNotProgress
			}
			if n.Fires {
				to |= edgeFires
			}
			g.edges = append(g.edges, to)
		}
	}
	g.first = append(g.first, len(g.edges))
	r.States = len(g.states)
	if whole && !r.Truncated {
		g.findStuck(&r)
		g.findLivelock(&r)
	}
	return r
}

// out are the edges of state v.
func (g *graph) out(v uint32) []uint32 { return g.edges[g.first[v]:g.first[v+1]] }
