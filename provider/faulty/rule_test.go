package faulty_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/faulty"
)

// broken returns which of n commits without a message fail.
func broken(t *testing.T, f *faulty.Factory, n int) []int {
	t.Helper()
	s := open(t, connect(t, f))
	var failed []int
	for i := range n {
		if err := s.Commit(t.Context()); err != nil {
			failed = append(failed, i+1)
		}
	}
	return failed
}

func TestWhichCalls(t *testing.T) {
	commit := faulty.On(faulty.Commit)
	for _, c := range []struct {
		rules []faulty.Rule
		want  []int
	}{
		{nil, nil},
		{[]faulty.Rule{commit}, nil}, // says nothing of what to do
		{[]faulty.Rule{commit.Return(jms.ErrBusy)}, []int{1, 2, 3, 4, 5, 6}},
		{[]faulty.Rule{commit.Nth(3).Return(jms.ErrBusy)}, []int{3}},
		{[]faulty.Rule{commit.Every(2).Return(jms.ErrBusy)}, []int{2, 4, 6}},
		{[]faulty.Rule{commit.Nth(2).Return(jms.ErrBusy), commit.Nth(5).Return(jms.ErrBusy)}, []int{2, 5}},
		{[]faulty.Rule{commit.Nth(2).Delay(1), commit.Every(2).Return(jms.ErrBusy)}, []int{4, 6}}, // the first that matches
		{[]faulty.Rule{faulty.On(faulty.Rollback).Return(jms.ErrBusy)}, nil},
		{[]faulty.Rule{commit.Where(func(e faulty.Event) bool { return e.Client == "me" }).Nth(2).Return(jms.ErrBusy)}, []int{2}},
		{[]faulty.Rule{commit.Where(func(e faulty.Event) bool { return e.Message != nil }).Return(jms.ErrBusy)}, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			if got := broken(t, faulty.New(newBroker(t), c.rules...), 6); !slices.Equal(got, c.want) {
				t.Errorf("%v: broken %v, want %v", c.rules, got, c.want)
			}
		})
	}
}

func TestCallsAreCountedOverConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := faulty.New(newBroker(t), faulty.On(faulty.Commit).Nth(4).Return(jms.ErrBusy))
		if got := broken(t, f, 3); got != nil {
			t.Fatal(got)
		}
		if got := broken(t, f, 3); !slices.Equal(got, []int{1}) {
			t.Fatal(got)
		}
		f.Add(faulty.On(faulty.Commit).Nth(1).Return(jms.ErrBusy)) // counts from now
		if got := broken(t, f, 3); !slices.Equal(got, []int{1}) {
			t.Fatal(got)
		}
		if es := f.Events(); len(es) != 2 || es[0].Number != 4 || es[1].Number != 7 {
			t.Fatalf("%v", es)
		}
	})
}

func TestWrongRules(t *testing.T) {
	f := faulty.New(newBroker(t), faulty.On(99), faulty.On(faulty.Commit).Nth(-1), faulty.On(faulty.Commit).Delay(-1), faulty.On(faulty.Commit).Where(nil))
	_, err := f.Connect(t.Context(), sub())
	wantErr(t, err, jms.ErrConfig)
	if n := strings.Count(err.Error(), "faulty: "); n != 4 {
		t.Errorf("%d problems reported, want 4: %v", n, err)
	}
}

func TestRulesPrintAsGo(t *testing.T) {
	for want, r := range map[string]faulty.Rule{
		"faulty.On(faulty.Commit).Nth(3).After().Return(jms.ErrCommitUnknown)":         faulty.On(faulty.Commit).Nth(3).After().Return(jms.ErrCommitUnknown),
		"faulty.On(faulty.Receive).Every(2).Delay(1500000000) /* 1.5s */":              faulty.On(faulty.Receive).Every(2).Delay(1500 * time.Millisecond),
		"faulty.On(faulty.CloseConnection).Hang()":                                     faulty.On(faulty.CloseConnection).Hang(),
		`faulty.On(faulty.AwaitActive).Where(...).Return(errors.New("x"))`:             faulty.On(faulty.AwaitActive).Where(func(faulty.Event) bool { return true }).Return(errors.New("x")),
		"faulty.On(faulty.Receive).Delay(1) /* 1ns */.Hang().Return(jms.ErrQuiescing)": faulty.On(faulty.Receive).Delay(1).Hang().Return(jms.ErrQuiescing),
		"faulty.On(faulty.OpenSession).Return(jms.ErrBusy)":                            faulty.On(faulty.OpenSession).Return(jms.ErrBusy),
		"faulty.On(faulty.Rollback).Return(jms.ErrSessionLost)":                        faulty.On(faulty.Rollback).Return(jms.ErrSessionLost),
		"faulty.On(faulty.CloseSession).Return(jms.ErrRolledBack)":                     faulty.On(faulty.CloseSession).Return(jms.ErrRolledBack),
		"faulty.On(faulty.Connect).Return(jms.ErrConfig)":                              faulty.On(faulty.Connect).Return(jms.ErrConfig),
		"faulty.On(faulty.Connect).After().Return(jms.ErrConnectionLost)":              faulty.On(faulty.Connect).After().Return(jms.ErrConnectionLost),
		"faulty.On(faulty.Call(-1))":                                                   faulty.On(-1),
	} {
		if got := r.String(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestRandomKeepsItsBudgetAndItsSeed(t *testing.T) {
	budget := faulty.Budget{Fail: 20, LoseReply: 10, Delay: 5, Hang: 3, Within: 50, MaxDelay: time.Minute}
	a, b, c := faulty.Random(1, budget), faulty.Random(1, budget), faulty.Random(2, budget)
	if fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("one seed, two plans:\n%v\n%v", a, b)
	}
	if fmt.Sprint(a) == fmt.Sprint(c) {
		t.Error("two seeds, one plan")
	}
	count := func(part string) (n int) {
		for _, r := range a {
			if strings.Contains(r.String(), part) {
				n++
			}
		}
		return n
	}
	if len(a) != 38 || count("Return") != 30 || count("Delay") != 5 || count("Hang") != 3 || count("Close") != 0 {
		t.Errorf("%v", a)
	}
	for _, r := range faulty.Random(3, faulty.Budget{Fail: 50, LoseReply: 50, Calls: []faulty.Call{faulty.CloseSession}}) {
		if !strings.HasPrefix(r.String(), "faulty.On(faulty.CloseSession)") || !strings.Contains(r.String(), "Return") {
			t.Errorf("%v", r)
		}
	}
}

// TestRandomFaultsLoseNothing reads a queue to its end through random faults: each message is settled once, or its commit was in doubt.
func TestRandomFaultsLoseNothing(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBroker(t)
				const n = 60
				for i := range n {
					send(t, b, fmt.Sprint(i))
				}
				f := faulty.New(b, faulty.Random(seed, faulty.Budget{Fail: 10, LoseReply: 6, Delay: 4, Within: 60})...)
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				for b.Depth(queue) > 0 {
					c, err := f.Connect(ctx, sub())
					if err != nil {
						continue
					}
					drain(ctx, b, c)
					_ = c.Close(ctx)
					if s, err := b.Stats(queue); err != nil || s.Unsettled != 0 {
						t.Fatalf("a closed connection holds messages: %+v, %v\n%v", s, err, f.Events())
					}
				}
				s, err := b.Stats(queue)
				if err != nil || s.Settled != n || b.Depth("OUT") != n {
					t.Fatalf("%+v, %v, OUT %d\n%v", s, err, b.Depth("OUT"), f.Events())
				}
			})
		})
	}
}

// drain handles messages one by one until the connection is lost or the queue is empty.
func drain(ctx context.Context, b interface{ Depth(string) int }, c jms.Connection) {
	for b.Depth(queue) > 0 {
		s, err := c.OpenSession(ctx)
		if errors.Is(err, jms.ErrBusy) {
			continue
		}
		if err != nil {
			return
		}
		if _, err = s.Receive(ctx); err == nil {
			err = s.Commit(ctx, jms.Outgoing{Queue: "OUT"})
		}
		_ = s.Close(ctx) // gives back what is still held
		if errors.Is(err, jms.ErrConnectionLost) {
			return
		}
	}
}
