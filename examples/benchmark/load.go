package main

import "fmt"

// test is one row of the published table: keys with as many messages each. The published numbers are messages a second with 250 ms tasks and
// 100 threads (the second of three published runs; 0: not measured). The queue was filled while it was read, which held the original's rates
// below 200 even without order.
type test struct {
	keys, versions int
	sequential     bool
	published      map[pattern]float64
}

type pattern string

const (
	sequential  pattern = "sequential"
	grouped     pattern = "grouped"
	interleaved pattern = "interleaved"
	unordered   pattern = "unordered"
)

var patterns = []pattern{sequential, grouped, interleaved, unordered}

const publishedTask = 0.250 // seconds

var tests = []test{
	{40, 2, true, map[pattern]float64{sequential: 4, grouped: 85, interleaved: 108, unordered: 113}},
	{80, 4, true, map[pattern]float64{sequential: 4, grouped: 104, interleaved: 160, unordered: 170}},
	{160, 8, true, map[pattern]float64{sequential: 4, grouped: 78, interleaved: 179, unordered: 192}},
	{320, 16, false, map[pattern]float64{grouped: 47, interleaved: 186, unordered: 201}},
	{480, 24, false, map[pattern]float64{grouped: 34, interleaved: 183, unordered: 192}},
}

func (t test) name() string  { return fmt.Sprintf("%dx%d", t.keys, t.versions) }
func (t test) messages() int { return t.keys * t.versions }

// item is one message of a load.
type item struct {
	key string
	seq int64
}

// load is the queue's content, in order.
func (t test) load(p pattern) []item {
	items := make([]item, 0, t.messages())
	add := func(k, v int) { items = append(items, item{fmt.Sprintf("order-%04d", k), int64(v)}) }
	if p == grouped {
		for k := range t.keys {
			for v := range t.versions {
				add(k, v)
			}
		}
		return items
	}
	for v := range t.versions {
		for k := range t.keys {
			add(k, v)
		}
	}
	return items
}

// ideal is how many task times a perfect run takes.
func (t test) ideal(p pattern, workers int) int {
	if p == sequential {
		return t.messages()
	}
	return (t.messages() + workers - 1) / workers
}

// publishedEfficiency is the published rate over the rate of the same ideal; 0 if none was published.
func (t test) publishedEfficiency(p pattern) float64 {
	return t.published[p] * float64(t.ideal(p, 100)) * publishedTask / float64(t.messages())
}
