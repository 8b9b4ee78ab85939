package keyseq_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/memory"
)

// H11: Attempt counts what the task has seen, also what was rolled back or is in doubt, so that a task can tell, and give up, what never settles. Such an attempt uses
// up no retry. Where IDs are not stable a message that comes again is a new one.
func TestH11_AttemptCountsWhatWasRolledBack(t *testing.T) {
	for _, outcome := range []error{jms.ErrRolledBack, jms.ErrCommitUnknown, jms.ErrConnectionLost} {
		t.Run(outcome.Error(), func(t *testing.T) {
			profiles(t, func(r *rig) {
				r.send("K", 1)
				r.failCommit("K.1", 3, outcome, nil)
				var attempts journal
				m := r.manager(func(_ context.Context, d *keyseq.Delivery) error {
					attempts.add("%d", d.Attempt)
					if len(attempts.all()) == 3 {
						return errors.New("once")
					}
					return nil
				}, func(c *keyseq.Config) {
					c.DeadLetterQueue = deadQueue
					c.Retry.MaxRetries = 1
				}).start()
				r.drainedSlowly()
				want := "1 2 3 4 5"
				if r.profile.NoIDs {
					want = "1 1 1 2 1"
				}
				r.want("attempts", attempts.all(), want)
				if s := m.Snapshot(); s.Committed != 1 || s.Retries != 1 {
					r.Errorf("%d committed, %d failures; want one each", s.Committed, s.Retries)
				}
			})
		})
	}
}

// T26: where a message that comes again is not known again, a policy that outlasts MaxHold would never end: Start says so.
func TestT26_RetriesThatOutlastMaxHoldAreRefused(t *testing.T) {
	minute := keyseq.FixedBackoff(time.Minute)
	for name, x := range map[string]struct {
		profile memory.Profile
		hold    time.Duration
		retry   keyseq.RetryPolicy
		refused bool
	}{
		"too many":                {memory.LikeRabbitMQ(), 0, keyseq.RetryPolicy{MaxRetries: 16, Backoff: minute}, true},
		"just as many as fit":     {memory.LikeRabbitMQ(), 0, keyseq.RetryPolicy{MaxRetries: 15, Backoff: minute}, false},
		"far too many":            {memory.LikeRabbitMQ(), 0, keyseq.RetryPolicy{MaxRetries: math.MaxInt, Backoff: keyseq.FixedBackoff(time.Second)}, true},
		"without pauses":          {memory.LikeRabbitMQ(), 0, keyseq.RetryPolicy{MaxRetries: math.MaxInt, Backoff: keyseq.FixedBackoff(-time.Hour)}, false},
		"a shorter MaxHold":       {memory.LikeRabbitMQ(), 5 * time.Minute, keyseq.RetryPolicy{MaxRetries: 6, Backoff: minute}, true},
		"the default":             {memory.LikeRabbitMQ(), 0, keyseq.RetryPolicy{MaxRetries: 16, Backoff: keyseq.ExponentialBackoff(time.Second, time.Minute)}, false},
		"the default, long pause": {memory.LikeRabbitMQ(), 0, keyseq.RetryPolicy{MaxRetries: 16, Backoff: keyseq.ExponentialBackoff(time.Second, 5*time.Minute)}, true},
		"for ever":                {memory.LikeRabbitMQ(), 0, keyseq.RetryPolicy{MaxRetries: keyseq.Unlimited, Backoff: minute}, false},
		"held in the end":         {memory.LikeRabbitMQ(), 0, keyseq.RetryPolicy{MaxRetries: 16, Backoff: minute, OnExhausted: keyseq.ActionHold}, false},
		"no dead-letter queue":    {memory.LikeRabbitMQ(), 0, keyseq.RetryPolicy{MaxRetries: 16, Backoff: minute}, false},
		"discarded":               {memory.LikeRabbitMQ(), 0, keyseq.RetryPolicy{MaxRetries: 16, Backoff: minute, OnExhausted: keyseq.ActionDiscard}, true},
		"stable IDs":              {memory.LikeIBMMQ(), 5 * time.Minute, keyseq.RetryPolicy{MaxRetries: 16, Backoff: minute}, false},
		"no MaxHold":              {memory.LikeIBMMQ(), 0, keyseq.RetryPolicy{MaxRetries: 1000, Backoff: minute}, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.unjudged = true
				m := r.manager(quick, func(c *keyseq.Config) {
					c.Retry, c.MaxHold, c.TaskTimeout = x.retry, x.hold, time.Minute
					if name != "no dead-letter queue" && name != "discarded" {
						c.DeadLetterQueue = deadQueue
					}
				})
				err := m.Start(r.Context())
				var field *keyseq.ConfigError
				switch {
				case !x.refused && err != nil:
					r.Errorf("Start: %v", err)
				case x.refused && (!errors.Is(err, jms.ErrConfig) || !errors.As(err, &field) || field.Field != "Retry"):
					r.Errorf("Start: %v, want a ConfigError of Retry", err)
				}
			}, x.profile)
		})
	}
}

// What Start has accepted ends no run at a reconnect, whatever a Backoff with jitter draws then.
func TestT26_TheLuckOfAReconnectEndsNoRun(t *testing.T) {
	bubble(t, func(r *rig) {
		r.send("K", 1)
		pause := time.Second
		m := r.manager(quick, func(c *keyseq.Config) {
			c.Retry.Backoff = func(int) (d time.Duration) { r.locked(func() { d = pause }); return d }
		}).start()
		r.drainedSlowly()
		r.locked(func() { pause = time.Hour })
		r.losing("break", func() { must(r.broker.Break(inQueue, memory.Loss{})) })
		r.send("K", 2)
		r.drainedSlowly()
		if err := m.Err(); err != nil || m.State() != keyseq.StateActive {
			r.Errorf("%v: %v, want a run that goes on", m.State(), err)
		}
	}, memory.LikeRabbitMQ())
}

// G8, B6: what the broker rolls back, or loses, whenever it is tried is not tried as fast as it goes: its key waits longer and longer, as a reconnect would, and the
// other keys go on. When the broker is well again it is settled.
func TestG8_WhatNeverSettlesIsNotHammered(t *testing.T) {
	for name, x := range map[string]struct {
		kind memory.CallKind
		err  error
		task error
	}{
		"commits rolled back":      {memory.CallCommit, jms.ErrRolledBack, nil},
		"commits in doubt":         {memory.CallCommit, jms.ErrCommitUnknown, nil},
		"commits lost":             {memory.CallCommit, jms.ErrSessionLost, nil},
		"dead letters rolled back": {memory.CallCommit, jms.ErrRolledBack, keyseq.DeadLetter(errors.New("bad"))},
		"Receives lost":            {memory.CallReceive, jms.ErrSessionLost, nil},
	} {
		for _, p := range []memory.Profile{{Name: "plain"}, memory.LikeIBMMQ()} {
			t.Run(name+"/"+p.Name, func(t *testing.T) {
				bubble(t, func(r *rig) {
					r.send("K", 1, 2)
					tries, well := 0, false
					r.hook(func(c memory.Call) error {
						if well || c.Kind != x.kind || c.After || c.Kind == memory.CallCommit && string(c.Message.Body) != "K.1" {
							return nil
						}
						tries++
						r.lossNow(name)
						if tries > 10_000 {
							r.Error("it is tried as fast as it goes")
							well = true
						}
						return x.err
					})
					m := r.manager(func(_ context.Context, d *keyseq.Delivery) error {
						if string(d.Body) == "K.1" {
							return x.task
						}
						return nil
					}, deadLetters, func(c *keyseq.Config) { c.Reconnect = keyseq.ExponentialBackoff(100*time.Millisecond, 30*time.Second) }).start()
					time.Sleep(time.Minute)
					for n := range 100 {
						r.send("L", n)
					}
					time.Sleep(10 * time.Minute)
					synctest.Wait()
					r.locked(func() {
						if tries < 5 || tries > 100 {
							r.Errorf("%d tries in 11 minutes, want 5 to 100", tries)
						}
						well = true
					})
					if s := m.Snapshot(); x.kind == memory.CallCommit && s.Committed != 100 {
						r.Errorf("%d messages of the other key are settled, want all 100", s.Committed)
					}
					r.drainedSlowly()
				}, p)
			})
		}
	}
}
