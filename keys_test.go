package keyseq_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/memory"
)

// soak says whether the sizes of the long runs are wanted.
func soak() bool { return os.Getenv("KEYSEQ_SOAK") != "" }

// R1.05: what the ready-made extractors and a function make of messages, and what is an error.
func TestR1_05_WhereKeysComeFrom(t *testing.T) {
	unreadable := fmt.Errorf("reason 2471: %w", jms.ErrUnreadable)
	byFunc := keyseq.KeyExtractorFunc(func(m *keyseq.Message) (string, error) { return m.ReplyTo, nil })
	for _, c := range []struct {
		name      string
		extractor keyseq.KeyExtractor
		message   keyseq.Message
		key       string
		err       string // in the error; "": none
	}{
		{"property", keyseq.KeyFromProperty("acct"), keyseq.Message{Properties: map[string]any{"acct": "4711"}}, "4711", ""},
		{"property number", keyseq.KeyFromProperty("acct"), keyseq.Message{Properties: map[string]any{"acct": int64(-4711)}}, "-4711", ""},
		{"property float", keyseq.KeyFromProperty("acct"), keyseq.Message{Properties: map[string]any{"acct": 0.1}}, "0.1", ""},
		{"property bool", keyseq.KeyFromProperty("acct"), keyseq.Message{Properties: map[string]any{"acct": true}}, "true", ""},
		{"property bytes", keyseq.KeyFromProperty("acct"), keyseq.Message{Properties: map[string]any{"acct": []byte{0xff, 0}}}, "\xff\x00", ""},
		{"property empty", keyseq.KeyFromProperty("acct"), keyseq.Message{Properties: map[string]any{"acct": ""}}, "", ""},
		{"property missing", keyseq.KeyFromProperty("acct"), keyseq.Message{Properties: map[string]any{"account": "4711"}}, "", `no property "acct"`},
		{"property unreadable", keyseq.KeyFromProperty("acct"), keyseq.Message{Properties: map[string]any{"acct": unreadable}}, "", "2471"},
		{"no properties", keyseq.KeyFromProperty("acct"), keyseq.Message{}, "", "check its name"},
		{"group", keyseq.KeyFromGroupID(), keyseq.Message{GroupID: "g"}, "g", ""},
		{"group missing", keyseq.KeyFromGroupID(), keyseq.Message{}, "", "JMSXGroupID"},
		{"correlation", keyseq.KeyFromCorrelationID(), keyseq.Message{CorrelationID: "c"}, "c", ""},
		{"correlation missing", keyseq.KeyFromCorrelationID(), keyseq.Message{}, "", "correlation ID"},
		{"body", keyseq.KeyFromBodyBefore("."), keyseq.Message{Body: []byte("4711.2.3")}, "4711", ""},
		{"body long separator", keyseq.KeyFromBodyBefore("::"), keyseq.Message{Body: []byte("a:b::c")}, "a:b", ""},
		{"body empty key", keyseq.KeyFromBodyBefore("."), keyseq.Message{Body: []byte(".2")}, "", ""},
		{"body without", keyseq.KeyFromBodyBefore("."), keyseq.Message{Body: []byte("4711")}, "", "no separator"},
		{"json string", keyseq.KeyFromJSON("/order/account"), keyseq.Message{Body: []byte(`{"x":[1,{"y":2}],"order":{"account":"A\u00e9"}}`)}, "Aé", ""},
		{"json number", keyseq.KeyFromJSON("/n"), keyseq.Message{Body: []byte(`{"n":12345678901234567890.10}`)}, "12345678901234567890.10", ""},
		{"json index", keyseq.KeyFromJSON("/a/1"), keyseq.Message{Body: []byte(`{"a":["x","y"]}`)}, "y", ""},
		{"json escapes", keyseq.KeyFromJSON("/a~1b/c~0d"), keyseq.Message{Body: []byte(`{"a/b":{"c~d":"k"}}`)}, "k", ""},
		{"json whole", keyseq.KeyFromJSON(""), keyseq.Message{Body: []byte(`"k"`)}, "k", ""},
		{"json null", keyseq.KeyFromJSON("/a"), keyseq.Message{Body: []byte(`{"a":null}`)}, "", "null"},
		{"json object", keyseq.KeyFromJSON("/a"), keyseq.Message{Body: []byte(`{"a":{}}`)}, "", "object"},
		{"json missing", keyseq.KeyFromJSON("/b"), keyseq.Message{Body: []byte(`{"a":1}`)}, "", `"b"`},
		{"json broken", keyseq.KeyFromJSON("/b"), keyseq.Message{Body: []byte(`{"a":`)}, "", "EOF"},
		{"json none", keyseq.KeyFromJSON("/b"), keyseq.Message{}, "", "EOF"},
		{"func", byFunc, keyseq.Message{ReplyTo: "r"}, "r", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			key, err := c.extractor.ExtractKey(&c.message)
			if key != c.key || c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("got %q, %v; want %q, error with %q", key, err, c.key, c.err)
			}
			if c.name == "property unreadable" && !errors.Is(err, jms.ErrUnreadable) {
				t.Error("an unreadable property must not be taken for an absent one")
			}
		})
	}
}

// R1.06: a key's queue exists as long as the key has work: Snapshot counts the keys, Explain finds each.
func TestR1_06_KeysExistWhileTheyHaveWork(t *testing.T) {
	bubble(t, func(r *rig) {
		r.interleaved(30, 3)
		gates := map[string]chan struct{}{}
		for k := range 30 {
			gates[fmt.Sprint("k", k)] = make(chan struct{})
		}
		m := r.manager(func(_ context.Context, d *keyseq.Delivery) error {
			<-gates[d.Key]
			return nil
		}, func(c *keyseq.Config) { c.Workers = 100 }).start()
		r.until("all are received", func() bool { return m.Snapshot().Received == 90 })
		for live := 30; live > 0; live-- {
			key := fmt.Sprint("k", live-1)
			if n := m.Snapshot().Keys; n != live {
				r.Errorf("%d keys, want %d", n, live)
			}
			if report, ok := m.Explain(key); !ok || report.Held != 3 || report.Attempt != 1 {
				r.Errorf("Explain(%q): %+v, %t; want 3 held, at attempt 1", key, report, ok)
			}
			close(gates[key])
			r.until("the key is gone", func() bool { _, ok := m.Explain(key); return !ok })
		}
		if n := m.Snapshot().Keys; n != 0 {
			r.Errorf("%d keys are left", n)
		}
	})
}

// R1.09, T18: distinct keys once each leave nothing behind: no live key, a flat heap. 10 million with KEYSEQ_SOAK=1.
func TestT18_KeysOnceEachLeaveNothingBehind(t *testing.T) {
	rounds, each := 6, 20_000
	if soak() {
		rounds, each = 100, 100_000
	}
	broker := must(memory.NewBroker(memory.Queue{Name: inQueue}))
	defer broker.Close()
	m, err := keyseq.NewSequenceManager(inQueue, broker, keyseq.ListenerFuncs{Task: quick}, keyseq.KeyFromBodyBefore("."))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	heap := func() uint64 {
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	var first uint64
	out := make([]keyseq.Outgoing, 1000)
	deadline := time.Now().Add(3 * time.Minute)
	if soak() {
		deadline = deadline.Add(time.Hour)
	}
	for round := range rounds {
		for n := 0; n < each; n += len(out) {
			for i := range out {
				out[i] = keyseq.Outgoing{Queue: inQueue, Body: fmt.Appendf(nil, "key-%d-%d.0", round, n+i)}
			}
			must(broker.SendBatch(out))
		}
		for poll := time.NewTicker(time.Millisecond); m.Snapshot().Committed < uint64((round+1)*each) || m.Snapshot().Keys > 0; <-poll.C {
			if time.Now().After(deadline) {
				t.Fatalf("not done in time: %+v", m.Snapshot())
			}
		}
		if now := heap(); round == 0 {
			first = now
		} else if now > first+first/2+4<<20 {
			t.Fatalf("after round %d the heap is %d KiB, after the first it was %d KiB", round+1, now>>10, first>>10)
		}
	}
	s := m.Snapshot()
	if s.Keys != 0 || s.InFlight > 1 || !s.Oldest.IsZero() {
		t.Errorf("keys %d, in flight %d, oldest %v; want none", s.Keys, s.InFlight, s.Oldest)
	}
}

// R1.09, B17: messages of a few keys that arrive just as their queue is being deleted are neither lost nor run beside each other.
func TestR1_09_DeletingAKeysQueueRacesWithArrivals(t *testing.T) {
	bubble(t, func(r *rig) {
		m := r.manager(quick, func(c *keyseq.Config) { c.Workers = 4 }).start()
		var senders sync.WaitGroup
		for k := range 3 {
			senders.Go(func() {
				for n := range 2000 {
					r.send(fmt.Sprint("k", k), n)
					if n%7 == 0 {
						runtime.Gosched()
					}
				}
			})
		}
		senders.Wait()
		r.drained()
		r.until("no key is left", func() bool { return m.Snapshot().Keys == 0 })
	})
}

// B11: a message whose key cannot be extracted is settled by OnKeyError, once, while others go on; it never loops.
func TestB11_AMessageWithoutAKeyIsNoLoop(t *testing.T) {
	for _, c := range []struct {
		name   string
		config func(*keyseq.Config)
		dead   int
		ends   bool
	}{
		{"auto with a dead-letter queue", func(c *keyseq.Config) { c.DeadLetterQueue = deadQueue }, 1, false},
		{"dead letter", func(c *keyseq.Config) { c.DeadLetterQueue, c.OnKeyError = deadQueue, keyseq.ActionDeadLetter }, 1, false},
		{"discard", func(c *keyseq.Config) { c.OnKeyError = keyseq.ActionDiscard }, 0, false},
		{"stop", func(c *keyseq.Config) { c.OnKeyError = keyseq.ActionStop }, 0, true},
		{"auto without", func(*keyseq.Config) {}, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			profiles(t, func(r *rig) {
				r.send("K", 1)
				must(r.broker.Send(keyseq.Outgoing{Queue: inQueue, Body: []byte("poison")}))
				r.send("K", 2)
				m := r.manager(quick, c.config)
				err := m.Start(r.Context())
				if err != nil && !c.ends { // one that ends may do so before Start has returned
					r.Fatal(err)
				}
				if !c.ends {
					r.drained()
					time.Sleep(time.Hour)
					if got := r.bodies(deadQueue); len(got) != c.dead || c.dead == 1 && got[0] != "poison" {
						r.Errorf("dead letters: %v", got)
					}
					if s := m.Snapshot(); s.Received > 4 || s.State != keyseq.StateActive {
						r.Errorf("received %d times, state %v", s.Received, s.State)
					}
					return
				}
				<-m.Done()
				if err := m.Err(); err == nil || !strings.Contains(err.Error(), inQueue) || !strings.Contains(err.Error(), "separator") {
					r.Errorf("Err: %v, want the queue and the reason", err)
				}
				if m.State() != keyseq.StateFailed {
					r.Errorf("state %v, want failed", m.State())
				}
				time.Sleep(time.Minute)
				if left := r.bodies(inQueue); !slices.Contains(left, "poison") || !slices.Contains(left, "K.2") {
					r.Errorf("left %v, want the poison and what is behind it", left)
				}
				r.unjudged = true // the poison is on the queue, and is no message of the audit
			})
		})
	}
}

// B21: an empty key is one lane by default, none, or an error: as configured.
func TestB21_EmptyKeys(t *testing.T) {
	for _, c := range []struct {
		name   string
		on     keyseq.EmptyKey
		atOnce int32
		dead   int
	}{
		{"shared", keyseq.EmptyKeyShared, 1, 0},
		{"unordered", keyseq.EmptyKeyUnordered, 10, 0},
		{"error", keyseq.EmptyKeyError, 0, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			profiles(t, func(r *rig) {
				r.unjudged = c.on != keyseq.EmptyKeyShared
				for n := range 10 {
					r.send("", n)
				}
				var tasks atMost
				r.manager(func(context.Context, *keyseq.Delivery) error {
					tasks.enter()
					defer tasks.leave()
					time.Sleep(time.Second)
					return nil
				}, func(cfg *keyseq.Config) { cfg.OnEmptyKey, cfg.DeadLetterQueue = c.on, deadQueue }).start()
				r.drained()
				if n := tasks.most.Load(); n != c.atOnce {
					r.Errorf("%d at once, want %d", n, c.atOnce)
				}
				if n := len(r.bodies(deadQueue)); n != c.dead {
					r.Errorf("%d dead letters, want %d", n, c.dead)
				}
			})
		})
	}
}

// B22: what a manager tells of its keys goes by the keys that there are, whatever they look like.
func TestB22_KeysOfAnyFormAreReported(t *testing.T) {
	bubble(t, func(r *rig) {
		keys := []string{"7", "Ключ", "a b\n", "\xff\xfe", strings.Repeat("long", 500), "-1", "k//k"}
		for _, k := range keys {
			r.send(k, 1, 2)
		}
		m := r.manager(func(context.Context, *keyseq.Delivery) error { return errors.New("down") }, func(c *keyseq.Config) {
			c.Retry.MaxRetries = keyseq.Unlimited
		}).start()
		time.Sleep(10 * time.Second)
		var told []string
		for _, k := range m.Snapshot().Blocked {
			told = append(told, k.Key)
			if again, ok := m.Explain(k.Key); !ok || again.Held != 2 || again.Err == nil {
				r.Errorf("Explain(%q): %+v, %t", k.Key, again, ok)
			}
		}
		slices.Sort(told)
		slices.Sort(keys)
		if !slices.Equal(told, keys) {
			r.Errorf("blocked: %q, want %q", told, keys)
		}
		if _, ok := m.Explain("0"); ok {
			r.Error("Explain knows a key that never was")
		}
	})
}

// T27: an empty key, an extractor that panics, keys of bytes, and the same key on two queues.
func TestT27_StrangeKeys(t *testing.T) {
	bubble(t, func(r *rig) {
		var order journal
		for n := range 3 {
			for _, k := range []string{"", "\x00\xff", "\x00\xfe", "é", "e\u0301"} {
				r.send(k, n)
			}
		}
		must(r.broker.Send(keyseq.Outgoing{Queue: inQueue, Body: []byte("panic")}))
		m := must(keyseq.NewSequenceManager(inQueue, r.factory, keyseq.ListenerFuncs{Task: func(_ context.Context, d *keyseq.Delivery) error {
			order.add("%s", d.Body)
			return nil
		}}, keyseq.KeyExtractorFunc(func(m *keyseq.Message) (string, error) {
			if string(m.Body) == "panic" {
				panic(errors.New("no key for you"))
			}
			return keyseq.KeyFromBodyBefore(".").ExtractKey(m)
		}), func(c *keyseq.Config) { c.DeadLetterQueue = deadQueue }))
		if err := m.Start(r.Context()); err != nil {
			r.Fatal(err)
		}
		r.drained()
		if err := m.Shutdown(r.Context()); err != nil {
			r.Error(err)
		}
		for _, k := range []string{"", "\x00\xff", "\x00\xfe", "é", "e\u0301"} {
			var mine []string
			for _, b := range order.all() {
				if strings.HasPrefix(b, k+".") {
					mine = append(mine, b)
				}
			}
			if want := []string{k + ".0", k + ".1", k + ".2"}; !slices.Equal(mine, want) {
				r.Errorf("key %q: %q", k, mine)
			}
		}
		dead := must(r.broker.Browse(deadQueue))
		if len(dead) != 1 || !strings.Contains(fmt.Sprint(dead[0].Properties["keyseq_reason"]), "no key for you") {
			r.Errorf("dead letters: %v", dead)
		}
		r.unjudged = true // its tasks are not audited
	})
	bubble(t, func(r *rig) { // the same key on two queues: two managers that know nothing of each other
		for _, q := range []string{inQueue, outQueue} {
			for n := range 5 {
				must(r.broker.Send(keyseq.Outgoing{Queue: q, Body: fmt.Appendf(nil, "K.%d", n)}))
			}
		}
		r.unjudged = true
		var j journal
		for _, q := range []string{inQueue, outQueue} {
			m := must(keyseq.NewSequenceManager(q, r.factory, keyseq.ListenerFuncs{Task: func(_ context.Context, d *keyseq.Delivery) error {
				j.add("%s %s", d.Queue, d.Body)
				time.Sleep(time.Second)
				return nil
			}}, keyseq.KeyFromBodyBefore(".")))
			if err := m.Start(r.Context()); err != nil {
				r.Fatal(err)
			}
			defer func() { _ = m.Shutdown(context.Background()) }()
		}
		began := time.Now()
		r.until("both are done", func() bool { return r.broker.Depth(inQueue)+r.broker.Depth(outQueue) == 0 })
		if d := time.Since(began).Round(time.Second); d != 5*time.Second || len(j.all()) != 10 {
			r.Errorf("%d tasks took %v; want 10 in 5s: the queues side by side", len(j.all()), d)
		}
	})
}
