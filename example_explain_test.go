package keyseq_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"regexp"
	"runtime"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/provider/memory"
)

// Explain says in words why a key does not move; Snapshot lists the keys that have not moved for longest.
func ExampleSequenceManager_Explain() {
	broker, err := memory.NewBroker(memory.Queue{Name: "PAYMENTS"})
	if err != nil {
		log.Fatal(err)
	}
	for _, body := range []string{"first", "second"} {
		if _, err := broker.Send(keyseq.Outgoing{Queue: "PAYMENTS", GroupID: "4711", Body: []byte(body)}); err != nil {
			log.Fatal(err)
		}
	}
	failed := make(chan struct{})
	m, err := keyseq.NewSequenceManager("PAYMENTS", broker, keyseq.ListenerFuncs{
		Task: func(ctx context.Context, d *keyseq.Delivery) error {
			return keyseq.RetryAfter(time.Hour, errors.New("account is locked"))
		},
	}, keyseq.KeyFromGroupID(), func(c *keyseq.Config) {
		c.Events = append(c.Events, keyseq.Events{Retrying: func(keyseq.MessageEvent) { close(failed) }})
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := m.Start(context.Background()); err != nil {
		log.Fatal(err)
	}
	<-failed
	for report, _ := m.Explain("4711"); report.Held < 2 || report.NextAttempt.IsZero(); report, _ = m.Explain("4711") {
		runtime.Gosched() // the second message is on its way
	}
	report, _ := m.Explain("4711")
	times := regexp.MustCompile(`\d+ m?s\b`) // they differ from run to run
	fmt.Println(times.ReplaceAllString(report.Reason, "_"))
	fmt.Println("held:", report.Held, "blocked:", m.Snapshot().Blocked[0].Key)
	if err := m.Shutdown(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// attempt 1 of 17 failed _ ago: retry after 1h0m0s: account is locked; next in 60 min; 1 message waits, oldest _
	// held: 2 blocked: 4711
}
