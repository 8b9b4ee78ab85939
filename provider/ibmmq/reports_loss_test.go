package ibmmq_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/orderaudit"
	"github.com/keyseq/keyseq/provider/ibmmq"
)

// User report 13: a firewall cuts the connection of a message whose task takes long, and of an idle manager, without a word. The work is done again
// when the queue manager has noticed, and the next message is not waited for any longer than that.
func TestReport13_LinkCutInSilence(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	b.detect(300 * time.Millisecond)
	began, cut := make(chan struct{}), make(chan struct{})
	var once sync.Once
	var tasks trace
	a := inMemory(func(_ context.Context, d *keyseq.Delivery) error {
		tasks.add(d)
		once.Do(func() { close(began); <-cut })
		return nil
	})
	b.sent(a, "k.1", "k.2")
	m := b.manage(b.factory(), a, func(c *keyseq.Config) { c.ClientName = "walled" })
	took(b, "the first task runs", began)
	loss := a.record.Loss("", "cut", 0)
	b.breakName("walled", false)
	close(cut)
	b.finished(a, 2)
	loss.Done()
	if got := strings.Join(tasks.of("k"), ""); got != "112" {
		t.Errorf("tasks ran %s, want 112", got)
	}
	b.soon("it is idle", func() bool { return b.waiters(b.queue) == 1 })
	loss = a.record.Loss("", "cut again", 0)
	b.breakName("walled", false)
	b.soon("it is noticed", func() bool { return m.State() == keyseq.StateConnecting })
	b.sent(a, "k.3")
	b.finished(a, 3)
	loss.Done()
	b.shutdown(m, a)
	judge(t, a.record.History(), orderaudit.Options{})
}

// User report 17: Stop and Shutdown of an idle manager return although an MQGET waits, and keep no thread in it.
func TestReport17_StopDoesNotWaitForAMessage(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	a := inMemory(nil)
	m := b.manage(b.factory(func(f *ibmmq.Factory) { f.WaitSlice = time.Second }), a)
	for name, end := range map[string]func(context.Context) error{"Stop": m.Stop, "Shutdown": m.Shutdown} {
		b.soon("it waits", func() bool { return b.waiters(b.queue) == 1 })
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if err := end(ctx); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
		if n := b.waiters(b.queue); n != 0 {
			t.Errorf("after %s %d MQGETs wait", name, n)
		}
		if err := m.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	b.shutdown(m, a)
}
