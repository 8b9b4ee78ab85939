package ibmmq_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/orderaudit"
)

// H18: calls to the queue manager that do not return: workers are free for other keys, it is told, and Shutdown ends in its time.
func TestH18_CommitsThatDoNotReturn(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	const workers = 4
	var j journal
	a := inMemory(func(_ context.Context, d *keyseq.Delivery) error { j.add("%s", d.Body); return nil })
	stuck := make(chan keyseq.KeyReport, 100)
	var bodies []string
	for k := range 3 * workers {
		bodies = append(bodies, fmt.Sprintf("k%d.1", k), fmt.Sprintf("k%d.2", k))
	}
	b.sent(a, bodies...)
	b.hold("MQCMIT", false)
	m := b.manage(b.factory(), a, func(c *keyseq.Config) {
		c.Workers, c.CallTimeout = workers, 300*time.Millisecond
		c.Events = append(c.Events, keyseq.Events{Stuck: func(r keyseq.KeyReport) {
			select {
			case stuck <- r:
			default:
			}
		}})
	})
	b.soon("more commits hang than there are workers", func() bool { return b.held() > workers })
	if r := took(b, "a call is told to be stuck", stuck); !strings.HasPrefix(r.Key, "k") {
		t.Errorf("stuck: %+v", r)
	}
	for _, body := range j.all() {
		if strings.HasSuffix(body, ".2") {
			t.Errorf("%s ran while the commit of its predecessor is under way", body)
		}
	}
	a.record.InstanceStopping(a.instance)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if err := m.Shutdown(ctx); !errors.Is(err, keyseq.ErrDrainTimeout) {
		t.Errorf("Shutdown: %v, want ErrDrainTimeout", err)
	}
	loss := a.record.Loss("", "calls return late", 0)
	b.release()
	took(b, "the run has ended", m.Done())
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.soon("everything is handled", func() bool { return b.available(b.queue)+b.unsettled() == 0 })
	loss.Done()
	b.shutdown(m, a)
	judge(t, a.record.History(), orderaudit.Options{})
}

// H18: an attempt that ends because its connection is lost does not count: however often that happens, the message is at its first attempt, while the
// queue manager counts each delivery.
func TestH18_InterruptedAttemptsDoNotCount(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	var mu sync.Mutex
	var attempts, deliveries []int
	a := inMemory(func(ctx context.Context, d *keyseq.Delivery) error {
		mu.Lock()
		attempts, deliveries = append(attempts, d.Attempt), append(deliveries, d.DeliveryCount)
		n := len(attempts)
		mu.Unlock()
		if n > 4 {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	})
	told := 0
	a.onError = func(*keyseq.Delivery, error, bool) { told++ }
	b.sent(a, "k.1")
	m := b.manage(b.factory(), a, func(c *keyseq.Config) {
		c.ClientName, c.Retry = "flaps", keyseq.RetryPolicy{MaxRetries: 1, Backoff: keyseq.FixedBackoff(time.Millisecond)}
	})
	for n := 1; n <= 4; n++ {
		b.soon("it runs", func() bool { mu.Lock(); defer mu.Unlock(); return len(attempts) == n })
		a.record.Loss("", "flap", 0).Done()
		b.breakName("flaps", true)
	}
	b.finished(a, 1)
	b.shutdown(m, a)
	if !slices.Equal(attempts, []int{1, 1, 1, 1, 1}) || deliveries[4] < 5 || told != 0 {
		t.Errorf("attempts %v, deliveries %v, OnMessageError called %d times", attempts, deliveries, told)
	}
}

// H23: what is in doubt and never comes again holds its key for the ReturnDelay and not for ever: a message that expires while it is held, and a
// commit that was done.
func TestH23_WhatNeverComesAgainHoldsItsKeyForTheReturnDelayOnly(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	var tasks trace
	a := inMemory(nil)
	a.task = func(_ context.Context, d *keyseq.Delivery) error {
		tasks.add(d)
		switch string(d.Body) {
		case "expires.1":
			time.Sleep(time.Until(d.Expiration) + 100*time.Millisecond)
			b.fail("MQCMIT", 2003, 1)
		case "done.1":
			b.failAfter("MQCMIT", 2009, 1)
		}
		return nil
	}
	send := b.sender()
	for _, out := range []jms.Outgoing{
		{Body: []byte("expires.1"), Text: true, TTL: 400 * time.Millisecond}, {Body: []byte("expires.2"), Text: true},
	} {
		if err := send(t.Context(), b.queue, out); err != nil {
			t.Fatal(err)
		}
	}
	m := b.manage(b.factory(), a)
	b.finished(a, 1)
	b.send(b.queue, "done.1", "done.2")
	b.finished(a, 2)
	b.shutdown(m, a)
	if e, d := tasks.of("expires"), tasks.of("done"); !slices.Equal(e, []string{"1", "2"}) || !slices.Equal(d, []string{"1", "2"}) {
		t.Errorf("tasks ran %v and %v, want each message once", e, d)
	}
	if n := b.available(b.queue) + b.unsettled(); n != 0 {
		t.Errorf("%d messages are left", n)
	}
}
