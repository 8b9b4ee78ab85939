package providertest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/providertest"
)

// managerFaults break guarantees: through a provider that breaks its contract, or through settings that the case did not ask for. They
// must fail the case that is named; only that is run, because a broken contract breaks more than one guarantee.
func managerFaults() []fault {
	all := []fault{
		{name: "messages overtake each other", fails: "G1/Failures", bend: bend{
			receive: func(ctx context.Context, s *bentSession) (*jms.Message, error) {
				s.c.locked(func() {
					q := s.refSession.c.q
					if n := len(q.messages); n > 500 && s.c.commits == 0 { // the messages of a key lie 100 apart
						q.messages[n-1], q.messages[n-101] = q.messages[n-101], q.messages[n-1]
						s.c.commits++ // once
					}
				})
				return s.refSession.Receive(ctx)
			}}},
		{name: "a message that comes again is not marked", fails: "G1/Losses",
			bend: changed(func(_ *bentSession, m *jms.Message) { m.Redelivered = false })},
		{name: "what is lost comes later than declared", fails: "G1/Losses", bend: bend{cut: lateReturnOfAll}},
		{name: "a task has no timeout", fails: "G2/TaskIgnoresTimeout", config: func(c *keyseq.Config) { c.TaskTimeout = 0 }},
		{name: "a key name is lost", fails: "G2/TaskIgnoresDrain", bend: changed(func(_ *bentSession, m *jms.Message) {
			if strings.HasPrefix(string(m.Body), "deaf.1") {
				m.Body = []byte("daft.1")
			}
		})},
		{name: "given up messages are dropped", fails: "G3/Verdicts", config: func(c *keyseq.Config) { c.Retry.OnExhausted = keyseq.ActionDiscard }},
		{name: "large bodies are cut", fails: "G3/LargeBodies",
			bend: changed(func(_ *bentSession, m *jms.Message) { m.Body = m.Body[:min(len(m.Body), 32<<10)] })},
		{name: "the window of bytes has no bound", fails: "G3/LargeBodies", config: func(c *keyseq.Config) { c.MaxInFlightBytes = 1 << 30 }},
		{name: "a rollback loses the message", fails: "G3/ShutdownGivesBack", bend: bend{
			rollback: func(ctx context.Context, s *bentSession) error { return s.refSession.Commit(ctx) }}},
		{name: "some commits remove nothing", fails: "G4/NoDuplicatesWithoutLoss", bend: bend{commit: forgetful}},
		{name: "some commits remove nothing, and a loss shows it", fails: "G4/DuplicatesAfterLoss", bend: bend{commit: forgetful}},
		{name: "a failing message is not tried again", fails: "G5/FailingKeyHoldsItself", config: func(c *keyseq.Config) {
			c.Retry.MaxRetries, c.Retry.OnExhausted = 0, keyseq.ActionDiscard
		}},
		{name: "one worker for all", fails: "G5/WaitingMessagesHoldNoWorker", config: func(c *keyseq.Config) { c.Workers = 1 }},
		{name: "nobody is told of a full window", fails: "G5/FullWindowIsTold", config: func(c *keyseq.Config) { c.Events = c.Events[:1] }},
		{name: "a window of two", fails: "G6/Fairness", config: func(c *keyseq.Config) { c.MaxInFlight = 2 }},
		{name: "more workers than asked for", fails: "G7/Bounds", config: func(c *keyseq.Config) { c.Workers = 6 }},
		{name: "fewer workers than asked for", fails: "G7/Bounds", config: func(c *keyseq.Config) { c.Workers = 4 }},
		{name: "a larger window than asked for", fails: "G7/Bounds", config: func(c *keyseq.Config) { c.MaxInFlight = 50 }},
		{name: "nobody connects again", fails: "G8/Reconnects", config: func(c *keyseq.Config) { c.Reconnect = keyseq.FixedBackoff(48 * time.Hour) }},
		{name: "an unknown queue is taken for a lost connection", fails: "G8/UnknownQueue", bend: bend{
			connect: func(ctx context.Context, b *refBroker, sub jms.Subscription) (jms.Connection, error) {
				c, err := b.Connect(ctx, sub)
				if errors.Is(err, jms.ErrConfig) {
					err = jms.ErrConnectionLost
				}
				return c, err
			}}},
		{name: "an unroutable send is dropped", fails: "G8/UnknownTarget", bend: bend{
			commit: func(ctx context.Context, s *bentSession, out []jms.Outgoing) error {
				unknown := func(o jms.Outgoing) bool { return s.c.b.queues[o.Queue] == nil }
				return s.refSession.Commit(ctx, slices.DeleteFunc(slices.Clone(out), unknown)...)
			}}},
		{name: "close hangs", fails: "G8/RunEndsWithContext", bend: bend{closeConn: func(ctx context.Context, c *bentConn) error {
			select {
			case <-ctx.Done():
			case <-time.After(15 * time.Second):
			}
			return c.refConn.Close(ctx)
		}}},
		{name: "close loses a message", fails: "G8/Restart", bend: bend{closeConn: func(ctx context.Context, c *bentConn) error {
			err := c.refConn.Close(ctx)
			c.locked(func() {
				if q := c.q; c.commits > 0 && len(q.messages) > 50 {
					q.messages = q.messages[1:]
				}
			})
			return err
		}}},
	}
	for i := range all {
		all[i].manager = true
	}
	return all
}

// forgetful commits leave every fiftieth message on the queue.
func forgetful(ctx context.Context, s *bentSession, out []jms.Outgoing) error {
	s.c.b.mu.Lock()
	forget := s.c.commits%50 == 0
	s.c.b.mu.Unlock()
	if !forget {
		return s.refSession.Commit(ctx, out...)
	}
	other := &refSession{c: s.refSession.c}
	if err := other.Commit(ctx, out...); err != nil {
		return err
	}
	return s.refSession.Rollback(ctx)
}

// lateReturnOfAll is a loss whose messages come back after 3 s, though others read on.
func lateReturnOfAll(c *bentConn) {
	c.locked(func() {
		for s := range c.sessions {
			if s.held != nil {
				c.hide(s.held)
				s.held = nil
			}
		}
		time.AfterFunc(3*time.Second, func() { c.locked(c.unhide) })
	})
	c.refConn.Break()
}

// Each guarantee has a fault that RunManager notices.
func TestManagerFaultsFailTheirCase(t *testing.T) {
	covered := map[string]bool{}
	for _, f := range managerFaults() {
		covered[f.fails] = true
		t.Run(strings.ReplaceAll(f.name, " ", "-"), func(t *testing.T) {
			failed, out := failures(t, f, "/^"+strings.ReplaceAll(f.fails, "/", "$/^")+"$")
			if !slices.Equal(failed, []string{f.fails}) {
				t.Fatalf("failed cases: %q, want %q\n%s", failed, f.fails, out)
			}
			if !inWords.Match(out) {
				t.Errorf("no message names the broken guarantee in words\n%s", out)
			}
		})
	}
	for _, name := range providertest.ManagerCaseNames() {
		if !covered[name] {
			t.Errorf("no fault fails case %s, so nothing proves that it can fail", name)
		}
	}
}
