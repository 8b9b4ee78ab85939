package orderaudit_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/keyseq/keyseq/orderaudit"
)

// generator plays random runs that keep G1-G4: an active instance handles keys side by side, and is now and then cut
// off, killed or frozen, so that what was in flight comes again there or on the next one.
type generator struct {
	rng     *rand.Rand
	async   time.Duration // acknowledgements so young may be undone by a loss
	losses  bool
	now     time.Duration
	id      uint64
	active  int // number of the active instance
	keys    []*keyState
	zombies []orderaudit.Record // starts whose tasks still run in instances that have lost them
	records []orderaudit.Record
}

// keyState is one key: messages before next are gone from the queue.
type keyState struct {
	key     string
	next    int64
	attempt int
	running orderaudit.Record // the open attempt's start
	state   byte              // 'i'dle, 'r'unning, or 's': returned, the commit is on its way
	settled []time.Duration   // when each message before next was
}

const messagesPerKey = 8

func generate(seed uint64, losses bool, async time.Duration) *orderaudit.History {
	g := &generator{rng: rand.New(rand.NewPCG(seed, 1)), losses: losses, async: async}
	for k := range 1 + g.rng.IntN(4) {
		g.keys = append(g.keys, &keyState{key: fmt.Sprint("k", k), state: 'i', next: 1})
		for seq := range int64(messagesPerKey) {
			g.add(orderaudit.Record{Kind: orderaudit.KindSent, Key: g.keys[k].key, Seq: seq + 1})
		}
	}
	for {
		if losses && g.rng.IntN(25) == 0 {
			g.lose()
		}
		if len(g.zombies) > 0 && g.rng.IntN(4) == 0 {
			g.endZombie(g.rng.IntN(len(g.zombies)))
		}
		open := slices.DeleteFunc(slices.Clone(g.keys), func(k *keyState) bool { return k.next > messagesPerKey })
		if len(open) == 0 {
			return &orderaudit.History{Records: g.records}
		}
		g.step(open[g.rng.IntN(len(open))])
	}
}

func (g *generator) add(r orderaudit.Record) {
	g.now += time.Duration(1+g.rng.IntN(2000)) * time.Microsecond
	r.At = g.now
	g.records = append(g.records, r)
}

func (g *generator) instance() string { return fmt.Sprint("I", g.active) }

func (g *generator) finish(start orderaudit.Record, kind orderaudit.Kind, o orderaudit.Outcome) {
	start.Kind, start.Outcome = kind, o
	g.add(start)
}

func (g *generator) step(k *keyState) {
	switch k.state {
	case 'i':
		g.id++
		k.attempt++
		k.running = orderaudit.Record{Kind: orderaudit.KindStart, Instance: g.instance(), Key: k.key, Seq: k.next, N: k.attempt, ID: g.id}
		k.state = 'r'
		g.add(k.running)
	case 'r':
		switch g.rng.IntN(6) {
		case 0: // retried in place
			g.finish(k.running, orderaudit.KindReturn, orderaudit.Failed)
			k.state = 'i'
		case 1: // by its policy
			o := []orderaudit.Outcome{orderaudit.DeadLettered, orderaudit.Discarded}[g.rng.IntN(2)]
			g.finish(k.running, orderaudit.KindReturn, o)
			g.finish(k.running, orderaudit.KindEnd, o)
			g.gone(k)
		default:
			g.finish(k.running, orderaudit.KindReturn, orderaudit.Settled)
			k.state = 's'
		}
	case 's':
		switch n := g.rng.IntN(10); {
		case g.losses && n == 0: // rolled back
			g.finish(k.running, orderaudit.KindEnd, orderaudit.GivenBack)
			k.state, k.attempt = 'i', g.rng.IntN(k.attempt+1)
		case g.losses && n == 1: // in doubt
			g.finish(k.running, orderaudit.KindEnd, orderaudit.Unknown)
			g.decide(k)
		default:
			g.finish(k.running, orderaudit.KindEnd, orderaudit.Settled)
			g.gone(k)
		}
	}
}

func (g *generator) gone(k *keyState) {
	k.next++
	k.settled = append(k.settled, g.now)
	k.state, k.attempt = 'i', 0
}

// decide lets a commit in doubt be done or not.
func (g *generator) decide(k *keyState) {
	if g.rng.IntN(2) == 0 {
		g.gone(k)
		return
	}
	k.state, k.attempt = 'i', 0
}

// lose cuts the active instance off. It goes on itself, or the next one does.
func (g *generator) lose() {
	lost := g.instance()
	at := len(g.records)
	g.add(orderaudit.Record{Kind: orderaudit.KindLoss, Instance: lost, Text: "cut"})
	how := g.rng.IntN(3) // 0: the same goes on, 1: killed, 2: frozen
	if how == 1 {
		g.add(orderaudit.Record{Kind: orderaudit.KindKilled, Instance: lost})
		g.zombies = slices.DeleteFunc(g.zombies, func(z orderaudit.Record) bool { return z.Instance == lost })
	}
	inFlight := 0
	for _, k := range g.keys {
		if k.attempt > 0 {
			inFlight++
		}
		switch {
		case k.state == 'r' && how == 0:
			g.finish(k.running, orderaudit.KindReturn, orderaudit.GivenBack)
		case k.state == 'r' && how == 2:
			g.zombies = append(g.zombies, k.running)
		case k.state == 's':
			g.decide(k)
		}
		for g.async > 0 && k.state != 's' && len(k.settled) > 0 && g.records[at].At-k.settled[len(k.settled)-1] < g.async && g.rng.IntN(2) == 0 {
			k.next--
			k.settled = k.settled[:len(k.settled)-1]
			inFlight++
		}
		k.state, k.attempt, k.settled = 'i', 0, nil // what a loss has not undone stays done
	}
	if how != 1 { // a kill says no number: it explains any
		g.records[at].N = max(inFlight, 1)
	}
	if how > 0 {
		g.active++
	}
}

func (g *generator) endZombie(i int) {
	z := g.zombies[i]
	g.zombies = slices.Delete(g.zombies, i, i+1)
	g.finish(z, orderaudit.KindReturn, orderaudit.Settled)
	g.finish(z, orderaudit.KindEnd, orderaudit.GivenBack)
}
