package faulty_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/faulty"
)

func TestDelay(t *testing.T) {
	for _, after := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := newBroker(t)
			send(t, b, "1")
			rule := faulty.On(faulty.Receive).Delay(time.Minute)
			if after {
				rule = rule.After()
			}
			f := faulty.New(b, rule)
			s := open(t, connect(t, f))
			start := time.Now()
			time.AfterFunc(time.Second, func() {
				if got := ready(t, b); (got == "") != after {
					t.Errorf("after %t: ready %q", after, got)
				}
			})
			receiveOn(t, s, "1")
			if since := time.Since(start); since != time.Minute {
				t.Fatalf("received after %v", since)
			}
			if es := f.Events(); len(es) != 1 || es[0].Err != nil || es[0].Loss != faulty.NothingLost || !es[0].Time.Equal(start) {
				t.Fatalf("%v", es)
			}
		})
	}
}

// TestHangIgnoresTheContext and goes on when it is released: the effect comes late, long after the caller gave up.
func TestHangIgnoresTheContext(t *testing.T) {
	for _, after := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := newBroker(t)
			send(t, b, "1")
			rule := faulty.On(faulty.Commit).Hang()
			if after {
				rule = rule.After()
			}
			f := faulty.New(b, rule.Nth(1))
			s := receive(t, connect(t, f), "1")
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			got := make(chan error, 1)
			go func() { got <- s.Commit(context.WithoutCancel(ctx)) }()
			<-ctx.Done()
			synctest.Wait()
			if done := b.Depth(queue) == 0; done != after {
				t.Fatalf("after %t: done %t", after, done)
			}
			select {
			case err := <-got:
				t.Fatal("returned with its context: ", err)
			default:
			}
			f.Release()
			if err := <-got; err != nil || b.Depth(queue) != 0 {
				t.Fatalf("%v, depth %d", err, b.Depth(queue))
			}
			f.Add(faulty.On(faulty.Commit).Hang()) // a later one hangs again
			go func() { got <- s.Commit(t.Context()) }()
			synctest.Wait()
			select {
			case err := <-got:
				t.Fatal("did not hang again: ", err)
			default:
			}
			f.Release()
			if err := <-got; err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestClosingTheConnectionEndsWhatHangs(t *testing.T) {
	for _, c := range []struct {
		rule faulty.Rule
		want []error
		left string
	}{
		{faulty.On(faulty.Commit).Hang(), []error{jms.ErrConnectionLost}, "1"},
		{faulty.On(faulty.Commit).Delay(time.Hour).Return(jms.ErrBusy), []error{jms.ErrConnectionLost}, "1"},
		{faulty.On(faulty.Commit).Delay(time.Second).Hang(), []error{jms.ErrConnectionLost}, "1"},
		{faulty.On(faulty.Commit).After().Hang(), []error{jms.ErrConnectionLost, jms.ErrCommitUnknown}, ""},
		{faulty.On(faulty.Rollback).Hang(), []error{jms.ErrConnectionLost}, "1"},
	} {
		t.Run(c.rule.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBroker(t)
				send(t, b, "1")
				f := faulty.New(b, c.rule)
				conn := connect(t, f)
				s := receive(t, conn, "1")
				time.AfterFunc(time.Minute, func() { _ = conn.Close(context.Background()) })
				start := time.Now()
				var err error
				if strings.Contains(c.rule.String(), "Rollback") {
					err = s.Rollback(t.Context())
				} else {
					err = s.Commit(t.Context())
				}
				wantErr(t, err, c.want...)
				if since := time.Since(start); since != time.Minute {
					t.Fatalf("ended after %v", since)
				}
				if got := ready(t, b); got != c.left {
					t.Fatalf("ready %q, want %q", got, c.left)
				}
				if es := f.Events(); len(es) != 1 {
					t.Fatalf("%v", es)
				}
			})
		})
	}
}
