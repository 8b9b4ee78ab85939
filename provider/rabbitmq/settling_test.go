package rabbitmq_test

import (
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/rabbitmq"
	"github.com/keyseq/keyseq/provider/rabbitmq/internal/brokertest"
)

// R1.03 for crowds: a thousand messages are committed from everywhere at once, every seventh one is held, and then the connection is closed, or cut while the
// commits go on. What was not committed comes again, all of it; after a close nothing else does.
func TestCrowdsOfCommitsSettleWhatTheyCommit(t *testing.T) {
	brokertest.OnKindsAtOnce(t, func(t *testing.T, kind string) {
		for _, cut := range []bool{false, true} {
			t.Run("cut="+strconv.FormatBool(cut), func(t *testing.T) {
				b := brokertest.New(t)
				q := b.Queue(brokertest.Single(kind))
				const total, committers = 1000, 40
				b.Numbered(q, total)
				f, proxy := throughProxy(b, 5*time.Second)
				c := b.Connect(f, jms.Subscription{Queue: q})
				sessions, _ := b.Take(c, total)
				var outcome [total]error // nil: settled; errHeld: never committed
				errHeld := errors.New("held")
				var turn atomic.Int64
				order := rand.Perm(total) // a part in order, as tasks of one length end, the others as they come
				slices.Sort(order[:total/4])
				var commits sync.WaitGroup
				for range committers {
					commits.Go(func() {
						for {
							n := turn.Add(1) - 1
							switch {
							case n >= total:
								return
							case n == total/2 && cut:
								proxy.Cut()
							}
							i := order[n]
							if i%7 == 5 { // the last one too
								outcome[i] = errHeld
							} else {
								outcome[i] = sessions[i].Commit(t.Context())
							}
						}
					})
				}
				commits.Wait()
				if err := c.Close(t.Context()); err != nil && !cut {
					t.Fatal(err)
				}
				back := map[int]bool{}
				again := b.Connect(rabbitmq.Factory{}, jms.Subscription{Queue: q})
				for last := 0; last < total; { // the last one is held
					n, err := strconv.Atoi(string(b.Receive(b.Session(again)).Body))
					if err != nil || n <= last {
						t.Fatalf("message %d came after message %d (%v)", n, last, err)
					}
					back[n-1], last = true, n
				}
				failed := 0
				for i, err := range outcome {
					switch {
					case errors.Is(err, errHeld) && !back[i]:
						t.Errorf("message %d is lost: it was not committed and did not come again", i+1)
					case err == nil && back[i] && !cut:
						t.Errorf("message %d came again, though its Commit succeeded", i+1)
					case err != nil && !errors.Is(err, errHeld):
						failed++
						if !cut || !errors.Is(err, jms.ErrConnectionLost) {
							t.Errorf("Commit of message %d = %v", i+1, err)
						}
					}
				}
				if cut && failed == 0 {
					t.Error("no Commit failed: the connection was cut too late")
				}
			})
		}
	})
}

// Frames that are kept back for one write lie below TLS as whole records.
func TestCrowdsOfCommitsOverTLS(t *testing.T) {
	b := brokertest.New(t)
	q := b.Queue(brokertest.Single("classic"))
	const total = 500
	b.Numbered(q, total)
	front, pool := tlsFront(b)
	u := address(b)
	u.Scheme, u.Host = "amqps", front
	c := b.Connect(rabbitmq.Factory{URL: u.String(), TLS: &tls.Config{RootCAs: pool, ServerName: "broker.test", MinVersion: tls.VersionTLS13}}, jms.Subscription{Queue: q})
	sessions, _ := b.Take(c, total)
	var commits sync.WaitGroup
	for _, s := range sessions[1:] { // the first is held, so each has a frame of its own
		commits.Go(func() {
			if err := s.Commit(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	commits.Wait()
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.Eventually("only the message that was held is back", func() bool { return b.Count(q) == 1 })
}
