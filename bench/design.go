// Package bench measures the dispatcher of keyseq beside other ways to hand the messages of a queue to at most a fixed number of workers: the
// design of the Java original, a goroutine a message behind a limit (errgroup, conc), and workers that keys are hashed to. All get the
// same loads in the same run, from one goroutine, as a queue is read. The results are in docs/benchmarks.md.
package bench

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Message is one message of a load.
type Message struct {
	Key    string
	Number int // in the load
}

// Design is a way to run tasks.
type Design struct {
	Name string
	// Ordered: messages with the same key run one after another, in the order of the load. The others are what it costs to run
	// without order.
	Ordered bool
	// Run runs the task for each message, at most workers at once, and returns when the last one has ended.
	Run func(load []Message, n, workers int, task func(*Message))
}

// Designs are all of them, ours first.
func Designs() []Design {
	return []Design{
		{"keyseq", true, runKeyseq},
		{"seed", true, runSeed},
		{"hashed", true, runHashed},
		{"errgroup", false, runErrgroup},
		{"conc", false, runConc},
	}
}

// at is the i-th message of a load that is repeated as often as needed.
func at(load []Message, i int) *Message { return &load[i%len(load)] }

// Load is a sequence of keys.
type Load struct {
	Name     string
	Messages []Message
}

const long = 1 << 18

// Loads are the sequences of keys that are measured: one key, random ones of 1,000 and of 100,000, each key once (262,144 of them, after which
// the first has long been forgotten), and a Zipf distribution (s = 1.1) over 100,000.
func Loads() []Load {
	random := rand.New(rand.NewPCG(1, 2))
	z := rand.NewZipf(random, 1.1, 1, 99_999)
	return []Load{
		load("1", func(int) int { return 0 }),
		load("1k", func(int) int { return random.IntN(1000) }),
		load("100k", func(int) int { return random.IntN(100_000) }),
		load("distinct", func(i int) int { return i }),
		load("zipf", func(int) int { return int(z.Uint64()) }),
	}
}

func load(name string, key func(i int) int) Load {
	l, names := Load{Name: name, Messages: make([]Message, long)}, map[int]string{}
	for i := range l.Messages {
		k := key(i)
		if names[k] == "" {
			names[k] = fmt.Sprintf("order-%08d", k)
		}
		l.Messages[i] = Message{strings.Clone(names[k]), i} // a string of its own, as a received message has
	}
	return l
}

// Grouped has each messages of a key in a row, Interleaved all first ones, then all second ones, and so on: the two patterns of the Java
// original's published tables.
func Grouped(keys, each int) []Message {
	return published(keys, each, func(i int) int { return i / each })
}

// Interleaved is the other one: see Grouped.
func Interleaved(keys, each int) []Message {
	return published(keys, each, func(i int) int { return i % keys })
}

func published(keys, each int, key func(i int) int) []Message {
	all := make([]Message, keys*each)
	for i := range all {
		all[i] = Message{fmt.Sprintf("order-%04d", key(i)), i}
	}
	return all
}
