package bench

import (
	"hash/maphash"
	"sync"

	"github.com/sourcegraph/conc/pool"
	"golang.org/x/sync/errgroup"
)

// runHashed gives each worker the keys whose hash falls to it, through a channel of 64.
func runHashed(load []Message, n, workers int, task func(*Message)) {
	seed := maphash.MakeSeed()
	queues := make([]chan *Message, workers)
	var all sync.WaitGroup
	for i := range queues {
		queues[i] = make(chan *Message, 64)
		all.Go(func() {
			for m := range queues[i] {
				task(m)
			}
		})
	}
	for i := range n {
		m := at(load, i)
		queues[maphash.String(seed, m.Key)%uint64(workers)] <- m
	}
	for _, q := range queues {
		close(q)
	}
	all.Wait()
}

// runErrgroup is golang.org/x/sync/errgroup with a limit. No order.
func runErrgroup(load []Message, n, workers int, task func(*Message)) {
	var g errgroup.Group
	g.SetLimit(workers)
	for i := range n {
		m := at(load, i)
		g.Go(func() error {
			task(m)
			return nil
		})
	}
	_ = g.Wait() // no task returns an error
}

// runConc is the pool of github.com/sourcegraph/conc with a limit. No order.
func runConc(load []Message, n, workers int, task func(*Message)) {
	p := pool.New().WithMaxGoroutines(workers)
	for i := range n {
		m := at(load, i)
		p.Go(func() { task(m) })
	}
	p.Wait()
}
