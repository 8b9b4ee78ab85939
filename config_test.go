package keyseq_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/memory"
)

// fields lists the fields that an error of NewSequenceManager names.
func fields(err error) (names []string) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			names = append(names, fields(e)...)
		}
		return names
	}
	if c, ok := errors.AsType[*keyseq.ConfigError](err); ok {
		names = append(names, c.Field)
	}
	return names
}

// R1.16: each missing argument is named, and all of them at once; a nil pointer or func in an interface is missing too.
func TestR1_16_EveryMissingArgumentIsNamedAtOnce(t *testing.T) {
	broker := must(memory.NewBroker(memory.Queue{Name: inQueue}))
	listener, key := keyseq.ListenerFuncs{Task: quick}, keyseq.KeyFromGroupID()
	var noBroker *memory.Broker
	var noListener *keyseq.ListenerFuncs
	for _, c := range []struct {
		name     string
		queue    string
		factory  jms.ConnectionFactory
		listener keyseq.Listener
		key      keyseq.KeyExtractor
		want     []string
	}{
		{"nothing is missing", inQueue, broker, listener, key, nil},
		{"queue", "", broker, listener, key, []string{"queue"}},
		{"factory", inQueue, nil, listener, key, []string{"factory"}},
		{"listener", inQueue, broker, nil, key, []string{"listener"}},
		{"key", inQueue, broker, listener, nil, []string{"key"}},
		{"all", "", nil, nil, nil, []string{"queue", "factory", "listener", "key"}},
		{"nil broker", inQueue, noBroker, listener, key, []string{"factory"}},
		{"nil listener pointer", inQueue, broker, noListener, key, []string{"listener"}},
		{"no task", inQueue, broker, keyseq.ListenerFuncs{}, key, []string{"listener"}},
		{"no task behind a pointer", inQueue, broker, &keyseq.ListenerFuncs{}, key, []string{"listener"}},
		{"nil extractor func", inQueue, broker, listener, keyseq.KeyExtractorFunc(nil), []string{"key"}},
		{"property without a name", inQueue, broker, listener, keyseq.KeyFromProperty(""), []string{"KeyExtractor"}},
		{"no separator", inQueue, broker, listener, keyseq.KeyFromBodyBefore(""), []string{"KeyExtractor"}},
		{"no JSON pointer", inQueue, broker, listener, keyseq.KeyFromJSON("account"), []string{"KeyExtractor"}},
		{"JSON pointer with a bad escape", inQueue, broker, listener, keyseq.KeyFromJSON("/a~2"), []string{"KeyExtractor"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := keyseq.NewSequenceManager(c.queue, c.factory, c.listener, c.key)
			if got := fields(err); !slices.Equal(got, c.want) || (m == nil) != (err != nil) {
				t.Errorf("error names %q, want %q: %v", got, c.want, err)
			}
			if err != nil && !strings.Contains(err.Error(), ": ") {
				t.Errorf("%q does not say what to do", err)
			}
		})
	}
}

// Bad input: every limit out of its range is refused with the range, all at once.
func TestBadInput_LimitsOutOfRange(t *testing.T) {
	broker := must(memory.NewBroker(memory.Queue{Name: inQueue}))
	make := func(configure ...func(*keyseq.Config)) error {
		_, err := keyseq.NewSequenceManager(inQueue, broker, keyseq.ListenerFuncs{Task: quick}, keyseq.KeyFromGroupID(), configure...)
		return err
	}
	for _, c := range []struct {
		want   string // field
		say    string // what the error must also say
		change func(*keyseq.Config)
	}{
		{"Workers", "1 to 10000", func(c *keyseq.Config) { c.Workers = 0 }},
		{"Workers", "1 to 10000", func(c *keyseq.Config) { c.Workers = -5 }},
		{"Workers", "1 to 10000", func(c *keyseq.Config) { c.Workers = 10_001 }},
		{"MaxInFlight", "1 to 1000000", func(c *keyseq.Config) { c.MaxInFlight = -1 }},
		{"MaxInFlight", "1 to 1000000", func(c *keyseq.Config) { c.MaxInFlight = 1_000_001 }},
		{"MaxInFlightBytes", "positive", func(c *keyseq.Config) { c.MaxInFlightBytes = 0 }},
		{"MaxDeliveries", "0 for off", func(c *keyseq.Config) { c.MaxDeliveries = -1 }},
		{"TaskTimeout", "negative", func(c *keyseq.Config) { c.TaskTimeout = -1 }},
		{"ReturnDelay", "negative", func(c *keyseq.Config) { c.ReturnDelay = -1 }},
		{"MaxHold", "negative", func(c *keyseq.Config) { c.MaxHold = -1 }},
		{"TakeoverDelay", "negative", func(c *keyseq.Config) { c.TakeoverDelay = -1 }},
		{"DrainTimeout", "negative", func(c *keyseq.Config) { c.DrainTimeout = -1 }},
		{"CallTimeout", "10ms to 1h", func(c *keyseq.Config) { c.CallTimeout = 0 }},
		{"CallTimeout", "10ms to 1h", func(c *keyseq.Config) { c.CallTimeout = 2 * time.Hour }},
		{"Retry.MaxRetries", "Unlimited", func(c *keyseq.Config) { c.Retry.MaxRetries = -2 }},
		{"Retry.Backoff", "FixedBackoff", func(c *keyseq.Config) { c.Retry.Backoff = nil }},
		{"Retry.OnExhausted", "Action", func(c *keyseq.Config) { c.Retry.OnExhausted = 99 }},
		{"OnKeyError", "Action", func(c *keyseq.Config) { c.OnKeyError = -1 }},
		{"OnKeyError", "ActionStop", func(c *keyseq.Config) { c.OnKeyError = keyseq.ActionHold }},
		{"OnEmptyKey", "EmptyKey", func(c *keyseq.Config) { c.OnEmptyKey = 7 }},
		{"Reconnect", "FixedBackoff", func(c *keyseq.Config) { c.Reconnect = nil }},
		{"Logger", "default", func(c *keyseq.Config) { c.Logger = nil }},
		{"TaskTimeout", "MaxHold", func(c *keyseq.Config) { c.TaskTimeout, c.MaxHold = time.Hour, 30*time.Minute }},
		{"Retry.Backoff", "MaxHold", func(c *keyseq.Config) {
			c.MaxHold, c.Retry.Backoff = 20*time.Minute, keyseq.FixedBackoff(21*time.Minute)
		}},
	} {
		err := make(c.change)
		if got := fields(err); !slices.Equal(got, []string{c.want}) || !strings.Contains(err.Error(), c.say) {
			t.Errorf("want an error of %s that says %q, got %v", c.want, c.say, err)
		}
	}
	err := make(func(c *keyseq.Config) { c.Workers = 0 }, nil, func(c *keyseq.Config) { c.CallTimeout, c.Logger = 0, nil })
	if got := fields(err); !slices.Equal(got, []string{"Workers", "CallTimeout", "Logger"}) {
		t.Errorf("three mistakes, the error names %q", got)
	}
	for _, ok := range []func(*keyseq.Config){
		nil,
		func(c *keyseq.Config) { c.Workers, c.MaxInFlight = 10_000, 1_000_000 },
		func(c *keyseq.Config) { c.Workers, c.MaxInFlight, c.Retry.MaxRetries = 1, 0, 0 },
		func(c *keyseq.Config) { c.TaskTimeout, c.DrainTimeout, c.Retry.MaxRetries = 0, 0, keyseq.Unlimited },
	} {
		if err := make(ok); err != nil {
			t.Errorf("refused: %v", err)
		}
	}
}

// R1.17, B23: the configuration is fixed when the manager is made: neither the copy that Config returns, nor what configure was given, nor the
// slices that went into it change it afterwards.
func TestR1_17_ConfigurationIsFixedWhenMade(t *testing.T) {
	bubble(t, func(r *rig) {
		r.interleaved(2, 2)
		told := 0
		events := []keyseq.Events{{}, {Committed: func(keyseq.MessageEvent) { r.locked(func() { told++ }) }}}
		steps := []time.Duration{time.Second, 2 * time.Second}
		var kept *keyseq.Config
		m := r.manager(func(_ context.Context, d *keyseq.Delivery) error {
			if d.Attempt == 1 {
				return errors.New("once")
			}
			return nil
		}, func(c *keyseq.Config) {
			kept = c
			c.Events = append(c.Events, events...)
			c.Workers = 3
			c.Retry.Backoff = keyseq.StepBackoff(steps...)
		})
		copied := m.Config()
		if copied.Workers != 3 || len(copied.Events) != 3 || copied.MaxInFlight != 200 {
			r.Errorf("Config: %d workers, %d events, %d in flight", copied.Workers, len(copied.Events), copied.MaxInFlight)
		}
		copied.Workers, copied.Events[2] = 99, keyseq.Events{}
		kept.Workers, kept.Events[2], kept.MaxInFlight = 99, keyseq.Events{}, 1
		kept.Retry.OnExhausted, kept.DeadLetterQueue = keyseq.ActionDiscard, "NOWHERE"
		steps[0] = time.Hour
		if again := m.Config(); again.Workers != 3 || again.Events[2].Committed == nil || again.DeadLetterQueue != "" {
			r.Errorf("Config has changed: %d workers, dead letters to %q", again.Workers, again.DeadLetterQueue)
		}
		began := time.Now()
		m.start()
		r.drained()
		if told != 4 {
			r.Errorf("%d commits told, want 4", told)
		}
		if d := time.Since(began); d > 5*time.Second {
			r.Errorf("it took %v: the steps of the backoff were changed from outside", d)
		}
	})
}

// R1.17: what the defaults are, as documented.
func TestR1_17_Defaults(t *testing.T) {
	broker := must(memory.NewBroker(memory.Queue{Name: inQueue}))
	c := must(keyseq.NewSequenceManager(inQueue, broker, keyseq.ListenerFuncs{Task: quick}, keyseq.KeyFromGroupID())).Config()
	if c.Workers != 100 || c.MaxInFlight != 0 || c.MaxInFlightBytes != 256<<20 || c.TaskTimeout != 15*time.Minute || c.Retry.MaxRetries != 16 ||
		c.Retry.OnExhausted != keyseq.ActionAuto || c.OnKeyError != keyseq.ActionAuto || c.OnEmptyKey != keyseq.EmptyKeyShared ||
		c.CallTimeout != 30*time.Second || c.DrainTimeout != 30*time.Second || c.ClientName != "keyseq" || c.SingleActiveConsumer || c.MaxDeliveries != 0 {
		t.Errorf("defaults: %+v", c)
	}
	for n := range 100 {
		if d := c.Retry.Backoff(n); d < 0 || d > time.Minute {
			t.Errorf("Backoff(%d) is %v", n, d)
		}
		if d := c.Reconnect(n); d < 0 || d > 30*time.Second {
			t.Errorf("Reconnect(%d) is %v", n, d)
		}
	}
}

// R1.28: silent without a logger, whatever happens; with one the level is its own, every line names the queue, and no body is logged.
func TestR1_28_LogsOnlyToItsLogger(t *testing.T) {
	eventful := func(r *rig, configure func(*keyseq.Config)) {
		for n := range 3 {
			must(r.broker.Send(keyseq.Outgoing{Queue: inQueue, Body: []byte("K.secret" + string(rune('0'+n)))}))
		}
		must(r.broker.Send(keyseq.Outgoing{Queue: inQueue, Body: []byte("secret without key")}))
		r.unjudged = true
		m := r.manager(func(_ context.Context, d *keyseq.Delivery) error {
			if d.Attempt < 3 {
				panic("boom")
			}
			return keyseq.DeadLetter(errors.New("bad"))
		}, func(c *keyseq.Config) { c.DeadLetterQueue = deadQueue }, configure)
		m.start()
		time.Sleep(50 * time.Millisecond)
		must(r.broker.Break(inQueue, memory.Loss{}))
		r.drained()
		if err := m.shutdown(time.Minute); err != nil {
			r.Error(err)
		}
	}
	bubble(t, func(r *rig) {
		var buf bytes.Buffer
		was, wasErr, wasOut := slog.Default(), os.Stderr, os.Stdout
		read, write, err := os.Pipe()
		if err != nil {
			r.Fatal(err)
		}
		slog.SetDefault(slog.New(slog.NewTextHandler(&buf, &slog.HandlerOptions{Level: slog.LevelDebug})))
		os.Stderr, os.Stdout = write, write
		eventful(r, func(*keyseq.Config) {})
		slog.SetDefault(was)
		os.Stderr, os.Stdout = wasErr, wasOut
		_ = write.Close()
		printed, _ := io.ReadAll(read)
		_ = read.Close()
		if buf.Len()+len(printed) > 0 {
			r.Errorf("without a logger it wrote %s%s", buf.String(), printed)
		}
	})
	for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn} {
		bubble(t, func(r *rig) {
			var buf bytes.Buffer
			eventful(r, func(c *keyseq.Config) {
				c.Logger = slog.New(slog.NewTextHandler(&buf, &slog.HandlerOptions{Level: level}))
			})
			lines := strings.Split(strings.TrimSpace(buf.String()), "\n")
			for _, line := range lines {
				if !strings.Contains(line, "queue="+inQueue) {
					r.Errorf("a line without its queue: %s", line)
				}
				if strings.Contains(line, "secret") {
					r.Errorf("a line with a body: %s", line)
				}
			}
			count := func(l slog.Level) int { return strings.Count(buf.String(), "level="+l.String()) }
			if got := [3]bool{count(slog.LevelDebug) > 0, count(slog.LevelInfo) > 0, count(slog.LevelWarn) > 0}; got != [3]bool{level <= slog.LevelDebug, level <= slog.LevelInfo, true} {
				r.Errorf("at level %v: debug, info, warn lines: %v", level, got)
			}
		})
	}
}
