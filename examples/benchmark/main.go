// Command benchmark reproduces the load of the Java original's published tables: 40 keys with 2 messages each up to 480 keys with 24, a
// preloaded queue, 100 workers, every task the same length. It measures how close the whole path comes to the ideal, in which 100
// workers are always busy, with the messages of a key in a row (grouped) or spread out (interleaved), beside the same load without order and,
// for the small tests, one message after another. Every run is audited.
//
//	go run ./examples/benchmark                  # memory broker, 25 ms tasks, about a minute
//	go run ./examples/benchmark -task 250ms      # the original's task time, about 10 minutes
//	go run ./examples/benchmark -json            # one JSON object on standard output and nothing else
//	go run ./examples/benchmark -chart chart.svg
//	go run ./examples/benchmark -broker rabbitmq # needs KEYSEQ_RABBITMQ_URL
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "benchmark:", err)
		os.Exit(1)
	}
}

// watched is where progress is shown: a terminal, but no file.
func watched(w io.Writer) io.Writer {
	f, ok := w.(*os.File)
	if !ok {
		return io.Discard
	}
	if to, err := f.Stat(); err != nil || to.Mode()&os.ModeCharDevice == 0 {
		return io.Discard
	}
	return f
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("benchmark", flag.ContinueOnError)
	flags.SetOutput(stderr)
	task := flags.Duration("task", 25*time.Millisecond, "how long a task takes")
	workers := flags.Int("workers", 100, "tasks at once")
	broker := flags.String("broker", "memory", "memory or rabbitmq (its address in KEYSEQ_RABBITMQ_URL)")
	asJSON := flags.Bool("json", false, "print one JSON object and nothing else on standard output")
	chart := flags.String("chart", "", "write a chart to this file (SVG)")
	most := flags.Int("tests", len(tests), "how many of the five tests, from the smallest")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *most < 1 || *most > len(tests) {
		return fmt.Errorf("-tests %d: must be 1 to %d", *most, len(tests))
	}
	if *workers < 1 {
		return fmt.Errorf("-workers %d: must be at least 1", *workers)
	}
	if *task <= 0 {
		return fmt.Errorf("-task %v: must be positive", *task)
	}
	open, err := brokerNamed(*broker)
	if err != nil {
		return err
	}
	var results []result
	for _, t := range tests[:*most] {
		for _, p := range patterns {
			if p == sequential && !t.sequential {
				continue
			}
			m := measurement{test: t, pattern: p, workers: *workers, task: *task, open: open, progress: watched(stderr)}
			r, err := m.run(ctx)
			if err != nil {
				return fmt.Errorf("test %s, %s: %w", t.name(), p, err)
			}
			results = append(results, r)
		}
	}
	if *chart != "" {
		if err := writeChart(*chart, results); err != nil {
			return err
		}
	}
	if *asJSON {
		return json.NewEncoder(stdout).Encode(map[string]any{"results": results})
	}
	return writeTable(stdout, results)
}
