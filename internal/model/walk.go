package model

import (
	"math/rand"
	"time"
)

// Walks is what random walks found. They go where no exploration fits, and prove nothing.
type Walks struct {
	Walks, Steps, Settled int
	// Violation is the guarantee that broke, or "" when none did; Trace is the walk that broke it, or the first that did
	// not settle everything.
	Violation string
	Trace     []Step
}

// Walk takes one random path of at most steps steps, or until all is settled; each is called with every step on it.
func (c *Config) Walk(rng *rand.Rand, steps int, each func(*Successor)) (end State) {
	s := c.Initial()
	var next []Successor
	for range steps {
		next = c.Successors(s, next[:0])
		if len(next) == 0 {
			break
		}
		n := &next[rng.Intn(len(next))]
		if n.Fault && rng.Intn(3) > 0 { // faults later, and spread
			n = &next[rng.Intn(len(next))]
		}
		each(n)
		s = n.State
		if c.settledAll(&s) {
			break
		}
	}
	return s
}

// WalkFor walks from seed until d has passed or a guarantee breaks.
func (c *Config) WalkFor(seed int64, steps int, d time.Duration) Walks {
	var w Walks
	rng := rand.New(rand.NewSource(seed))
	for end := time.Now().Add(d); time.Now().Before(end) && w.Violation == ""; {
		w.Walks++
		var path []Step
		last := c.Walk(rng, steps, func(n *Successor) {
			w.Steps++
			if w.Violation != "" {
				return
			}
			path = append(path, n.Step)
			if n.Violation != "" {
				w.Violation, w.Trace = n.Violation, path
			}
		})
		if c.settledAll(&last) {
			w.Settled++
		} else if w.Trace == nil {
			w.Trace = path
		}
	}
	return w
}

// WalkConfigs are models too large to explore: six messages of two keys, up to five held, eight faults.
func WalkConfigs() []Config {
	var out []Config
	for _, standby := range []bool{false, true} {
		for _, delay := range []bool{true, false} {
			big := func(name string, f func(*Config)) {
				out = append(out, with(name, func(c *Config) {
					c.Keys, c.MaxInFlight, c.Faults, c.MaxHolds = []uint8{0, 1, 0, 0, 1, 0}, 5, 8, 3
					c.Shutdowns, c.Stop, c.TaskFails, c.Standby, c.StartAgain, c.ReturnDelay = 1, true, true, standby, !standby, delay
					f(c)
				}))
			}
			big("walk: rule in place", func(c *Config) {})
			big("walk: rule by closing", func(c *Config) { c.RollbackInPlace = false })
			big("walk: pull broker", func(c *Config) {
				c.DeadLetters, c.AtomicSends, c.ReadDuringWait, c.LockProbes = true, true, true, standby
				c.FaultKinds |= FaultRefuse | FaultConnection | FaultRollbackHang
				if standby {
					c.FaultKinds |= FaultFreeze
				}
			})
			big("walk: push broker", func(c *Config) {
				c.AsyncAcks, c.OneConnection, c.Prefetch, c.DeadLetters, c.RollbackInPlace = true, true, 2, true, false
				c.FaultKinds = FaultConnection | FaultHang | FaultRefuse
				if standby {
					c.FaultKinds |= FaultRole | FaultCrash
				}
			})
		}
	}
	return out
}
