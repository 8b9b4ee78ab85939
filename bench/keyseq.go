package bench

import "github.com/keyseq/keyseq/internal/keyqueue"

// window is how many messages the manager holds by default where sessions cost nothing.
const window = 8192

// runKeyseq is the dispatcher of keyseq, used as its manager does: a place is reserved before a message is received.
func runKeyseq(load []Message, n, workers int, task func(*Message)) {
	d := keyqueue.New(workers, func(_ *keyqueue.Worker[*Message, struct{}], _ *keyqueue.Key[*Message], m **Message) keyqueue.Turn {
		task(*m)
		return keyqueue.Done()
	})
	d.SetLimits(keyqueue.Limits{Items: window, Bytes: 1 << 40})
	for i := range n {
		for !d.Reserve() {
			<-d.Room()
		}
		m := at(load, i)
		d.Add(m.Key, m, 1)
	}
	for d.Stats().Held > 0 {
		<-d.Quiet()
	}
	<-d.Close()
}
