package orderaudit

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"
)

// formatVersion is of the lines below. A reader refuses a higher one.
const formatVersion = 1

// line is the JSON form of a record: one object a line, as the package documentation describes it.
type line struct {
	Kind     string  `json:"k"`
	At       int64   `json:"t"` // nanoseconds
	Instance string  `json:"i,omitempty"`
	Key      *string `json:"key,omitempty"`
	Key64    []byte  `json:"key64,omitempty"` // instead of key, when that is no valid UTF-8
	Seq      int64   `json:"seq,omitempty"`
	ID       uint64  `json:"id,omitempty"`
	N        int     `json:"n,omitempty"`
	Outcome  string  `json:"o,omitempty"`
	Delay    int64   `json:"d,omitempty"` // nanoseconds
	Text     string  `json:"text,omitempty"`

	Version int    `json:"v,omitempty"`     // of a header
	Clock   string `json:"clock,omitempty"` // of a header
}

// header is the kind of the line that begins a saved history and each opening of a recorder's file.
const header = "orderaudit"

// appendRecord appends the line of r. It is written out by hand because a task waits for it.
func appendRecord(b []byte, r Record) []byte {
	b = append(b, `{"k":"`...)
	b = append(b, r.Kind.String()...)
	b = append(b, `","t":`...)
	b = strconv.AppendInt(b, int64(r.At), 10)
	if r.Instance != "" {
		b = appendString(append(b, `,"i":`...), r.Instance)
	}
	if r.Kind <= KindLeft { // of a key, also when that is ""
		if utf8.ValidString(r.Key) {
			b = appendString(append(b, `,"key":`...), r.Key)
		} else {
			b = append(b, `,"key64":"`...)
			b = base64.StdEncoding.AppendEncode(b, []byte(r.Key))
			b = append(b, '"')
		}
		b = strconv.AppendInt(append(b, `,"seq":`...), r.Seq, 10)
	}
	if r.ID != 0 {
		b = strconv.AppendUint(append(b, `,"id":`...), r.ID, 10)
	}
	if r.N != 0 {
		b = strconv.AppendInt(append(b, `,"n":`...), int64(r.N), 10)
	}
	if r.Kind == KindReturn || r.Kind == KindEnd {
		b = appendString(append(b, `,"o":`...), r.Outcome.String())
	}
	if r.Delay != 0 {
		b = strconv.AppendInt(append(b, `,"d":`...), int64(r.Delay), 10)
	}
	if r.Text != "" {
		b = appendString(append(b, `,"text":`...), r.Text)
	}
	return append(b, "}\n"...)
}

// appendHeader appends a line that says how the times of what follows compare.
func appendHeader(b []byte, clock string) []byte {
	return fmt.Appendf(b, "{\"k\":%q,\"v\":%d,\"clock\":%q}\n", header, formatVersion, clock)
}

// appendString quotes s for JSON.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			quoted, _ := json.Marshal(s) // no string fails
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// parseLine reads one line: a record, or a header and its clock.
func parseLine(text []byte) (r Record, clock string, err error) {
	var l line
	dec := json.NewDecoder(bytes.NewReader(text))
	if err := dec.Decode(&l); err != nil {
		return r, "", fmt.Errorf("not a line of a history: %w", err)
	}
	if rest := bytes.TrimSpace(text[dec.InputOffset():]); len(rest) > 0 {
		return r, "", fmt.Errorf("not a line of a history: %q after its object", rest)
	}
	if l.Kind == header {
		if l.Version != formatVersion {
			return r, "", fmt.Errorf("version %d of the format, this package reads %d", l.Version, formatVersion)
		}
		if l.Clock != "monotonic" && l.Clock != "wall" && l.Clock != runClock {
			return r, "", fmt.Errorf("unknown clock %q", l.Clock)
		}
		return r, l.Clock, nil
	}
	if l.At < 0 || l.At > 1<<62 {
		return r, "", fmt.Errorf("time %d is out of range", l.At)
	}
	r = Record{At: time.Duration(l.At), Instance: l.Instance, Text: l.Text, ID: l.ID, N: l.N, Delay: time.Duration(l.Delay)}
	if r.Kind, err = parseKind(l.Kind); err != nil {
		return r, "", err
	}
	// What a kind does not have is passed over: nothing would write it again.
	if r.Kind <= KindLeft {
		r.Seq = l.Seq
		switch {
		case l.Key != nil:
			r.Key = *l.Key
		case l.Key64 != nil:
			r.Key = string(l.Key64)
		default:
			return r, "", fmt.Errorf("%s without a key", l.Kind)
		}
	}
	if l.Outcome != "" && (r.Kind == KindReturn || r.Kind == KindEnd) {
		r.Outcome, err = parseOutcome(l.Outcome)
	}
	return r, "", err
}
