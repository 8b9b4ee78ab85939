package keyseq_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
)

// FuzzKeyFromJSON: no pointer and no body makes the extractor panic or hang, and where the standard library finds a string at a pointer of one
// step, so does the extractor.
func FuzzKeyFromJSON(f *testing.F) {
	f.Add("/account", `{"account":"4711"}`)
	f.Add("/a/1/b", `{"a":[0,{"b":12.50}]}`)
	f.Add("/~0~1", `{"~/":true}`)
	f.Add("", `"x"`)
	f.Add("/a", `{"a":{"b":[1,2,{}]},"a":null}`)
	f.Add("/x", `{"y":[[[[`)
	f.Fuzz(func(t *testing.T, pointer, body string) {
		key, err := keyseq.KeyFromJSON(pointer).ExtractKey(&keyseq.Message{Body: []byte(body)})
		if err != nil && key != "" {
			t.Fatalf("key %q with error %v", key, err)
		}
		name, one := strings.CutPrefix(pointer, "/")
		if !one || strings.ContainsAny(name, "/~") {
			return
		}
		var object map[string]json.RawMessage
		if json.Unmarshal([]byte(body), &object) != nil || strings.Count(body, `"`+name+`"`) != 1 {
			return // no object, or the name stands there twice: the first counts here, the last there
		}
		raw, found := object[name]
		var want string
		if !found || len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &want) != nil {
			return
		}
		if err != nil || key != want {
			t.Fatalf("KeyFromJSON(%q) of %q = %q, %v; want %q", pointer, body, key, err, want)
		}
	})
}

// FuzzKeyFromBodyBefore: what comes back is what stands before the first separator.
func FuzzKeyFromBodyBefore(f *testing.F) {
	f.Add(".", "4711.2")
	f.Add("::", "a::b::c")
	f.Add("\xff", "\x00\xff")
	f.Fuzz(func(t *testing.T, separator, body string) {
		if separator == "" {
			return
		}
		key, err := keyseq.KeyFromBodyBefore(separator).ExtractKey(&keyseq.Message{Body: []byte(body)})
		if found := strings.Contains(body, separator); found != (err == nil) {
			t.Fatalf("separator %q in %q: %v", separator, body, err)
		}
		if err == nil && (strings.Contains(key, separator) || !strings.HasPrefix(body, key+separator)) {
			t.Fatalf("KeyFromBodyBefore(%q) of %q = %q", separator, body, key)
		}
	})
}

// FuzzBackoff: no first, limit and number give a pause outside of 0 to the limit.
func FuzzBackoff(f *testing.F) {
	f.Add(int64(time.Second), int64(time.Minute), 3)
	f.Add(int64(1), int64(1<<62), 100)
	f.Add(int64(-5), int64(0), -1)
	f.Fuzz(func(t *testing.T, first, most int64, n int) {
		d := keyseq.ExponentialBackoff(time.Duration(first), time.Duration(most))(n)
		if d < 0 || d > max(time.Duration(most), 0) {
			t.Fatalf("ExponentialBackoff(%d, %d)(%d) = %d", first, most, n, d)
		}
	})
}

// FuzzConfig: NewSequenceManager takes or refuses any numbers, and does not panic.
func FuzzConfig(f *testing.F) {
	f.Add(100, 0, int64(1), int64(0), 0, 0)
	f.Fuzz(func(t *testing.T, workers, inFlight int, bytes, timeout int64, retries, action int) {
		m, err := keyseq.NewSequenceManager("Q", refuses{}, keyseq.ListenerFuncs{Task: noTask}, keyseq.KeyFromGroupID(), func(c *keyseq.Config) {
			c.Workers, c.MaxInFlight, c.MaxInFlightBytes = workers, inFlight, bytes
			c.TaskTimeout, c.CallTimeout, c.MaxHold = time.Duration(timeout), time.Duration(bytes), time.Duration(timeout)
			c.Retry.MaxRetries, c.Retry.OnExhausted, c.OnKeyError = retries, keyseq.Action(action), keyseq.Action(action)
		})
		if (m == nil) == (err == nil) {
			t.Fatalf("manager %v, error %v", m, err)
		}
	})
}

type refuses struct{}

func (refuses) Connect(context.Context, jms.Subscription) (jms.Connection, error) {
	return nil, jms.ErrConfig
}

func noTask(context.Context, *keyseq.Delivery) error { return nil }
