package orderaudit_test

import (
	"strconv"
	"sync"
	"testing"

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
