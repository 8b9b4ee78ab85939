package orderaudit

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"time"
)

// Measures of a timeline in pixels.
const (
	timelineWidth  = 1200
	timelineLeft   = 110 // for the names of the instances
	timelineTop    = 64  // for the title and the legend
	laneHeight     = 26
	laneGap        = 6
	timelineBottom = 34 // for the axis
)

var outcomeColours = [...]string{
	Open: "#9e9e9e", Settled: "#2e7d32", Failed: "#e65100", DeadLettered: "#6a1b9a", Discarded: "#5d4037", GivenBack: "#1565c0", Unknown: "#b8860b",
}

// WriteTimeline draws the attempts of one key as an SVG picture: a row an instance (more where tasks overlap), a box a task in
// the colour of its outcome, a thin bar from its return to the end of its settlement, and the losses, kills and
// stops of these instances. It fails when the history has no attempt of the key. Draw a violation with
//
//	(&orderaudit.History{Records: v.Records}).WriteTimeline(w, v.Key)
func (h *History) WriteTimeline(w io.Writer, key string) error {
	m := build(h, Options{})
	i := slices.IndexFunc(m.keys, func(run *keyRun) bool { return run.key == key })
	if i < 0 || len(m.keys[i].attempts) == 0 {
		return fmt.Errorf("orderaudit: no attempt of key %q is recorded: there is nothing to draw", key)
	}
	t := timeline{events: &m.events, run: m.keys[i]}
	t.layOut()
	t.draw()
	if _, err := w.Write(t.out.Bytes()); err != nil {
		return fmt.Errorf("orderaudit: cannot write the timeline of key %q: %w", key, err)
	}
	return nil
}

type timeline struct {
	events   *events
	run      *keyRun
	from, to time.Duration
	rows     []row
	out      bytes.Buffer
}

// row is an instance and its lanes.
type row struct {
	instance string
	lanes    [][]*attempt
	top      int
}

func (r row) height() int { return len(r.lanes) * (laneHeight + laneGap) }

// layOut puts each attempt into the first lane of its instance that is free when it starts.
func (t *timeline) layOut() {
	t.from, t.to = t.events.at(t.run.attempts[0].start), 0
	see := func(pos int) {
		if pos != never {
			t.from, t.to = min(t.from, t.events.at(pos)), max(t.to, t.events.at(pos))
		}
	}
	for _, a := range t.run.attempts {
		see(a.start)
		see(a.taskEnd)
		see(a.end)
		t.place(a)
	}
	for _, pos := range t.events.near(t.run) {
		see(pos)
	}
	if t.to <= t.from {
		t.to = t.from + 1
	}
	t.to += (t.to - t.from) / 50 // so that what is still open shows
	top := timelineTop
	for i := range t.rows {
		t.rows[i].top = top
		top += t.rows[i].height() + 2*laneGap
	}
}

func (t *timeline) place(a *attempt) {
	i := slices.IndexFunc(t.rows, func(r row) bool { return r.instance == a.instance })
	if i < 0 {
		i = len(t.rows)
		t.rows = append(t.rows, row{instance: a.instance})
	}
	r := &t.rows[i]
	for j, lane := range r.lanes {
		if last := lane[len(lane)-1]; last.taskEnd <= a.start {
			r.lanes[j] = append(lane, a)
			return
		}
	}
	r.lanes = append(r.lanes, []*attempt{a})
}

// x is the place of a position; what never came lies at the right edge.
func (t *timeline) x(pos int) float64 {
	if pos == never {
		return timelineWidth - 10
	}
	return t.xAt(t.events.at(pos))
}

func (t *timeline) xAt(at time.Duration) float64 {
	const room = timelineWidth - timelineLeft - 10
	return timelineLeft + room*float64(at-t.from)/float64(t.to-t.from)
}

func (t *timeline) printf(format string, args ...any) { fmt.Fprintf(&t.out, format, args...) }

// text escapes what a user has named.
func text(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // a bytes.Buffer takes everything
	return b.String()
}
