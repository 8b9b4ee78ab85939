// Command health is a worker as an orchestrator runs it: /livez and /readyz tell how it is, / tells people, SIGTERM makes it finish what runs, give
// back the rest and exit. It reads the embedded broker, which it fills itself.
//
//	go run ./examples/health
//	curl -i 127.0.0.1:8080/readyz
//
// In Kubernetes (docs/health.md has the reasons):
//
//	spec:
//	  terminationGracePeriodSeconds: 40     # more than -drain (30 s), or it is killed in the middle
//	  containers:
//	  - name: payments
//	    livenessProbe:  {httpGet: {path: /livez,  port: 8080}, periodSeconds: 10, failureThreshold: 3}
//	    readinessProbe: {httpGet: {path: /readyz, port: 8080}, periodSeconds: 5,  failureThreshold: 1}
//
// The exit status is 0 when all that ran was settled, 1 when something had to be cancelled or the run failed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/provider/memory"
)

const queue = "PAYMENTS"

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "where /livez and /readyz are served")
	task := flag.Duration("task", 200*time.Millisecond, "how long a task takes")
	drain := flag.Duration("drain", 30*time.Second, "how long running tasks may go on after SIGTERM")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *addr, *task, *drain); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, addr string, task, drain time.Duration) error {
	broker, err := memory.NewBroker(memory.Queue{Name: queue})
	if err != nil {
		return err
	}
	defer broker.Close()
	listener := keyseq.ListenerFuncs{Task: func(ctx context.Context, _ *keyseq.Delivery) error {
		select {
		case <-time.After(task):
			return nil
		case <-ctx.Done(): // a task that looks at its context can be cancelled at the drain deadline
			return context.Cause(ctx)
		}
	}}
	m, err := keyseq.NewSequenceManager(queue, broker, listener, keyseq.KeyFromGroupID(), func(c *keyseq.Config) {
		c.DrainTimeout = drain
		c.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	})
	if err != nil {
		return err
	}

	// The probes are served until the very end, so that draining shows as what it is: alive and not ready.
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: probes(m), ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	fmt.Println("probes at", l.Addr())

	filled := make(chan struct{})
	go func() {
		defer close(filled)
		fill(ctx, broker)
	}()
	err = m.Run(ctx)
	<-filled
	s := m.Snapshot()
	fmt.Printf("ended: %d settled, %d given back, %d on the queue\n", s.Committed, s.RolledBack, broker.Depth(queue))
	closing := server.Close()
	if serving := <-served; !errors.Is(serving, http.ErrServerClosed) {
		closing = serving
	}
	return errors.Join(err, closing)
}

// probes answers 200 when the function says nil, and 503 with its reason otherwise.
func probes(m *keyseq.SequenceManager) http.Handler {
	answer := func(ask func() error) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if err := ask(); err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
			fmt.Fprintln(w, "ok")
		}
	}
	mux := http.NewServeMux()
	mux.Handle("GET /livez", answer(m.Live))
	mux.Handle("GET /readyz", answer(m.Ready))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { // for people: what it does, and which keys have not moved for longest
		s := m.Snapshot()
		fmt.Fprintf(w, "%v: %d running, %d ready, %d retrying, %d settled\n", s.State, s.Running, s.Ready, s.Retrying, s.Committed)
		for _, k := range s.Blocked {
			fmt.Fprintf(w, "%s: %s\n", k.Key, k.Reason)
		}
	})
	return mux
}

// fill keeps a few payments of ten accounts on the queue.
func fill(ctx context.Context, broker *memory.Broker) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		if broker.Depth(queue) < 100 {
			if _, err := broker.Send(keyseq.Outgoing{Queue: queue, GroupID: fmt.Sprintf("account-%d", n%10), Body: fmt.Append(nil, n)}); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
