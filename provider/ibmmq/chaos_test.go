package ibmmq_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/orderaudit"
)

// chaosEnv is how long TestChaos goes on; 8 s if it is not set.
const chaosEnv = "KEYSEQ_IBMMQ_CHAOS"

// A hundred sessions under random faults: order holds, nothing is lost, and when it is over no context, message handle, unit of work or thread
// is left.
func TestChaos(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	b.define(b.queue + ":maxdepth=1000000:bothresh=0")
	duration, err := time.ParseDuration(cmp.Or(os.Getenv(chaosEnv), "8s"))
	if err != nil {
		t.Fatal(err)
	}
	const keys = 200
	b.detect(100 * time.Millisecond)
	send := b.sender()
	before := b.connected()
	a := inMemory(func(context.Context, *keyseq.Delivery) error {
		time.Sleep(rand.N(150 * time.Millisecond))
		return nil
	})
	m := b.manage(b.factory(), a, func(c *keyseq.Config) {
		c.Workers, c.MaxInFlight, c.ReturnDelay, c.ClientName = 100, 300, 300*time.Millisecond, "chaos"
	})
	loss := a.record.Loss("", "faults", 0)
	total := 0
	faults := b.faults()
	next := time.Now()
	for round, end := 0, time.Now().Add(duration); time.Now().Before(end); round++ {
		out := make([]jms.Outgoing, keys)
		for k := range out {
			out[k] = jms.Outgoing{Text: true, Body: fmt.Appendf(nil, "k%d.%d", k, round)}
		}
		for err := send(t.Context(), b.queue, out...); err != nil; err = send(t.Context(), b.queue, out...) { // a fault may meet the sender
			for _, o := range out {
				a.record.SentDoubtful(nameOf(o.Body))
			}
			send = b.newSender()
		}
		for _, o := range out {
			a.record.Sent(nameOf(o.Body))
		}
		total += keys
		for b.available(b.queue) > keys && time.Now().Before(end) {
			if time.Now().After(next) {
				faults[rand.N(len(faults))]()
				next = time.Now().Add(rand.N(time.Second))
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	b.notice()
	// What is settled in doubt is told by nobody: the queue says when it is empty.
	for end := time.Now().Add(30 * time.Second); b.available(b.queue)+b.unsettled() > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d of %d messages are settled: %+v", a.gone.Load(), total, m.Snapshot())
		}
	}
	loss.Done()
	threads, sessions := osThreads(), m.Snapshot().Sessions
	b.shutdown(m, a)
	judge(t, a.record.History(), orderaudit.Options{})
	t.Logf("%d messages, %d sessions open at the end, %d threads", total, sessions, threads)

	b.soon("every context is closed", func() bool { return b.connected() <= before+2*b.sending })
	if n := b.unsettled(); n != 0 {
		t.Errorf("%d messages are in open units of work", n)
	}
	b.soon("message handles are freed", func() bool { runtime.GC(); return b.handles() < 50 })
	if n := osThreads(); n > 250 {
		t.Errorf("%d threads", n)
	}
}

// faults are what happens to the sessions now and then.
func (b *bench) faults() []func() {
	var all []func()
	for call, codes := range map[string][]int{
		"MQGET": {2009, 2003, 2016, 2195, 2460}, "MQCMIT": {2009, 2003, 2195, 2162}, "MQBACK": {2009, 2102}, "MQCONNX": {2537, 2538, 2059}, "MQOPEN": {2025},
	} {
		for _, code := range codes {
			all = append(all, func() { b.fail(call, code, 1) })
		}
	}
	for _, call := range []string{"MQGET", "MQCMIT", "MQBACK"} {
		all = append(all, func() { b.failAfter(call, 2009, 1) })
	}
	return append(all,
		func() { b.breakOldest(10, true) },
		func() { b.breakOldest(10, false) },
		func() { b.backOut(5) },
		func() { b.breakName("chaos", false) },
		func() { b.restart(50 * time.Millisecond) },
	)
}

// newSender makes a sender, in spite of faults.
func (b *bench) newSender() func(ctx context.Context, queue string, out ...jms.Outgoing) error {
	b.t.Helper()
	for end := time.Now().Add(15 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		send, err := b.trySender()
		if err == nil {
			return send
		}
		if time.Now().After(end) {
			b.t.Fatal(err)
		}
	}
}

func osThreads() int {
	all, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return 0
	}
	return len(all)
}
