package keyseq_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/memory"
)

// unreadable is a provider that cannot read the property acct of some deliveries.
type unreadable struct {
	jms.ConnectionFactory
	mu    sync.Mutex
	times map[string]int // of a body, still to come
}

func (f *unreadable) Connect(ctx context.Context, sub jms.Subscription) (jms.Connection, error) {
	c, err := f.ConnectionFactory.Connect(ctx, sub)
	if err != nil {
		return nil, err
	}
	return unreadableConnection{c, f}, nil
}

type unreadableConnection struct {
	jms.Connection
	f *unreadable
}

func (c unreadableConnection) OpenSession(ctx context.Context) (jms.Session, error) {
	s, err := c.Connection.OpenSession(ctx)
	if err != nil {
		return nil, err
	}
	return unreadableSession{s, c.f}, nil
}

type unreadableSession struct {
	jms.Session
	f *unreadable
}

func (s unreadableSession) Receive(ctx context.Context) (*jms.Message, error) {
	m, err := s.Session.Receive(ctx)
	if err != nil {
		return nil, err
	}
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	if s.f.times[string(m.Body)] == 0 {
		return m, nil
	}
	s.f.times[string(m.Body)]--
	other := *m
	other.Properties = maps.Clone(m.Properties)
	other.Properties["acct"] = fmt.Errorf("code 2469: %w", jms.ErrUnreadable)
	return &other, nil
}

// byProperty runs a manager that takes its keys from the property acct, on a queue of bodies whose first letters they are.
func (r *rig) byProperty(j *journal, times map[string]int, bodies []string, configure ...func(*keyseq.Config)) *subject {
	r.Helper()
	r.unjudged = true // its record goes by bodies
	for _, body := range bodies {
		must(r.broker.Send(keyseq.Outgoing{Queue: inQueue, Body: []byte(body), Properties: map[string]any{"acct": body[:1]}}))
	}
	task := func(_ context.Context, d *keyseq.Delivery) error {
		j.add("%s", d.Body)
		time.Sleep(time.Second)
		return nil
	}
	settings := func(c *keyseq.Config) { c.MaxInFlight, c.CallTimeout = 50, 5*time.Second }
	m := must(keyseq.NewSequenceManager(inQueue, &unreadable{ConnectionFactory: r.factory, times: times}, keyseq.ListenerFuncs{Task: task}, keyseq.KeyFromProperty("acct"),
		append([]func(*keyseq.Config){settings}, configure...)...))
	s := &subject{SequenceManager: m, rig: r, name: "A"}
	r.managers = append(r.managers, s)
	return s
}

// H9: a property that cannot be read is not one that is absent: the message is received anew before anything later, and its key keeps its order.
func TestH09_AMessageThatCannotBeReadIsReceivedAnew(t *testing.T) {
	for _, p := range []memory.Profile{{Name: "plain"}, {Name: "no IDs", NoIDs: true}, lateReturn(), memory.LikeIBMMQ()} {
		t.Run(p.Name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				var j journal
				bodies := []string{"K1", "K2", "L1", "K3", "L2", "K4", "K5", "K6"}
				m := r.byProperty(&j, map[string]int{"K1": 1, "K2": 3, "L1": 1, "K4": 2, "K5": 1, "K6": 2}, bodies, deadLetters).start()
				r.slowly("all is settled", func() bool { return r.broker.Depth(inQueue) == 0 })
				var k []string
				for _, body := range j.all() {
					if body[0] == 'K' {
						k = append(k, body)
					}
				}
				r.want("K", k, "K1 K2 K3 K4 K5 K6")
				if dead := r.bodies(deadQueue); len(dead) != 0 {
					r.Errorf("given up, though they could be read in the end: %v", dead)
				}
				if s := m.Snapshot(); s.Retries != 0 {
					r.Errorf("%d failed attempts", s.Retries)
				}
			}, p)
		})
	}
}

// H9: what can never be read is poison, and neither handled without its key nor in front of the others for ever.
func TestH09_WhatCanNeverBeReadIsPoison(t *testing.T) {
	profiles(t, func(r *rig) {
		var j journal
		r.byProperty(&j, map[string]int{"K2": 1000}, []string{"K1", "K2", "K3"}, deadLetters).start()
		r.drainedSlowly()
		r.want("K", j.all(), "K1 K3")
		dead := must(r.broker.Browse(deadQueue))
		if len(dead) != 1 || string(dead[0].Body) != "K2" || !strings.Contains(fmt.Sprint(dead[0].Properties["keyseq_reason"]), "2469") {
			r.Errorf("dead letters: %+v", dead)
		}
	})
	bubble(t, func(r *rig) { // nowhere to put it
		var j journal
		m := r.byProperty(&j, map[string]int{"K2": 1000}, []string{"K1", "K2", "K3"})
		if err := m.Run(r.Context()); !errors.Is(err, jms.ErrUnreadable) {
			r.Errorf("Run: %v, want ErrUnreadable", err)
		}
		if left := strings.Join(r.bodies(inQueue), " "); !strings.HasSuffix(left, "K2 K3") { // K1 may not have begun
			r.Errorf("left: %s", left)
		}
	})
}

// H9: giving such a message back fails, or does not return for minutes: what comes after it waits.
func TestH09_GivingBackWhatCannotBeReadFails(t *testing.T) {
	for _, p := range []memory.Profile{{Name: "plain"}, lateReturn(), memory.LikeIBMMQ()} {
		for name, failure := range map[string]error{"lost": jms.ErrSessionLost, "connection": jms.ErrConnectionLost, "unknown": errors.New("code 2195"), "late": nil, "late and lost": jms.ErrSessionLost} {
			t.Run(p.Name+"/"+name, func(t *testing.T) {
				bubble(t, func(r *rig) {
					failed := false
					r.broker.SetHook(func(_ context.Context, c memory.Call) error {
						if c.Kind != memory.CallRollback || c.After || failed {
							return nil
						}
						failed = true
						if strings.HasPrefix(name, "late") {
							time.Sleep(3 * time.Minute)
						}
						return failure
					})
					var j, stuck journal
					r.byProperty(&j, map[string]int{"K2": 1}, []string{"K1", "K2", "K3", "K4"}, deadLetters, func(c *keyseq.Config) {
						c.Events = append(c.Events, keyseq.Events{Stuck: func(k keyseq.KeyReport) { stuck.add("%s", k.Reason) }})
					}).start()
					r.drainedSlowly()
					hung := ""
					if strings.HasPrefix(name, "late") {
						hung = "rollback does not return: its connection is closed"
					}
					r.want("Stuck", stuck.all(), hung)
					r.want("K", slices.Compact(j.all()), "K1 K2 K3 K4") // K1 may come again with its connection
					time.Sleep(4 * time.Minute)
				}, p)
			})
		}
	}
}
