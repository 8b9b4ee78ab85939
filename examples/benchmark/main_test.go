package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWrongFlagsAreNamed(t *testing.T) {
	for _, c := range []struct{ args, names string }{
		{"-broker kafka", "-broker"},
		{"-task 0s", "-task"},
		{"-task soon", "-task"},
		{"-tests 0", "-tests"},
		{"-tests 6", "-tests"},
		{"-workers 0", "-workers"},
		{"-threads 3", "-threads"},
	} {
		var stdout, stderr bytes.Buffer
		err := run(t.Context(), strings.Fields(c.args), &stdout, &stderr)
		if err == nil || !strings.Contains(err.Error(), strings.TrimPrefix(c.names, "-")) {
			t.Errorf("%s: error %v, want one that names %s", c.args, err, c.names)
		}
		if stdout.Len() > 0 {
			t.Errorf("%s: standard output has %q", c.args, stdout.String())
		}
	}
}

func TestRabbitMQNeedsAnAddress(t *testing.T) {
	t.Setenv("KEYSEQ_RABBITMQ_URL", "")
	err := run(t.Context(), []string{"-broker", "rabbitmq"}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "scripts/rabbitmq start") {
		t.Errorf("error %v, want one that names the command that starts a broker", err)
	}
}

// Programs read the JSON: these names, in this order.
func TestShapeOfAResult(t *testing.T) {
	got, err := json.Marshal(result{Test: "480x24", Pattern: grouped, Messages: 11520, Workers: 100, TaskMS: 25, Ordered: true, publishedRate: 34})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"test":"480x24","pattern":"grouped","messages":11520,"workers":100,"task_ms":25,"elapsed_ms":0,"ideal_ms":0,"efficiency":0,"ordered":true}`
	if string(got) != want {
		t.Errorf("a result is\n%s, want\n%s", got, want)
	}
}

// One JSON object and nothing else on standard output, for real runs of the smallest test.
func TestJSON(t *testing.T) {
	file := filepath.Join(t.TempDir(), "chart.svg")
	var stdout bytes.Buffer
	if err := run(t.Context(), []string{"-json", "-tests", "1", "-task", "2ms", "-chart", file}, &stdout, io.Discard); err != nil {
		t.Fatal(err)
	}
	var out struct {
		Results []result `json:"results"`
	}
	decoder := json.NewDecoder(&stdout)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&out); err != nil {
		t.Fatalf("standard output is no such object: %v", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		t.Errorf("something follows the object: %v", err)
	}
	if len(out.Results) != len(patterns) {
		t.Fatalf("%d results, want one for each of %v", len(out.Results), patterns)
	}
	for i, r := range out.Results {
		workers := 100
		if r.Pattern == sequential {
			workers = 1
		}
		if r.Test != "40x2" || r.Pattern != patterns[i] || r.Messages != 80 || r.Workers != workers || r.TaskMS != 2 {
			t.Errorf("result %d is %+v", i, r)
		}
		if r.IdealMS < 2*float64(tests[0].ideal(r.Pattern, 100)) || r.ElapsedMS < r.IdealMS || math.Abs(r.Efficiency-r.IdealMS/r.ElapsedMS) > 0.01 {
			t.Errorf("%s: elapsed %v ms, ideal %v ms, efficiency %v do not fit together", r.Pattern, r.ElapsedMS, r.IdealMS, r.Efficiency)
		}
		if !r.Ordered && r.Pattern != unordered {
			t.Errorf("%s: the audit says that the order was broken", r.Pattern)
		}
	}
	checkChart(t, file, 3)
}

// checkChart reads the chart as XML: a background, and a dark and a pale bar for each result.
func checkChart(t *testing.T, file string, results int) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var svg struct {
		Rects []struct {
			Height string `xml:"height,attr"`
		} `xml:"rect"`
	}
	if err := xml.Unmarshal(data, &svg); err != nil {
		t.Fatalf("the chart is no XML: %v", err)
	}
	if len(svg.Rects) != 1+2*results {
		t.Errorf("the chart has %d rectangles, want %d", len(svg.Rects), 1+2*results)
	}
}

// The table shows every result beside what was published.
func TestTable(t *testing.T) {
	var out bytes.Buffer
	big := tests[4]
	err := writeTable(&out, []result{{Test: big.name(), Pattern: grouped, Messages: big.messages(), ElapsedMS: 2000, IdealMS: 1900, Efficiency: 0.95, Ordered: true,
		publishedRate: big.published[grouped], publishedEfficiency: big.publishedEfficiency(grouped)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"480x24", "11520", "5760", "0.950", "34/s = 0.09", "true"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table does not show %q:\n%s", want, out.String())
		}
	}
}

func TestLoads(t *testing.T) {
	for _, test := range tests {
		for _, p := range patterns {
			items := test.load(p)
			if len(items) != test.messages() {
				t.Errorf("%s %s: %d messages, want %d", test.name(), p, len(items), test.messages())
			}
			next := map[string]int64{}
			changes := 0
			for i, it := range items {
				if it.seq != next[it.key] {
					t.Fatalf("%s %s: message %d is %+v, want number %d of its key", test.name(), p, i, it, next[it.key])
				}
				next[it.key]++
				if i > 0 && it.key != items[i-1].key {
					changes++
				}
			}
			want := test.messages() - 1 // the key changes with every message
			if p == grouped {
				want = test.keys - 1
			}
			if len(next) != test.keys || changes != want {
				t.Errorf("%s %s: %d keys that change %d times, want %d and %d", test.name(), p, len(next), changes, test.keys, want)
			}
		}
	}
}

// What was published, as it was: 0.09 and 0.46 of the ideal for the largest test.
func TestPublishedEfficiency(t *testing.T) {
	big := tests[4]
	for p, want := range map[pattern]float64{grouped: 0.09, interleaved: 0.46} {
		if got := big.publishedEfficiency(p); math.Abs(got-want) > 0.005 {
			t.Errorf("published efficiency of 480x24 %s is %.3f, want %.2f", p, got, want)
		}
	}
	if n := big.ideal(grouped, 100); n != 116 {
		t.Errorf("the ideal of 480x24 is %d task times, want 116", n)
	}
}

// Ctrl-C ends it, with an error and without anything left behind.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := run(ctx, []string{"-task", "10ms"}, io.Discard, io.Discard); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("run returned %v, want that its context has ended", err)
	}
}

// The same on a real broker.
func TestRabbitMQ(t *testing.T) {
	if os.Getenv("KEYSEQ_RABBITMQ_URL") == "" {
		t.Skip("KEYSEQ_RABBITMQ_URL is not set: scripts/rabbitmq start; export KEYSEQ_RABBITMQ_URL=$(scripts/rabbitmq url)")
	}
	var stdout bytes.Buffer
	if err := run(t.Context(), []string{"-broker", "rabbitmq", "-json", "-tests", "1", "-task", "5ms"}, &stdout, io.Discard); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(stdout.String(), `"ordered":true`); n < 3 {
		t.Errorf("%d of 4 results were in order, want all but the unordered one:\n%s", n, stdout.String())
	}
}
