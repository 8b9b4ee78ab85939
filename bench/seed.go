package bench

import "sync"

// runSeed is the design of the Java original, rebuilt: one limit for what is received and for what runs; every message has a goroutine of its own
// at once, which waits until the message is the first of its key.
func runSeed(load []Message, n, workers int, task func(*Message)) {
	var mu sync.Mutex
	queues := map[string][]chan struct{}{} // of a key, those whose message is not done; the first one may run
	permits := make(chan struct{}, workers)
	var all sync.WaitGroup
	for i := range n {
		permits <- struct{}{}
		m, turn := at(load, i), make(chan struct{})
		mu.Lock()
		queues[m.Key] = append(queues[m.Key], turn)
		if len(queues[m.Key]) == 1 {
			close(turn)
		}
		mu.Unlock()
		all.Go(func() {
			<-turn
			task(m)
			mu.Lock()
			if rest := queues[m.Key][1:]; len(rest) > 0 {
				queues[m.Key] = rest
				close(rest[0])
			} else {
				delete(queues, m.Key)
			}
			mu.Unlock()
			<-permits
		})
	}
	all.Wait()
}
