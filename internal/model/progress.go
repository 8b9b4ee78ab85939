package model

// findStuck counts the states from which no way without faults leads to all messages being settled.
func (g *graph) findStuck(r *Result) {
	n := len(g.states)
	// The edges of progress, reversed.
	first := make([]int, n+1)
	for v := range n {
		for _, e := range g.out(uint32(v)) {
			if e&edgeNotProgress == 0 {
				first[e&edgeTarget+1]++
			}
		}
	}
	for v := range n {
		first[v+1] += first[v]
	}
	back := make([]uint32, first[n])
	fill := append([]int(nil), first[:n]...)
	for v := range n {
		for _, e := range g.out(uint32(v)) {
			if e&edgeNotProgress == 0 {
				w := e & edgeTarget
				back[fill[w]] = uint32(v)
				fill[w]++
			}
		}
	}
	good := make([]bool, n)
	var todo []uint32
	for v := range n {
		if g.c.settledAll(&g.states[v]) {
			good[v] = true
			r.Settled++
			todo = append(todo, uint32(v))
		}
	}
	for len(todo) > 0 {
		v := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, u := range back[first[v]:first[v+1]] {
			if !good[u] {
				good[u] = true
				todo = append(todo, u)
			}
		}
	}
	for v := range n {
		if !good[v] {
			if r.Stuck == 0 {
				r.StuckTrace = g.trace(uint32(v))
			}
			r.Stuck++
		}
	}
}
