package orderaudit_test

import (
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyseq/keyseq/orderaudit"
)

// Many workers record at once; each key is handled in order by one of them.
func TestRecorderIsSafeForConcurrentUse(t *testing.T) {
	rec := orderaudit.NewRecorder()
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			key := "k" + strconv.Itoa(w)
			for seq := range int64(500) {
				rec.Sent(key, seq)
				a := rec.Start("A", key, seq, 1)
				a.Return(orderaudit.Settled)
				a.End(orderaudit.Settled)
			}
		})
	}
	wg.Go(func() {
		for range 20 { // a history of half a run is whole: no record is ahead of its start
			if v := rec.History().Check(orderaudit.Options{Incomplete: true}); hasRule(v, orderaudit.Malformed, orderaudit.G1, orderaudit.G2, orderaudit.G4) && v.Attempts > 0 {
				t.Error(v)
			}
		}
	})
	wg.Wait()
	h := rec.History()
	for i := 1; i < len(h.Records); i++ {
		if h.Records[i].At < h.Records[i-1].At {
			t.Fatal("a record is older than the one before it")
		}
	}
	v := h.Check(orderaudit.Options{})
	if err := v.Err(); err != nil {
		t.Fatal(err)
	}
	if v.Keys != 16 || v.Messages != 8000 || v.Settled != 8000 || v.Attempts != 8000 {
		t.Errorf("counts: %v", v)
	}
}

// In a bubble times are virtual, so that an hour's backoff reads as an hour.
func TestRecorderInBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := orderaudit.NewRecorder()
		time.Sleep(time.Minute)
		a := rec.Start("A", "k", 0, 1)
		time.Sleep(time.Hour)
		a.Return(orderaudit.Settled)
		h := rec.History()
		if h.Records[0].At != time.Minute || h.Records[1].At != time.Hour+time.Minute {
			t.Errorf("records at %v and %v", h.Records[0].At, h.Records[1].At)
		}
		if v := h.Check(orderaudit.Options{}); !v.OK() {
			t.Error(v)
		}
	})
}
