package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// site is the three consumers on a broker, and their handler.
type site struct {
	*testing.T
	broker  *memory.Broker
	all     consumers
	handler http.Handler
}

// visit runs a test with virtual time.
func visit(t *testing.T, work func(), test func(s *site)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		broker, err := memory.NewBroker(memory.Queue{Name: "DEV.QUEUE.1"}, memory.Queue{Name: "DEV.QUEUE.2"}, memory.Queue{Name: "DEV.QUEUE.3"})
		if err != nil {
			t.Fatal(err)
		}
		defer broker.Close()
		all, err := newConsumers(broker, work)
		if err != nil {
			t.Fatal(err)
		}
		test(&site{t, broker, all, all.handler()})
		if err := all.shutdown(); err != nil {
			t.Error(err)
		}
	})
}

// gives asks and compares status and body.
func (s *site) gives(method, target string, code int, body string) {
	s.Helper()
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, httptest.NewRequestWithContext(s.Context(), method, target, nil))
	if w.Code != code || w.Body.String() != body {
		s.Errorf("%s %s: %d %q, want %d %q", method, target, w.Code, w.Body.String(), code, body)
	}
}

func (s *site) load(keys, versions int) {
	s.Helper()
	if err := load(s.broker, keys, versions); err != nil {
		s.Fatal(err)
	}
}

func order(keys, versions int) string {
	var b strings.Builder
	for k := range keys {
		var some []string
		for v := range versions {
			some = append(some, fmt.Sprintf("%d.%d", k, v))
		}
		b.WriteString("[" + strings.Join(some, ", ") + "]")
	}
	return b.String()
}

// R1.25: the addresses answer exactly so, for GET and POST; starting twice makes one reader, stopping twice does no harm.
func TestR1_25_HTTP(t *testing.T) {
	visit(t, func() { time.Sleep(250 * time.Millisecond) }, func(s *site) {
		s.load(12, 3)
		s.gives("GET", "/ExecutionOrder?queueName=DEV.QUEUE.1", 200, "")
		s.gives("GET", "/ExecutionOrder?queueName=NO.SUCH", 404, "Unable to find resource")
		s.gives("POST", "/ExecutionOrder", 404, "Unable to find resource")
		s.gives("GET", "/start", 200, "Started!")
		s.gives("POST", "/start", 200, "Started!")
		time.Sleep(time.Minute)
		s.gives("GET", "/ExecutionOrder?queueName=DEV.QUEUE.1", 200, order(12, 3))
		s.gives("POST", "/ExecutionOrder?queueName=DEV.QUEUE.2", 200, order(12, 3))
		for _, c := range s.all {
			if readers, err := s.broker.Readers(c.queue); err != nil || len(readers) != 1 {
				s.Errorf("%s has %d readers, %v; want one", c.queue, len(readers), err)
			}
		}
		s.gives("GET", "/stop", 200, "Stopped!")
		s.gives("POST", "/stop", 200, "Stopped!")
		s.load(1, 1)
		time.Sleep(time.Minute)
		if n := s.broker.Depth("DEV.QUEUE.1"); n != 1 {
			s.Errorf("%d messages are on a queue that is not read, want 1", n)
		}
		s.gives("GET", "/start", 200, "Started!")
		time.Sleep(time.Minute)
		if n := s.broker.Depth("DEV.QUEUE.1"); n != 0 {
			s.Errorf("%d messages are left after a new start", n)
		}
	})
}

// R1.26: the same load on three queues at once: in order within each key, in order throughout, and in no order, ten at once.
func TestR1_26_ThreeConsumersSideBySide(t *testing.T) {
	var now, most atomic.Int64
	visit(t, func() {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer now.Add(-1)
		time.Sleep(rand.N(250 * time.Millisecond))
	}, func(s *site) {
		const keys, versions = 40, 5
		s.load(keys, versions)
		began := time.Now()
		s.gives("GET", "/start", 200, "Started!")
		took := map[string]time.Duration{}
		for len(took) < 3 {
			for _, c := range s.all {
				if _, known := took[c.queue]; !known && s.broker.Depth(c.queue) == 0 {
					took[c.queue] = time.Since(began)
				}
			}
			time.Sleep(10 * time.Millisecond)
		}
		s.gives("GET", "/ExecutionOrder?queueName=DEV.QUEUE.1", 200, order(keys, versions))
		s.gives("GET", "/ExecutionOrder?queueName=DEV.QUEUE.2", 200, order(keys, versions))
		var sent []string
		for v := range versions {
			for k := range keys {
				sent = append(sent, fmt.Sprintf("%d.%d", k, v))
			}
		}
		if got := strings.Join(s.all[1].done, " "); got != strings.Join(sent, " ") {
			s.Errorf("DEV.QUEUE.2 was handled in the order %s", got)
		}
		if free := s.all[2]; len(free.done) != keys*versions || strings.Join(free.done, " ") == strings.Join(sent, " ") {
			s.Errorf("DEV.QUEUE.3: %d of %d handled, in the order in which they were sent", len(free.done), keys*versions)
		}
		if took["DEV.QUEUE.1"] > took["DEV.QUEUE.2"]/10 || took["DEV.QUEUE.3"] > took["DEV.QUEUE.2"]/3 || most.Load() < keys {
			s.Errorf("took %v, at most %d tasks at once", took, most.Load())
		}
	})
}

// R1.15: the example's own record is taken back when a commit was rolled back, and only then.
func TestTheRecordIsTakenBack(t *testing.T) {
	c := &consumer{done: []string{"0.0", "0.1"}}
	d := &keyseq.Delivery{Message: &keyseq.Message{Body: []byte("0.1")}}
	c.OnMessageError(context.Background(), d, jms.ErrCommitUnknown, true)
	c.OnMessageError(context.Background(), d, jms.ErrRolledBack, false)
	if got := c.order(); got != "[0.0, 0.1]" {
		t.Errorf("the record is %s", got)
	}
	c.OnMessageError(context.Background(), d, jms.ErrRolledBack, true)
	if got := c.order(); got != "[0.0]" {
		t.Errorf("the record is %s", got)
	}
}
