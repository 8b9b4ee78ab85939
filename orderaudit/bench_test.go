package orderaudit_test

import (
	"bytes"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/keyseq/keyseq/orderaudit"
)

// million is a run of 250,000 messages of 1,000 keys, four records each.
func million(rec *orderaudit.Recorder) {
	keys := make([]string, 1000)
	for k := range keys {
		keys[k] = "account-" + strconv.Itoa(k)
	}
	for seq := range int64(250) {
		for _, key := range keys {
			rec.Sent(key, seq)
			a := rec.Start("A", key, seq, 1)
			a.Return(orderaudit.Settled)
			a.End(orderaudit.Settled)
		}
	}
}

func BenchmarkCheckMillionRecords(b *testing.B) {
	rec := orderaudit.NewRecorder()
	million(rec)
	h := rec.History()
	b.ReportAllocs()
	for b.Loop() {
		if v := h.Check(orderaudit.Options{}); !v.OK() {
			b.Fatal(v)
		}
	}
}

// A single key and a fault in its middle: the check and the shrinking of a long key.
func BenchmarkShrinkLongKey(b *testing.B) {
	rec := orderaudit.NewRecorder()
	for seq := range int64(100_000) {
		rec.Sent("k", seq)
		if seq != 50_000 {
			run(rec, "k", seq)
		}
		if seq == 50_001 {
			run(rec, "k", 50_000)
		}
	}
	h := rec.History()
	for b.Loop() {
		if v := h.Check(orderaudit.Options{}); len(v.Violations) != 1 || len(v.Violations[0].Records) != 8 {
			b.Fatal(v)
		}
	}
}

func BenchmarkReadMillionRecords(b *testing.B) {
	rec := orderaudit.NewRecorder()
	million(rec)
	var saved bytes.Buffer
	if _, err := rec.History().WriteTo(&saved); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := orderaudit.Read(bytes.NewReader(saved.Bytes())); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRecord(b *testing.B) {
	record := func(b *testing.B, rec *orderaudit.Recorder) {
		b.ReportAllocs()
		var seq int64
		for b.Loop() {
			a := rec.Start("A", "account-1", seq, 1)
			a.Return(orderaudit.Settled)
			seq++
		}
	}
	b.Run("memory", func(b *testing.B) { record(b, orderaudit.NewRecorder()) })
	b.Run("file", func(b *testing.B) {
		rec, err := orderaudit.OpenFile(filepath.Join(b.TempDir(), "a.jsonl"))
		if err != nil {
			b.Fatal(err)
		}
		record(b, rec)
		if err := rec.Close(); err != nil {
			b.Fatal(err)
		}
	})
}
