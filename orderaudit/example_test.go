package orderaudit_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/keyseq/keyseq/orderaudit"
)

// A user's own test of a task: the producer records what it sent, the task what it does, the events what became of it.
func Example() {
	rec := orderaudit.NewRecorder()

	task := func(key string, seq int64, attempt int, work func() error) error {
		a := rec.Start("A", key, seq, attempt)
		if err := work(); err != nil {
			a.Return(orderaudit.Failed)
			return err
		}
		a.Return(orderaudit.Settled)
		return nil
	}
	committed := func(key string, seq int64) { rec.End("A", key, seq, orderaudit.Settled) }

	for seq := int64(1); seq <= 2; seq++ {
		rec.Sent("account-4711", seq)
	}
	// In a real test a SequenceManager makes these calls.
	_ = task("account-4711", 1, 1, func() error { return errors.New("database is down") })
	_ = task("account-4711", 1, 2, func() error { return nil })
	committed("account-4711", 1)
	_ = task("account-4711", 2, 1, func() error { return nil })
	committed("account-4711", 2)

	fmt.Println(rec.History().Check(orderaudit.Options{}))
	// Output:
	// ok: 1 key, 2 messages, 3 attempts, 1 retry
}

// A violation is one sentence. Below it, in Violation.Records and in the error, is the shortest piece of the history that shows it.
func ExampleHistory_Check() {
	rec := orderaudit.NewRecorder()
	for seq := int64(1); seq <= 50; seq++ {
		rec.Sent("account-4711", seq)
	}
	handle := func(seq int64) {
		a := rec.Start("A", "account-4711", seq, 1)
		a.Return(orderaudit.Settled)
		a.End(orderaudit.Settled)
	}
	for seq := int64(1); seq <= 50; seq++ {
		if seq != 20 { // overlooked
			handle(seq)
		}
	}

	verdict := rec.History().Check(orderaudit.Options{})
	for _, v := range verdict.Violations {
		fmt.Println(v.Rule, v.Key, v.Text)
		fmt.Println(len(v.Records), "records show it")
	}
	fmt.Println(errors.Is(verdict.Err(), orderaudit.ErrViolated))
	// Output:
	// G3 account-4711 message 20 is lost: it never started
	// 1 records show it
	// true
}

// An instance is killed in the middle of a task; its standby takes over. Each process records to its own file.
func ExampleLoad() {
	dir, err := os.MkdirTemp("", "audit")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	open := func(name string) *orderaudit.Recorder {
		rec, err := orderaudit.OpenFile(filepath.Join(dir, name))
		if err != nil {
			fmt.Println(err)
		}
		return rec
	}
	test, a, b := open("test"), open("a"), open("b") // three processes, in a real test

	test.Sent("account-4711", 1)
	a.Start("A", "account-4711", 1, 1)
	loss := test.Loss("A", "kill -9", 1)
	test.Killed("A") // after the process has been killed and waited for
	loss.Done()
	again := b.Start("B", "account-4711", 1, 1)
	again.Return(orderaudit.Settled)
	again.End(orderaudit.Settled)

	for _, rec := range []*orderaudit.Recorder{test, a, b} {
		if err := rec.Close(); err != nil {
			fmt.Println(err)
		}
	}
	history, err := orderaudit.Load(filepath.Join(dir, "test"), filepath.Join(dir, "a"), filepath.Join(dir, "b"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(history.Check(orderaudit.Options{}))
	// Output:
	// ok: 1 key, 1 message, 2 attempts, 1 repeat, 1 loss
}

// A timeline shows what one key went through.
func ExampleHistory_WriteTimeline() {
	rec := orderaudit.NewRecorder()
	a := rec.Start("A", "account-4711", 1, 1)
	a.Return(orderaudit.Settled)
	a.End(orderaudit.Settled)

	if err := rec.History().WriteTimeline(io.Discard, "account-4711"); err != nil {
		fmt.Println(err)
	}
	fmt.Println(rec.History().WriteTimeline(io.Discard, "account-4712"))
	// Output:
	// orderaudit: no attempt of key "account-4712" is recorded: there is nothing to draw
}
