package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/keyseq/keyseq/orderaudit"
)

func demo(ctx context.Context, url string) error {
	dir, err := os.MkdirTemp("", "keyseq-example.")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	audit, err := orderaudit.OpenFile(filepath.Join(dir, "demo"))
	if err != nil {
		return err
	}
	if err := empty(url); err != nil {
		return err
	}
	sent, err := produce(ctx, url)
	if err != nil {
		return err
	}
	for _, m := range sent {
		audit.Sent(m.order, m.version)
	}

	lines := make(chan line)
	var all []*instance
	for _, name := range []string{"A", "B"} {
		i, err := start(name, filepath.Join(dir, name), lines)
		if err != nil {
			return err
		}
		defer i.stop()
		all = append(all, i)
	}
	if err := (&watcher{audit: audit, all: all, total: len(sent), handled: map[string]bool{}, order: progress{}}).watch(ctx, lines); err != nil {
		return err
	}
	for _, i := range all {
		audit.InstanceStopping(i.name)
		i.stop()
	}
	if err := audit.Close(); err != nil {
		return err
	}
	history, err := orderaudit.Load(filepath.Join(dir, "demo"), filepath.Join(dir, "A"), filepath.Join(dir, "B"))
	if err != nil {
		return err
	}
	// A broker may not have processed the last acknowledgements of a process that is killed.
	verdict := history.Check(orderaudit.Options{AckDelay: time.Second})
	fmt.Println(verdict)
	if err := verdict.Err(); err != nil {
		return err
	}
	fmt.Println("order: ok")
	return nil
}
