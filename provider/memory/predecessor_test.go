package memory_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/memory"
)

// TestHowThePredecessorEnded: only a client that closed its connection while it held nothing has ended in order. One that left
// before it had opened a session changes nothing of that: it may have been waiting for its own predecessor.
func TestHowThePredecessorEnded(t *testing.T) {
	closed := func(_ *memory.Broker, c jms.Connection) { _ = c.Close(context.Background()) }
	broken := func(l memory.Loss) func(*memory.Broker, jms.Connection) {
		return func(b *memory.Broker, _ jms.Connection) { oldest(b).Break(l) }
	}
	held := func(t *testing.T, a jms.Connection) { receive(t, a, "1") }
	idle := func(t *testing.T, a jms.Connection) { open(t, a) }
	for name, c := range map[string]struct {
		work func(t *testing.T, a jms.Connection)
		end  func(b *memory.Broker, a jms.Connection)
		want bool
	}{
		"closed, all settled": {func(t *testing.T, a jms.Connection) { commit(t, receive(t, a, "1")) }, closed, true},
		"closed, one given back": {func(t *testing.T, a jms.Connection) {
			if err := receive(t, a, "1").Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
		}, closed, true},
		"closed, tasks run": {idle, func(b *memory.Broker, a jms.Connection) {
			a.(jms.Predecessor).EndsInDisorder()
			closed(b, a)
		}, false},
		"closed, one held":   {held, closed, false},
		"broken, one held":   {held, broken(memory.Loss{}), false},
		"broken, holds none": {idle, broken(memory.Loss{}), false},
		"broken, then closed": {idle, func(b *memory.Broker, a jms.Connection) {
			oldest(b).Break(memory.Loss{Broker: time.Minute})
			_ = a.Close(context.Background())
		}, false},
		"role lost": {idle, func(b *memory.Broker, _ jms.Connection) { oldest(b).LoseRole(0) }, false},
	} {
		for _, p := range []memory.Profile{{Name: "plain"}, memory.LikeIBMMQ()} {
			t.Run(name+"/"+p.Name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBroker(t, sac, p)
					ended := func(who jms.Connection) bool {
						t.Helper()
						awaitActive(t, who)
						yes, err := who.(jms.Predecessor).EndedInOrder(t.Context())
						if err != nil {
							t.Fatal(err)
						}
						return yes
					}
					send(t, b, "1", "2")
					one, two, three, four := connect(t, b, "one"), connect(t, b, "two"), connect(t, b, "three"), connect(t, b, "four")
					if !ended(one) {
						t.Error("there was none before the first: want true")
					}
					c.work(t, one)
					c.end(b, one)
					if got := ended(two); got != c.want {
						t.Errorf("ended in order: %t, want %t", got, c.want)
					}
					closed(b, two) // it has not worked
					if got := ended(three); got != c.want {
						t.Errorf("after one that never opened a session: %t, want %t", got, c.want)
					}
					open(t, three)
					closed(b, three)
					if !ended(four) {
						t.Error("the one before has worked and closed in order: want true")
					}
				})
			})
		}
	}
}

// oldest is the connection that was made first.
func oldest(b *memory.Broker) *memory.Reader {
	rs, err := b.Readers(queue)
	if err != nil {
		panic(err)
	}
	return rs[0]
}
