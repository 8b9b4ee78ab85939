package ibmmq_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/orderaudit"
	"github.com/keyseq/keyseq/provider/ibmmq"
)

// R1.16: everything that is missing is named at once, and nothing reaches the queue manager.
func TestR1_16_EveryMissingArgumentIsNamedAtOnce(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	calls := b.calls("MQCONNX")
	_, err := keyseq.NewSequenceManager("", nil, nil, nil)
	for _, name := range []string{"queue", "factory", "listener", "extractor"} {
		if err == nil || !strings.Contains(strings.ToLower(err.Error()), name) {
			t.Errorf("the error does not name the %s: %v", name, err)
		}
	}
	m := b.newManager(&ibmmq.Factory{}, inMemory(nil))
	err = m.Start(t.Context())
	b.is(err, jms.ErrConfig, "Channel", "Connections")
	if n := b.calls("MQCONNX") - calls; n != 0 {
		t.Errorf("%d connections were made", n)
	}
}

// R1.17: the configuration is what it was when the manager was made, whatever becomes of the struct it was written to.
func TestR1_17_ConfigurationIsFixedWhenMade(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	var kept *keyseq.Config
	a := inMemory(nil)
	m := b.newManager(b.factory(), a, func(c *keyseq.Config) { kept = c; c.ClientName, c.MaxInFlight = "as made", 3 })
	kept.ClientName, kept.MaxInFlight, kept.Events = "changed", 1000, nil
	c := m.Config()
	c.ClientName = "changed"
	b.load(a.record, 10, 3)
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.finished(a, 30)
	if got := m.Config(); got.ClientName != "as made" || m.Snapshot().Sessions > 4 {
		t.Errorf("ClientName %q, %d sessions", got.ClientName, m.Snapshot().Sessions)
	}
	if b.passed("as made")["MQCD.ChannelName"] == "" || b.passed("as made control")["MQCD.ChannelName"] == "" {
		t.Error("the queue manager was not shown the application name")
	}
	b.shutdown(m, a)
	judge(t, a.record.History(), orderaudit.Options{})
}

// R1.18: making a manager does no I/O; Start reports a queue manager that is not there and leaves nothing open; a later Start works.
func TestR1_18_OnlyStartTouchesTheBroker(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	a := inMemory(nil)
	b.sent(a, "k.1")
	before, calls := b.connected(), b.calls("MQCONNX")
	m := b.newManager(b.factory(), a)
	if n := b.calls("MQCONNX") - calls; n != 0 {
		t.Errorf("making a manager made %d connections", n)
	}
	b.fail("MQCONNX", 2538, 1)
	b.is(m.Start(t.Context()), jms.ErrConnectionLost, b.queue, "2538")
	select {
	case <-m.Done():
	default:
		t.Error("Done is open after a Start that failed")
	}
	if n := b.connected(); n != before || m.State() != keyseq.StateStopped {
		t.Errorf("%d connections are open, state %v", n-before, m.State())
	}
	b.fail("MQOPEN", 2085, 1)
	b.is(m.Start(t.Context()), jms.ErrConfig, b.queue, "2085")
	if n := b.connected(); n != before {
		t.Errorf("%d connections are open after a queue that is not there", n-before)
	}
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.finished(a, 1)
	b.shutdown(m, a)
}

// R1.28: nothing is logged without a logger; with one at its most talkative neither password nor body is.
func TestR1_28_LogsOnlyToItsLoggerAndNoSecrets(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	var mu sync.Mutex
	eventful := func(configure func(*keyseq.Config)) {
		a := inMemory(func(_ context.Context, d *keyseq.Delivery) error {
			if d.Attempt == 1 {
				return errors.New("fails once")
			}
			if d.Key == "dead" {
				return keyseq.DeadLetter(errors.New("no good"))
			}
			return nil
		})
		b.send(b.queue, "k.1 hunter2", "dead.1 hunter2", "hunter2 without a key")
		m := b.manage(b.factory(), a, configure, func(c *keyseq.Config) { c.Retry.Backoff = keyseq.FixedBackoff(time.Millisecond) })
		b.finished(a, 3)
		b.breakName("keyseq", true)
		b.soon("it is noticed", func() bool { return m.State() == keyseq.StateConnecting })
		b.soon("it reads again", func() bool { return m.State() == keyseq.StateActive })
		b.shutdown(m, a)
		wrong := b.newManager(b.factory(func(f *ibmmq.Factory) { f.Password = "hunter2" }), a, configure)
		if err := wrong.Start(t.Context()); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("Start with a wrong password: %v", err)
		}
	}
	quiet := captured(t, func() { eventful(func(*keyseq.Config) {}) })
	if quiet != "" {
		t.Errorf("without a logger it wrote:\n%s", quiet)
	}
	var log strings.Builder
	debug := slog.New(slog.NewTextHandler(writer(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return log.Write(p)
	}), &slog.HandlerOptions{Level: slog.LevelDebug}))
	eventful(func(c *keyseq.Config) { c.Logger = debug })
	mu.Lock()
	defer mu.Unlock()
	if !strings.Contains(log.String(), b.queue) {
		t.Errorf("the log says nothing:\n%s", log.String())
	}
	for _, secret := range []string{"hunter2", "passw0rd"} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("the log tells %s:\n%s", secret, log.String())
		}
	}
}

// captured is what is written to the default logger and to the standard error meanwhile. mq-golang-jms20 itself prints to the standard output.
func captured(t *testing.T, run func()) string {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	was, wasErr := slog.Default(), os.Stderr
	slog.SetDefault(slog.New(slog.NewTextHandler(write, &slog.HandlerOptions{Level: slog.LevelDebug})))
	os.Stderr = write
	text := make(chan []byte)
	go func() {
		all, _ := io.ReadAll(read)
		text <- all
	}()
	defer func() { _ = read.Close() }()
	run()
	slog.SetDefault(was)
	os.Stderr = wasErr
	_ = write.Close()
	return string(<-text)
}
