package keyseq

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/keyseq/keyseq/internal/keyqueue"
	"github.com/keyseq/keyseq/jms"
)

// Wishes gives the wish for a shutdown of the present run, to be made when that run is long over.
func Wishes(m *SequenceManager) (late func()) {
	r := m.current.Load()
	return func() { r.wish(wishShutdown) }
}

// AbortUnnoticed asks for an abort before anybody has had the time to act on it.
func AbortUnnoticed(m *SequenceManager) { m.current.Load().want.Store(wishAbort) }

// LossHaltsFirst loses a link while another goroutine does what supervise does with the next one as soon as it sees the loss: lift the halt. False:
// the halt came after that.
func LossHaltsFirst() bool {
	var ran atomic.Bool
	m := &SequenceManager{cfg: defaultConfig(), log: defaultConfig().Logger}
	m.d = keyqueue.New(1, func(*worker, *keyQueue, *held) keyqueue.Turn { ran.Store(true); return keyqueue.Done() })
	m.d.SetLimits(keyqueue.Limits{Items: 1, Bytes: 1})
	r := &run{m: m}
	l := &link{gone: make(chan struct{})}
	var both sync.WaitGroup
	both.Go(func() { r.linkLost(l, errors.Join(jms.ErrConnectionLost)) })
	both.Go(func() {
		for !l.lost.Load() {
		}
		l.cause()
		m.d.Resume()
	})
	both.Wait()
	m.d.Reserve()
	m.d.Add("K", held{}, 0)
	for m.d.Stats().Ready > 0 && m.d.Stats().Workers > 0 {
	}
	<-m.d.Close()
	return ran.Load()
}

// RefusedTwice has the broker refuse a further session twice while as many are open, and says whether reading goes on at once after each.
func RefusedTwice(open int) (first, again bool) {
	r := &run{m: &SequenceManager{cfg: defaultConfig()}}
	return r.limitSessions(open), r.limitSessions(open)
}
