package model

// findLivelock looks for a cycle of progress steps in which the rule fires: it could go round for ever without a new fault.
func (g *graph) findLivelock(r *Result) {
	comp := g.components()
	for v := range uint32(len(g.states)) {
		for _, e := range g.out(v) {
			w := e & edgeTarget
			if e&edgeNotProgress == 0 && e&edgeFires != 0 && comp[w] == comp[v] {
				r.Livelock = true
				r.LivelockTrace = g.trace(v)
				r.Cycle = g.cycle(v, w, comp)
				return
			}
		}
	}
}

// components are the strongly connected ones over the steps of progress (Tarjan, without recursion).
func (g *graph) components() []int32 {
	n := len(g.states)
	comp, low, num := make([]int32, n), make([]int32, n), make([]int32, n)
	for i := range comp {
		comp[i] = -1
	}
	type frame struct {
		v    uint32
		edge int
	}
	var stack []uint32
	var calls []frame
	var counter, found int32
	visit := func(v uint32) {
		counter++
		num[v], low[v] = counter, counter
		stack = append(stack, v)
		calls = append(calls, frame{v, g.first[v]})
	}
	for root := range uint32(n) {
		if num[root] != 0 {
			continue
		}
		visit(root)
		for len(calls) > 0 {
			f := &calls[len(calls)-1]
			v := f.v
			if f.edge < g.first[v+1] {
				e := g.edges[f.edge]
				f.edge++
				w := e & edgeTarget
				switch {
				case e&edgeNotProgress != 0:
				case num[w] == 0:
					visit(w)
				case comp[w] < 0:
					low[v] = min(low[v], num[w])
				}
				continue
			}
			calls = calls[:len(calls)-1]
			if len(calls) > 0 {
				up := calls[len(calls)-1].v
				low[up] = min(low[up], low[v])
			}
			if low[v] != num[v] {
				continue
			}
			for {
				w := stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				comp[w] = found
				if w == v {
					break
				}
			}
			found++
		}
	}
	return comp
}

// cycle is the step from v to w and a shortest way from w back to v inside their component.
func (g *graph) cycle(v, w uint32, comp []int32) []Step {
	from := map[uint32]uint32{w: w}
	queue := []uint32{w}
	for i := 0; i < len(queue) && queue[i] != v; i++ {
		for _, e := range g.out(queue[i]) {
			y := e & edgeTarget
			if _, seen := from[y]; e&edgeNotProgress == 0 && comp[y] == comp[v] && !seen {
				from[y] = queue[i]
				queue = append(queue, y)
			}
		}
	}
	path := []uint32{v}
	for path[len(path)-1] != w {
		path = append(path, from[path[len(path)-1]])
	}
	var out []Step
	at := v
	for i := len(path) - 1; i >= 0; i-- {
		for _, n := range g.c.Successors(g.states[at], nil) {
			if n.State == g.states[path[i]] && !n.Fault && !n.Policy {
				out = append(out, n.Step)
				break
			}
		}
		at = path[i]
	}
	return out
}
