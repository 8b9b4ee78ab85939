package keyseq

import "time"

// oversee looks at the run from time to time, for what nobody would notice otherwise: calls that do not return, keys that fill the window, workers
// that sit in old tasks. It returns a function that ends it.
func (r *run) oversee() (stop func()) {
	m := r.m
	tick := time.NewTicker(min(time.Second, max(m.cfg.CallTimeout/4, time.Millisecond)))
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		defer tick.Stop()
		var lastLook time.Time
		var lastSaid time.Time // that keys are blocked
		for {
			select {
			case <-quit:
				return
			case now := <-tick.C:
				r.freeStuckWorkers(now)
				if now.Sub(lastLook) >= time.Second {
					lastLook = now
					if say := now.Sub(lastSaid) >= sayAgain; !r.lookForBlocked(now, say) {
						lastSaid = time.Time{}
					} else if say {
						lastSaid = now
					}
					r.tryMoreSessions(now)
				}
				r.ring() // supervise looks for messages held too long
			}
		}
	}()
	return func() { close(quit); <-done }
}
