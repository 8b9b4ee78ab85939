package orderaudit_test

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"github.com/keyseq/keyseq/orderaudit"
)

// One fault in a long run of many keys is shown by the few records that make it, and by nothing else.
func TestViolationIsShrunk(t *testing.T) {
	rec := orderaudit.NewRecorder()
	for seq := range int64(300) {
		for k := range 20 {
			key := "k" + strconv.Itoa(k)
			rec.Sent(key, seq)
			if key == "k7" && seq == 200 {
				continue // starts after its successor
			}
			run(rec, key, seq)
			if key == "k7" && seq == 201 {
				run(rec, key, 200)
			}
		}
		if seq%50 == 0 {
			rec.Loss("A", "cut", 10)
		}
	}
	v := rec.History().Check(orderaudit.Options{})
	if len(v.Violations) != 1 {
		t.Fatal(v)
	}
	got := v.Violations[0]
	if got.Rule != orderaudit.G1 || got.Key != "k7" || got.Seq != 201 {
		t.Errorf("found %v", got)
	}
	var lines []string
	for _, r := range got.Records {
		_, line, _ := strings.Cut(r.String(), " ")
		lines = append(lines, line)
	}
	want := "sent 200|sent 201|A: start of 201, attempt 1|A: task of 201 returned, to be settled|A: 201 settled|" +
		"A: start of 200, attempt 1|A: task of 200 returned, to be settled|A: 200 settled"
	if strings.Join(lines, "|") != want {
		t.Errorf("shown by\n%s\nwant\n%s", strings.Join(lines, "|"), want)
	}
	if err := (&orderaudit.History{Records: got.Records}).WriteTimeline(&bytes.Buffer{}, got.Key); err != nil {
		t.Error(err)
	}
	if text := v.String(); !strings.HasPrefix(text, "1 violation: 20 keys, 6000 messages, 6000 attempts") || !strings.Contains(text, `G1 key "k7": message 201`) {
		t.Error(text)
	}
}

// Events stay in the piece only where they matter to it.
func TestShrunkPieceKeepsTheLossThatMatters(t *testing.T) {
	h := script(t, "takeover B 50ms\nsent 1 2\nloss A 5\nA run 1\nloss B 5\nA start 2\nloss A 5\nB run 2\nloss A 5\nA return 2 given-back")
	v := h.Check(orderaudit.Options{})
	if len(v.Violations) != 1 || v.Violations[0].Rule != orderaudit.G2 {
		t.Fatal(v)
	}
	losses, starts := 0, 0
	for _, r := range v.Violations[0].Records {
		switch r.Kind {
		case orderaudit.KindLoss:
			losses++
		case orderaudit.KindStart:
			starts++
		}
	}
	if losses != 1 || starts != 2 {
		t.Errorf("%d losses and %d starts in the piece: %v", losses, starts, v)
	}
}

func run(rec *orderaudit.Recorder, key string, seq int64) {
	a := rec.Start("A", key, seq, 1)
	a.Return(orderaudit.Settled)
	a.End(orderaudit.Settled)
}
