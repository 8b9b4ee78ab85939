// Command http runs three consumers side by side, with the same messages for each, and tells over HTTP in which order they were handled:
//
//	DEV.QUEUE.1  in sequence within a key, keys at once (100 workers)
//	DEV.QUEUE.2  one after another, whatever the key
//	DEV.QUEUE.3  ten at once, in no order
//
// It reads the embedded broker, which it fills itself.
//
//	go run ./examples/http
//	curl '127.0.0.1:8080/ExecutionOrder?queueName=DEV.QUEUE.1'   # [0.0, 0.1, 0.2][1.0, 1.1, 1.2]...
//	curl 127.0.0.1:8080/stop                                     # Stopped!
//	curl 127.0.0.1:8080/start                                    # Started!
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/provider/memory"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "where it is served")
	keys := flag.Int("keys", 10, "keys of the load")
	versions := flag.Int("versions", 3, "messages of each key")
	task := flag.Duration("task", 250*time.Millisecond, "how long a task takes")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *addr, *keys, *versions, *task); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, addr string, keys, versions int, task time.Duration) (err error) {
	broker, err := memory.NewBroker(memory.Queue{Name: "DEV.QUEUE.1"}, memory.Queue{Name: "DEV.QUEUE.2"}, memory.Queue{Name: "DEV.QUEUE.3"})
	if err != nil {
		return err
	}
	defer broker.Close()
	all, err := newConsumers(broker, func() { time.Sleep(task) })
	if err != nil {
		return err
	}
	if err := load(broker, keys, versions); err != nil {
		return err
	}
	if err := all.start(ctx); err != nil {
		return err
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return errors.Join(err, all.shutdown())
	}
	fmt.Println("listening at", l.Addr())
	server := &http.Server{Handler: all.handler(), ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select {
	case <-ctx.Done():
		err = server.Close()
		<-served
	case err = <-served: // it can serve no more
	}
	return errors.Join(err, all.shutdown())
}

// load sends the same to each queue, interleaved: the first version of each key, then the second.
func load(broker *memory.Broker, keys, versions int) error {
	for _, queue := range []string{"DEV.QUEUE.1", "DEV.QUEUE.2", "DEV.QUEUE.3"} {
		for v := range versions {
			for k := range keys {
				if _, err := broker.Send(keyseq.Outgoing{Queue: queue, Body: fmt.Appendf(nil, "%d.%d", k, v)}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
