package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
)

// consumer is one queue with its manager and the record of what was handled.
type consumer struct {
	queue   string
	manager *keyseq.SequenceManager
	work    func()

	mu   sync.Mutex
	done []string // bodies, in the order in which their tasks ended
}

// DoTask records the message.
func (c *consumer) DoTask(_ context.Context, d *keyseq.Delivery) error {
	c.work()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done = append(c.done, string(d.Body))
	return nil
}

// OnMessageError takes the record back if the message comes again for certain.
func (c *consumer) OnMessageError(_ context.Context, d *keyseq.Delivery, err error, taskPerformed bool) {
	if !taskPerformed || !errors.Is(err, jms.ErrRolledBack) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := slices.Index(c.done, string(d.Body)); at >= 0 {
		c.done = slices.Delete(c.done, at, at+1)
	}
}

// order is what was handled of each key, in brackets; the keys in the order of decimal numbers.
func (c *consumer) order() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var keys []string
	of := map[string][]string{}
	for _, body := range c.done {
		key, _, _ := strings.Cut(body, ".")
		if of[key] == nil {
			keys = append(keys, key)
		}
		of[key] = append(of[key], body)
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) })
	var out strings.Builder
	for _, key := range keys {
		fmt.Fprintf(&out, "[%s]", strings.Join(of[key], ", "))
	}
	return out.String()
}

type consumers []*consumer

// newConsumers makes the three. They differ only in where keys come from and in how many workers there are.
func newConsumers(factory jms.ConnectionFactory, work func()) (consumers, error) {
	one := keyseq.KeyExtractorFunc(func(*keyseq.Message) (string, error) { return "all", nil })
	none := keyseq.KeyExtractorFunc(func(*keyseq.Message) (string, error) { return "", nil })
	var all consumers
	for _, x := range []struct {
		queue     string
		key       keyseq.KeyExtractor
		configure func(*keyseq.Config)
	}{
		{"DEV.QUEUE.1", keyseq.KeyFromBodyBefore("."), func(c *keyseq.Config) { c.Workers = 100 }},
		{"DEV.QUEUE.2", one, func(c *keyseq.Config) { c.Workers = 1 }},
		{"DEV.QUEUE.3", none, func(c *keyseq.Config) { c.Workers, c.OnEmptyKey = 10, keyseq.EmptyKeyUnordered }},
	} {
		c := &consumer{queue: x.queue, work: work}
		m, err := keyseq.NewSequenceManager(x.queue, factory, c, x.key, x.configure)
		if err != nil {
			return nil, err
		}
		c.manager = m
		all = append(all, c)
	}
	return all, nil
}

// start starts those that do not run.
func (all consumers) start(ctx context.Context) error {
	var failed []error
	for _, c := range all {
		if err := c.manager.Start(ctx); err != nil && !errors.Is(err, keyseq.ErrRunning) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// drainTimeout bounds stop and shutdown.
const drainTimeout = 30 * time.Second

func (all consumers) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	var failed []error
	for _, c := range all {
		failed = append(failed, c.manager.Stop(ctx))
	}
	return errors.Join(failed...)
}

func (all consumers) shutdown() error {
	ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	var failed []error
	for _, c := range all {
		failed = append(failed, c.manager.Shutdown(ctx))
	}
	return errors.Join(failed...)
}

// handler serves the three addresses, for GET and POST alike.
func (all consumers) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/ExecutionOrder", func(w http.ResponseWriter, r *http.Request) {
		queue := r.FormValue("queueName")
		at := slices.IndexFunc(all, func(c *consumer) bool { return c.queue == queue })
		if at < 0 {
			answer(w, http.StatusNotFound, "Unable to find resource")
			return
		}
		answer(w, http.StatusOK, all[at].order())
	})
	do := func(call func(context.Context) error, done string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if err := call(r.Context()); err != nil {
				answer(w, http.StatusInternalServerError, err.Error())
				return
			}
			answer(w, http.StatusOK, done)
		}
	}
	mux.HandleFunc("/start", do(all.start, "Started!"))
	mux.HandleFunc("/stop", do(all.stop, "Stopped!"))
	return mux
}

func answer(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, text)
}
