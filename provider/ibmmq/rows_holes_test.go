package ibmmq_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/orderaudit"
	"github.com/keyseq/keyseq/provider/ibmmq"
)

// H1: an MQGET is lost on an idle queue, and takes the next message for nobody; or it has its message and the answer is lost. Nothing behind that
// message is handled before it.
func TestH01_ALostReceiveWaitsForTheWholeQueue(t *testing.T) {
	for name, lose := range map[string]func(b *bench){
		"waiting": func(b *bench) { b.breakName("h01", false) },
		"taken":   func(b *bench) { b.failAfter("MQGET", 2009, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.needsControls()
			b.detect(400 * time.Millisecond)
			send := b.sender()
			a := inMemory(nil)
			m := b.manage(b.factory(), a, func(c *keyseq.Config) { c.ClientName = "h01" })
			b.soon("it waits", func() bool { return b.waiters(b.queue) == 1 })
			loss := a.record.Loss("", "receive", 0)
			lose(b)
			for _, body := range []string{"K.5", "K.6", "L.1"} { // the first is taken by the lost one
				if err := send(t.Context(), b.queue, jms.Outgoing{Text: true, Body: []byte(body)}); err != nil {
					t.Fatal(err)
				}
				a.record.Sent(nameOf([]byte(body)))
			}
			b.finished(a, 3)
			loss.Done()
			b.shutdown(m, a)
			judge(t, a.record.History(), orderaudit.Options{})
		})
	}
}

// H2: the session of a key's head is lost, and its followers fill the window: there is room for it all the same when it comes back, and it runs
// before them.
func TestH02_FollowersDoNotKeepALostMessageOut(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	b.detect(300 * time.Millisecond)
	began, release := make(chan struct{}), make(chan struct{})
	var tasks trace
	var once sync.Once
	a := inMemory(func(_ context.Context, d *keyseq.Delivery) error {
		tasks.add(d)
		once.Do(func() { close(began); <-release })
		return nil
	})
	b.load(a.record, 1, 40)
	m := b.manage(b.factory(), a, func(c *keyseq.Config) { c.MaxInFlight = 10 })
	took(b, "the first task runs", began)
	b.soon("the window is full", func() bool { return b.unsettled() == 10 })
	loss := a.record.Loss("", "the head", 0)
	if n := b.breakOldest(1, false); n != 1 {
		t.Fatalf("%d connections were broken", n)
	}
	close(release)
	b.finished(a, 40)
	loss.Done()
	b.shutdown(m, a)
	if got := tasks.of("k0"); len(got) != 41 || got[0] != "0" || got[1] != "0" || got[2] != "1" {
		t.Errorf("%d tasks ran, the first %v; want 0 twice and then the others", len(got), got[:min(4, len(got))])
	}
	judge(t, a.record.History(), orderaudit.Options{})
}

// H3: one of a key's messages in the middle is lost while its predecessor runs, and it is back before anybody knows; then they come in order.
func TestH03_AMessageInTheMiddleIsBackBeforeItsLossIsKnown(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	began, release := make(chan struct{}), make(chan struct{})
	var tasks trace
	var once sync.Once
	a := inMemory(func(_ context.Context, d *keyseq.Delivery) error {
		tasks.add(d)
		once.Do(func() { close(began); <-release })
		return nil
	})
	b.sent(a, "k.1", "k.2", "k.3", "k.4")
	m := b.manage(b.factory(), a)
	took(b, "the first task runs", began)
	b.soon("all are held", func() bool { return b.unsettled() == 4 })
	loss := a.record.Loss("", "backed out", 0)
	if n := b.backOut(3); n != 3 { // k.1, which runs, and k.2 and k.3, which wait
		t.Fatalf("%d units of work were backed out", n)
	}
	b.soon("they are received again", func() bool { return b.available(b.queue) == 0 && m.Snapshot().Received >= 7 })
	close(release)
	b.finished(a, 4)
	loss.Done()
	b.shutdown(m, a)
	if got := strings.Join(tasks.of("k"), ""); got != "11234" {
		t.Errorf("tasks ran %s, want 11234", got)
	}
	judge(t, a.record.History(), orderaudit.Options{})
}

// H4: the link goes dark in the middle of the work, and each end notices in its own time: at once, and just before ReturnDelay is over.
func TestH04_ALinkThatGoesDark(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	a := inMemory(func(context.Context, *keyseq.Delivery) error { time.Sleep(10 * time.Millisecond); return nil })
	b.load(a.record, 20, 100)
	m := b.manage(b.factory(), a, func(c *keyseq.Config) { c.Workers, c.ClientName = 10, "h04" })
	defer func() {
		if t.Failed() {
			t.Logf("%d are settled, %d on the queue, %d in units of work; %+v", a.gone.Load(), b.available(b.queue), b.unsettled(), m.Snapshot())
		}
	}()
	for _, notices := range []time.Duration{0, quickReturn * 2 / 3} {
		b.detect(notices)
		settled := a.gone.Load()
		b.soon("it works", func() bool { return a.gone.Load() >= settled+50 })
		loss := a.record.Loss("", "dark", 0)
		b.breakName("h04", false)
		b.soon("it is noticed", func() bool { return m.State() == keyseq.StateConnecting })
		b.soon("it reads again", func() bool { return m.State() == keyseq.StateActive })
		loss.Done()
	}
	b.soon("everything is handled", func() bool { return b.available(b.queue)+b.unsettled() == 0 })
	b.shutdown(m, a)
	judge(t, a.record.History(), orderaudit.Options{})
}

// H5: the connection that holds the lock queue breaks alone, while its sessions stand. The standby becomes active, and no task of a key runs in
// both; what the first one had running is settled by nobody twice.
func TestH05_TheLockBreaksAlone(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	record := orderaudit.NewRecorder()
	var tasks atMost // of the one key
	instance := func(name string) (*audited, *keyseq.SequenceManager) {
		a := &audited{instance: name, record: record, task: func(ctx context.Context, _ *keyseq.Delivery) error {
			tasks.enter()
			defer tasks.leave()
			select {
			case <-time.After(30 * time.Millisecond):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}}
		record.Takeover(name, takeover+2*time.Second)
		return a, b.newManager(b.factory(func(f *ibmmq.Factory) { f.LockQueue = b.lock }), a, func(c *keyseq.Config) {
			c.SingleActiveConsumer, c.ClientName, c.TakeoverDelay = true, name, takeover+2*time.Second // the loss is noticed within a probe or two
			c.Reconnect = keyseq.FixedBackoff(2 * time.Second)                                         // so that the other one is first
		})
	}
	a, first := instance("A")
	if err := first.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.soon("A is active", func() bool { return first.State() == keyseq.StateActive })
	c, second := instance("B")
	if err := second.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.load(record, 1, 60)
	b.soon("A works", func() bool { return a.gone.Load() >= 5 })
	loss := record.Loss("A", "the lock", 0)
	b.breakName("A control", true)
	b.soon("B is active", func() bool { return second.State() == keyseq.StateActive })
	loss.Done()
	b.soon("everything is handled", func() bool { return b.available(b.queue)+b.unsettled() == 0 })
	if c.gone.Load() == 0 || tasks.most.Load() != 1 {
		t.Errorf("B settled %d messages; %d tasks of the key ran at once", c.gone.Load(), tasks.most.Load())
	}
	b.shutdown(first, a)
	b.shutdown(second, c)
	judge(t, record.History(), orderaudit.Options{})
}
