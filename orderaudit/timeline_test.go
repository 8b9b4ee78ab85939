package orderaudit_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/keyseq/keyseq/orderaudit"
)

const takeoverScript = `
takeover B 20ms
sent 1 2 3 4 5
A start 1
wait 30ms
A return 1 failed
wait 20ms
A start 1 2
wait 30ms
A return 1 settled
wait 8ms
A end 1 settled
A start 2
wait 25ms
A return 2 dead-lettered
wait 6ms
A end 2 dead-lettered
A start 3
wait 20ms
loss A 5
wait 20ms
started B
wait 20ms
B start 3
wait 25ms
A return 3 given-back
B return 3 settled
wait 5ms
B end 3 settled
killed A
B start 4
wait 30ms
B return 4 settled
wait 15ms
B end 4 unknown
B start 5
wait 20ms
stopping B
wait 20ms
B return 5 given-back
B end 5 given-back
left 5
`

// The picture is well-formed and has every attempt, outcome and event in it; what a user named is escaped.
func TestTimeline(t *testing.T) {
	h := script(t, "key <&\"\x01\n"+takeoverScript)
	if v := h.Check(orderaudit.Options{}); !v.OK() {
		t.Fatal(v)
	}
	var svg bytes.Buffer
	if err := h.WriteTimeline(&svg, "<&\"\x01"); err != nil {
		t.Fatal(err)
	}
	if path := os.Getenv("ORDERAUDIT_SVG"); path != "" { // to look at it
		if err := os.WriteFile(path, svg.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for dec := xml.NewDecoder(bytes.NewReader(svg.Bytes())); ; {
		if _, err := dec.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, part := range []string{
		"message 1, attempt 1 on A", ">1 (2)<", "message 3, attempt 1 on A", "message 3, attempt 1 on B", "unknown</title>",
		"A: loss (cut, at most 5 in flight)", "A: killed", "B: stopping", "B: started", "&lt;&amp;",
	} {
		if !strings.Contains(svg.String(), part) {
			t.Errorf("no %q in the picture", part)
		}
	}
	if err := h.WriteTimeline(&svg, "other"); err == nil {
		t.Error("a key without attempts is drawn")
	}
}

// Tasks of an instance that overlap lie in lanes of their own.
func TestTimelineShowsOverlap(t *testing.T) {
	lanes := func(text string) int {
		var svg bytes.Buffer
		if err := script(t, text).WriteTimeline(&svg, "k"); err != nil {
			t.Fatal(err)
		}
		places := map[string]bool{}
		for _, line := range strings.Split(svg.String(), "\n") {
			if strings.Contains(line, `rx="2"`) {
				_, y, _ := strings.Cut(line, ` y="`)
				y, _, _ = strings.Cut(y, `"`)
				places[y] = true
			}
		}
		return len(places)
	}
	if n := lanes("A run 1 2 3"); n != 1 {
		t.Errorf("one after another in %d lanes", n)
	}
	if n := lanes("A start 1\nA start 2\nA start 3\nA return 2 settled\nA run 4"); n != 3 {
		t.Errorf("three at once in %d lanes", n)
	}
}
