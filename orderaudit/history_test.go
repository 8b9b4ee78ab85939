package orderaudit_test

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/keyseq/keyseq/orderaudit"
)

func everyKind() *orderaudit.History {
	rec := orderaudit.NewRecorder()
	rec.InstanceStarted("A")
	rec.Takeover("B", 3*time.Second)
	for _, key := range []string{"", "plain", "quote\" \\ back\nline", "žluťoučký", "not\xffutf8", "a\x00b"} {
		rec.Sent(key, 0)
		rec.SentDoubtful(key, -5)
		a := rec.Start("inst \"1\"", key, 0, 2)
		a.Return(orderaudit.Failed)
		a.End(orderaudit.DeadLettered)
		rec.End("A", key, 1<<62, orderaudit.Discarded)
		rec.Output(key, 0, 2)
		rec.Left(key, -5)
	}
	rec.Loss("", "the broker's node\nwas killed", 12).Done()
	rec.InstanceStopping("A")
	rec.Killed("A")
	return rec.History()
}

func TestSavedHistoryIsTheSame(t *testing.T) {
	h := everyKind()
	var saved bytes.Buffer
	n, err := h.WriteTo(&saved)
	if err != nil || n != int64(saved.Len()) {
		t.Fatal(n, err)
	}
	again, err := orderaudit.Read(bytes.NewReader(saved.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(again.Records, h.Records) {
		for i := range h.Records {
			if again.Records[i] != h.Records[i] {
				t.Errorf("record %d: %+v became %+v", i, h.Records[i], again.Records[i])
			}
		}
	}
}

func TestReplayedVerdictIsTheSame(t *testing.T) {
	opts := orderaudit.Options{Base: 1}
	h := script(t, "sent 1 2 3\nA run 2 1\nA start 3\nloss A 1\nkilled A\nB run 3 3")
	path := filepath.Join(t.TempDir(), "saved.jsonl")
	var saved bytes.Buffer
	if _, err := h.WriteTo(&saved); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, saved.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	replayed, err := orderaudit.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	first := h.Records[0].At
	for i := range h.Records {
		h.Records[i].At -= first // Load counts from the first record
	}
	if got, want := replayed.Check(opts).String(), h.Check(opts).String(); got != want || !strings.Contains(got, "violation") {
		t.Errorf("replayed:\n%s\nrecorded:\n%s", got, want)
	}
	if _, err := orderaudit.Load(path, path); err == nil || !strings.Contains(err.Error(), "do not compare") {
		t.Errorf("two runs joined as one: %v", err)
	}
}

func TestReadRefusesWhatIsNoHistory(t *testing.T) {
	const head = `{"k":"orderaudit","v":1,"clock":"run"}` + "\n"
	for _, c := range []struct{ name, text, says string }{
		{"empty", "", "no header"},
		{"no header", `{"k":"sent","t":1,"key":"k","seq":1}` + "\n", "before any header"},
		{"a later version", `{"k":"orderaudit","v":2,"clock":"run"}` + "\n", "version 2"},
		{"no clock", `{"k":"orderaudit","v":1}` + "\n", `unknown clock ""`},
		{"another clock", `{"k":"orderaudit","v":1,"clock":"sun\u007f"}` + "\n", "unknown clock"},
		{"a time out of range", head + `{"k":"sent","t":-1,"key":"k","seq":1}` + "\n", "out of range"},
		{"two clocks", head + `{"k":"orderaudit","v":1,"clock":"wall"}` + "\n", "clock changes"},
		{"garbage", head + "garbage\n" + `{"k":"sent","t":1,"key":"k","seq":1}` + "\n", "line 2"},
		{"garbage at the end", head + "garbage\n", "line 2"},
		{"two lines glued", head + `{"k":"sent","t":1,"key":"k","seq":1}{"k":"killed","t":1,"i":"A"}` + "\n", "after its object"},
		{"unknown kind", head + `{"k":"sant","t":1,"key":"k","seq":1}` + "\n", `unknown kind "sant"`},
		{"unknown outcome", head + `{"k":"end","t":1,"i":"A","key":"k","seq":1,"o":"good"}` + "\n", `unknown outcome "good"`},
		{"no key", head + `{"k":"sent","t":1,"seq":1}` + "\n", "without a key"},
		{"wrong type", head + `{"k":"sent","t":"now","key":"k","seq":1}` + "\n", "line 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := orderaudit.Read(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want one that says %q", err, c.says)
			}
		})
	}
	if _, err := orderaudit.Load(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("a missing file was loaded")
	}
}

// Whatever is read is judged and drawn without a panic, and comes out again as it came in.
func FuzzRead(f *testing.F) {
	var saved bytes.Buffer
	if _, err := everyKind().WriteTo(&saved); err != nil {
		f.Fatal(err)
	}
	f.Add(saved.Bytes())
	f.Add([]byte(`{"k":"orderaudit","v":1,"clock":"run"}` + "\n" + `{"k":"end","t":9,"i":"A","key":"k","seq":-1,"o":"unknown"}`))
	f.Add([]byte(`{"k":"orderaudit","v":1,"clock":"run"}` + "\n" + `{"k":"start","key":"","o":"settled"}` + "\n" + `{"k":"killed","i":"A","key":"k","seq":3}`)) // fields of other kinds
	f.Fuzz(func(t *testing.T, text []byte) {
		h, err := orderaudit.Read(bytes.NewReader(text))
		if err != nil {
			return
		}
		_ = h.Check(orderaudit.Options{AckDelay: 1}).String()
		for i, r := range h.Records {
			if i < 3 {
				if err := h.WriteTimeline(&bytes.Buffer{}, r.Key); err != nil && len(h.Records) == 0 {
					t.Error(err)
				}
			}
		}
		var saved bytes.Buffer
		if _, err := h.WriteTo(&saved); err != nil {
			t.Fatal(err)
		}
		again, err := orderaudit.Read(&saved)
		if err != nil {
			t.Fatal(err)
		}
		if len(again.Records) != len(h.Records) || len(h.Records) > 0 && !reflect.DeepEqual(again.Records, h.Records) {
			t.Errorf("read %v, saved and read %v", h.Records, again.Records)
		}
	})
}
