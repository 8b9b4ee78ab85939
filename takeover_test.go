package keyseq_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/memory"
)

// single is the queue of these tests: one instance reads it, the others stand by.
var single = memory.Queue{Name: inQueue, SingleActiveConsumer: true}

// elections are the brokers that know who is active: at one the role goes over with the messages, at the other before them.
func elections(t *testing.T, test func(r *rig)) {
	t.Helper()
	early := lateReturn()
	early.Name, early.RoleFirst = "role first", true
	for _, p := range []memory.Profile{{Name: "plain"}, early, memory.LikeIBMMQ()} {
		t.Run(p.Name, func(t *testing.T) { bubble(t, test, p, single) })
	}
}

// electionsAndPush are all kinds of brokers with a single active consumer.
func electionsAndPush(t *testing.T, test func(r *rig)) {
	t.Helper()
	elections(t, test)
	for _, p := range []memory.Profile{memory.LikeRabbitMQ(), memory.LikeQuorum()} {
		t.Run(p.Name, func(t *testing.T) { bubble(t, test, p, single) })
	}
}

// standingBy makes an instance of a group.
func (r *rig) standingBy(name string, takeover time.Duration, task taskFunc, configure ...func(*keyseq.Config)) *subject {
	r.Helper()
	r.audit.Takeover(name, takeover)
	return r.instance(name, task, append([]func(*keyseq.Config){func(c *keyseq.Config) {
		c.SingleActiveConsumer, c.TakeoverDelay = true, takeover
	}}, configure...)...)
}

// reader is the connection of an instance.
func (r *rig) reader(client string) *memory.Reader {
	r.Helper()
	for _, c := range must(r.broker.Readers(inQueue)) {
		if c.Client() == client && c.Alive() {
			return c
		}
	}
	r.Fatalf("%s is not connected", client)
	return nil
}

// moments notes when each task began.
type moments struct {
	mu sync.Mutex
	at map[string]time.Time // the first attempt of instance and message
}

func (m *moments) task(instance string, task taskFunc) taskFunc {
	return func(ctx context.Context, d *keyseq.Delivery) error {
		m.mu.Lock()
		if m.at == nil {
			m.at = map[string]time.Time{}
		}
		if id := fmt.Sprintf("%s %s", instance, d.Body); m.at[id].IsZero() {
			m.at[id] = time.Now()
		}
		m.mu.Unlock()
		return task(ctx, d)
	}
}

func (m *moments) of(instance, body string) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.at[instance+" "+body]
}

// F: a Shutdown in which a message is lost keeps the role until the broker has that message back.
func TestCounterexampleF_TheRoleIsReleasedAfterTheWait(t *testing.T) {
	for name, end := range map[string]func(*subject) error{
		"Stop":     func(s *subject) error { return s.stop(time.Minute) },
		"Shutdown": func(s *subject) error { return s.shutdown(time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			elections(t, func(r *rig) {
				var when moments
				r.send("K", 1)
				r.failCommit("K.1", 1, jms.ErrSessionLost, nil)
				a := r.standingBy("A", 0, when.task("A", sleepy(10*time.Second))).start()
				r.slowly("A works", func() bool { return !when.of("A", "K.1").IsZero() })
				b := r.standingBy("B", 0, when.task("B", quick))
				go func() { _ = b.Run(context.Background()) }()
				r.send("K", 2)
				if err := end(a); err != nil {
					r.Fatal(err)
				}
				if kept := time.Since(when.of("A", "K.1")); kept < 10*time.Second+r.profile.ReturnDelay {
					r.Errorf("A has given up its role %v after the loss, while its message was locked", kept-10*time.Second)
				}
				r.drainedSlowly()
				if waited := when.of("B", "K.1").Sub(when.of("A", "K.1")); waited < 10*time.Second+r.profile.ReturnDelay {
					r.Errorf("B began K.1 after %v", waited)
				}
			})
		})
	}
}

// G: an instance that has lost its role and whose sessions live on closes them when it notices: what its tasks return then settles nothing.
func TestCounterexampleG_ALostRoleClosesTheSessionsOfRunningTasks(t *testing.T) {
	elections(t, func(r *rig) {
		r.send("K", 1, 2)
		const notice = 5 * time.Second
		late := make(chan struct{})
		a := r.standingBy("A", 0, func(_ context.Context, d *keyseq.Delivery) error {
			<-late // deaf to its context
			return d.Send(context.Background(), keyseq.Outgoing{Queue: outQueue, Body: []byte("A " + string(d.Body))})
		}).start()
		r.slowly("A works", func() bool { return a.Snapshot().Running == 1 })
		b := r.standingBy("B", notice+20*time.Second, func(ctx context.Context, d *keyseq.Delivery) error {
			return d.Send(ctx, keyseq.Outgoing{Queue: outQueue, Body: []byte("B " + string(d.Body))})
		})
		go func() { _ = b.Run(context.Background()) }()
		time.Sleep(time.Second)
		r.unjudged = true // two at once, as G2 says of a task that does not end within TakeoverDelay
		r.reader("A").LoseRole(notice)
		r.drainedSlowly()
		close(late)
		time.Sleep(time.Minute)
		r.want("results", r.bodies(outQueue), "B K.1 B K.2")
	})
}

// H, H5: a process that starts reads first when what a dead one held is back, also what its last Receive took after its death.
func TestCounterexampleH_TheFirstReadWaitsForWhatADeadProcessHeld(t *testing.T) {
	for _, p := range []memory.Profile{lateReturn(), memory.LikeIBMMQ(), memory.LikeRabbitMQ(), memory.LikeQuorum()} {
		t.Run(p.Name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.send("K", 1)
				c := must(r.broker.Connect(r.Context(), jms.Subscription{Queue: inQueue, Client: "dead"}))
				must(must(c.OpenSession(r.Context())).Receive(r.Context()))
				go func() { // its last Receive
					_, _ = must(c.OpenSession(context.Background())).Receive(context.Background())
				}()
				time.Sleep(time.Millisecond)
				must(r.broker.Break(inQueue, memory.Loss{}))
				r.send("K", 2, 3)
				began := time.Now()
				var when moments
				r.manager(when.task("A", quick)).start()
				r.drainedSlowly()
				if waited := when.of("A", "K.1").Sub(began); waited < p.ReturnDelay-time.Millisecond {
					r.Errorf("the first task began after %v", waited)
				}
			}, p)
		})
	}
}

// H6: two instances never run a key at once if a task ends within TakeoverDelay after its context has ended.
func TestH06_TasksThatEndInTimeNeverOverlapWithTheNextInstance(t *testing.T) {
	electionsAndPush(t, func(r *rig) {
		r.interleaved(10, 20)
		r.verdict.Incomplete = false
		task := func(ctx context.Context, d *keyseq.Delivery) error {
			timer := time.NewTimer(5 * time.Second)
			defer timer.Stop()
			select {
			case <-timer.C:
				return nil
			case <-ctx.Done():
				time.Sleep(15 * time.Second) // it notices late, but in time
				return ctx.Err()
			}
		}
		for _, name := range []string{"A", "B", "C"} {
			m := r.standingBy(name, 20*time.Second, task)
			go func() { _ = m.Run(context.Background()) }()
			time.Sleep(time.Second)
		}
		for range 5 {
			time.Sleep(47*time.Second + 300*time.Millisecond) // not in the moment in which tasks end
			loss := r.audit.Loss("", "role lost", 0)
			for _, c := range must(r.broker.Readers(inQueue)) {
				if c.Active() && c.Alive() {
					if r.profile.Prefetch > 0 {
						c.Break(memory.Loss{Broker: memory.AtOnce})
					} else {
						c.LoseRole(0)
					}
				}
			}
			loss.Done()
		}
		r.drainedSlowly()
	})
}

// L, H6: an instance that was frozen while another took over cannot be stopped from here; a store that remembers the highest Epoch of a key refuses it.
func TestCounterexampleL_AFrozenInstanceIsRefusedByItsEpoch(t *testing.T) {
	elections(t, func(r *rig) {
		r.unjudged = true
		r.send("K", 1, 2, 3)
		var mu sync.Mutex
		var highest uint64
		var written []string
		write := func(d *keyseq.Delivery) error {
			mu.Lock()
			defer mu.Unlock()
			if d.Epoch < highest {
				return errors.New("a later instance has written")
			}
			highest = d.Epoch
			written = append(written, string(d.Body))
			return nil
		}
		thaw := make(chan struct{})
		frozen := true
		a := r.standingBy("A", 0, func(_ context.Context, d *keyseq.Delivery) error {
			if frozen {
				frozen = false
				<-thaw
			}
			return write(d)
		}).start()
		r.slowly("A works", func() bool { return a.Snapshot().Running == 1 })
		b := r.standingBy("B", time.Minute, func(_ context.Context, d *keyseq.Delivery) error { return write(d) })
		go func() { _ = b.Run(context.Background()) }()
		time.Sleep(time.Second)
		r.reader("A").LoseRole(0)
		r.drainedSlowly()
		close(thaw)
		time.Sleep(time.Minute)
		r.want("written", written, "K.1 K.2 K.3")
	})
}

// H5: a rolling deploy waits neither for TakeoverDelay nor for the return delay when the instance before has ended in order, and for both when it has not.
func TestH05_AHandoverInOrderDoesNotWait(t *testing.T) {
	elections(t, func(r *rig) {
		var when moments
		const takeover = time.Minute
		r.send("K", 1)
		a := r.standingBy("A", takeover, when.task("A", quick)).start()
		r.drainedSlowly()
		for _, next := range []string{"B", "C", "D"} {
			b := r.standingBy(next, takeover, when.task(next, quick))
			go func() { _ = b.Run(context.Background()) }()
			time.Sleep(time.Second)
			if b.State() != keyseq.StateStandby {
				r.Fatalf("%s is %v", next, b.State())
			}
			if err := a.shutdown(time.Minute); err != nil {
				r.Fatal(err)
			}
			began := time.Now()
			r.send("K", int(next[0]))
			r.drainedSlowly()
			if waited := time.Since(began); waited > time.Second {
				r.Errorf("%s began after %v, though all was given back", next, waited)
			}
			a = b
		}
		b := r.standingBy("E", takeover, when.task("E", quick))
		go func() { _ = b.Run(context.Background()) }()
		time.Sleep(time.Second)
		loss := r.audit.Loss("", "role lost", 0)
		r.reader("D").LoseRole(0)
		loss.Done()
		began := time.Now()
		r.send("K", 200)
		r.drainedSlowly()
		if waited := time.Since(began); waited < takeover {
			r.Errorf("E began after %v, though nobody knows what tasks of D still run", waited)
		}
	})
}

// H5: an instance that leaves while it waits for the tasks of its predecessor does not make the next one believe that all has ended.
func TestH05_AnInstanceThatLeavesWhileItWaitsVouchesForNobody(t *testing.T) {
	elections(t, func(r *rig) {
		r.send("K", 1, 2)
		deaf := func(ctx context.Context, _ *keyseq.Delivery) error {
			<-ctx.Done()
			time.Sleep(50 * time.Second)
			return ctx.Err()
		}
		a := r.standingBy("A", 0, deaf).start()
		r.slowly("A works", func() bool { return a.Snapshot().Running == 1 })
		for _, name := range []string{"B", "C"} {
			m := r.standingBy(name, time.Minute, sleepy(time.Second))
			go func() { _ = m.Run(context.Background()) }()
			time.Sleep(time.Second)
		}
		loss := r.audit.Loss("", "role lost", 0)
		r.reader("A").LoseRole(0)
		loss.Done()
		time.Sleep(5 * time.Second)
		if err := r.managers[1].shutdown(time.Minute); err != nil {
			r.Fatal(err)
		}
		r.drainedSlowly()
	})
}
