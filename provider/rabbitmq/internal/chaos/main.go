// Command chaos proves the guarantees on a RabbitMQ broker and consumers that are killed while they work. Each round is drawn from a seed: a
// producer publishes numbered messages of some keys, two or three consumers in processes of their own handle them, each
// over a proxy, and every second or so something breaks: kill -9 or SIGSTOP of a consumer or of the broker, links cut or
// silent, restarts, rolling deploys, memory alarms. When all is handled, orderaudit judges the histories of all processes together.
//
//	scripts/chaos                      # about three minutes
//	scripts/chaos -for 1h              # any length
//	scripts/chaos -seed 4711 -rounds 1 # one round again
package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if len(os.Args) > 1 && os.Args[1] == "consumer" {
		err = consume(ctx, os.Args[2:])
	} else {
		err = run(ctx, os.Args[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

// totals are what all rounds came to.
type totals struct {
	rounds, messages, attempts, repeats, losses, doubtful int
	faults                                                map[string]int
	takeovers                                             map[string][]time.Duration // from kill -9 of the active instance to the next task of another, by how the consumers were set
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("chaos", flag.ExitOnError)
	seed := flags.Uint64("seed", 0, "seed of the first round; 0: drawn")
	rounds := flags.Int("rounds", 0, "rounds to run; 0: as many as begin within -for")
	length := flags.Duration("for", 150*time.Second, "begin no round later than this")
	script := flags.String("script", "scripts/rabbitmq", "the script that runs the broker")
	_ = flags.Parse(args) // ExitOnError
	if *seed == 0 {
		*seed = rand.Uint64N(1_000_000)
	}
	dir, err := os.MkdirTemp("", "keyseq-chaos.")
	if err != nil {
		return err
	}
	b := &broker{script: *script, dir: filepath.Join(dir, "broker")}
	if err := b.start(); err != nil {
		return err
	}
	sum := totals{faults: map[string]int{}, takeovers: map[string][]time.Duration{}}
	began := time.Now()
	for ; ctx.Err() == nil && (*rounds > 0 && sum.rounds < *rounds || *rounds == 0 && time.Since(began) < *length); sum.rounds++ {
		s := *seed + uint64(sum.rounds)
		files := filepath.Join(dir, fmt.Sprint("round-", s))
		if err = os.Mkdir(files, 0o755); err == nil {
			err = newRound(s, b, files).run(ctx, &sum)
		}
		if err != nil {
			err = fmt.Errorf("round with seed %d: %w\nreplay: scripts/chaos -seed %d -rounds 1\nits histories: %s", s, err, s, files)
			break
		}
	}
	if stopped := b.command("stop"); err == nil {
		err = stopped
	}
	if err != nil {
		return err
	}
	fmt.Printf("%d rounds in %v without a violation: %d messages, %d attempts, %d repeats, %d losses", sum.rounds, time.Since(began).Round(time.Second),
		sum.messages, sum.attempts, sum.repeats, sum.losses)
	if sum.losses > 0 {
		fmt.Printf(" (%.1f repeats a loss)", float64(sum.repeats)/float64(sum.losses))
	}
	fmt.Printf(", %d sends in doubt\nfaults: %v\n", sum.doubtful, sum.faults)
	for _, how := range slices.Sorted(maps.Keys(sum.takeovers)) {
		times := sum.takeovers[how]
		slices.Sort(times)
		fmt.Printf("takeover after kill -9 of the active instance with %s, %d times: median %v, longest %v\n", how, len(times),
			times[len(times)/2].Round(time.Millisecond), times[len(times)-1].Round(time.Millisecond))
	}
	return os.RemoveAll(dir)
}
