package orderaudit

import (
	"fmt"
	"slices"
	"time"
)

func (t *timeline) draw() {
	last := t.rows[len(t.rows)-1]
	bottom := last.top + last.height()
	t.printf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n",
		timelineWidth, bottom+timelineBottom)
	t.printf(`<rect width="100%%" height="100%%" fill="#ffffff"/>` + "\n")
	t.printf(`<text x="10" y="20" font-size="15" font-weight="bold">key &quot;%s&quot;</text>`+"\n", text(t.run.key))
	t.legend()
	t.axis(bottom)
	for _, r := range t.rows {
		t.printf(`<rect x="%d" y="%d" width="%d" height="%d" fill="#f3f4f6"/>`+"\n",
			timelineLeft, r.top-laneGap/2, timelineWidth-timelineLeft-10, r.height())
		t.printf(`<text x="10" y="%d">%s</text>`+"\n", r.top+laneHeight/2+4, text(shorten(r.instance, 15)))
		for i, lane := range r.lanes {
			for _, a := range lane {
				t.task(a, r.top+i*(laneHeight+laneGap))
			}
		}
	}
	for _, r := range t.rows {
		t.marks(r)
	}
	t.printf("</svg>\n")
}

func (t *timeline) legend() {
	x := 10
	for o, colour := range outcomeColours {
		t.printf(`<rect x="%d" y="32" width="12" height="12" fill="%s"/><text x="%d" y="42">%s</text>`+"\n", x, colour, x+16, Outcome(o))
		x += 40 + 7*len(Outcome(o).String())
	}
	for _, mark := range []struct{ colour, name string }{{"#d50000", "loss"}, {"#000000", "killed"}, {"#00a152", "started"}, {"#0277bd", "stopping"}} {
		t.printf(`<line x1="%d" y1="32" x2="%d" y2="44" stroke="%s" stroke-width="2"/><text x="%d" y="42">%s</text>`+"\n", x, x, mark.colour, x+6, mark.name)
		x += 30 + 7*len(mark.name)
	}
}

// axis draws a tick at every round time, ten at most.
func (t *timeline) axis(bottom int) {
	step := roundStep(t.to - t.from)
	for at := (t.from + step - 1) / step * step; at <= t.to; at += step {
		x := t.xAt(at)
		t.printf(`<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#cfd8dc"/>`+"\n", x, timelineTop-laneGap, x, bottom+4)
		t.printf(`<text x="%.1f" y="%d" text-anchor="middle" fill="#546e7a" font-size="11">%v</text>`+"\n", x, bottom+20, at)
	}
}

// roundStep is 1, 2 or 5 times a power of ten nanoseconds, and goes into span at most ten times.
func roundStep(span time.Duration) time.Duration {
	for power := time.Duration(1); ; power *= 10 {
		for _, step := range []time.Duration{power, 2 * power, 5 * power} {
			if span/step <= 10 {
				return step
			}
		}
	}
}

// task draws one attempt: its task as a box, its settlement as a bar.
func (t *timeline) task(a *attempt, y int) {
	outcome := a.asOf(never - 1)
	colour := outcomeColours[outcome]
	from, to := t.x(a.start), t.x(a.taskEnd)
	width := max(to-from, 1.5)
	dash := ""
	if a.taskEnd == never {
		dash = ` stroke="#424242" stroke-dasharray="4 3"`
	}
	t.printf(`<g><title>message %d, attempt %d on %s: +%v, %v</title>`+"\n", a.msg.seq, a.n, text(a.instance), t.events.at(a.start), outcome)
	t.printf(`<rect x="%.1f" y="%d" width="%.1f" height="%d" rx="2" fill="%s"%s/>`+"\n", from, y, width, laneHeight-6, colour, dash)
	if a.end != never && a.end > a.taskEnd {
		t.printf(`<rect x="%.1f" y="%d" width="%.1f" height="4" fill="%s" opacity="0.6"/>`+"\n", to, y+laneHeight-10, max(t.x(a.end)-to, 1), colour)
	}
	label := fmt.Sprint(a.msg.seq)
	if a.n > 1 {
		label += fmt.Sprintf(" (%d)", a.n)
	}
	if float64(7*len(label)+2) <= width {
		t.printf(`<text x="%.1f" y="%d" text-anchor="middle" fill="#ffffff">%s</text>`+"\n", from+width/2, y+14, label)
	}
	t.printf("</g>\n")
}

// marks draws what happened to an instance, over its own lanes.
func (t *timeline) marks(r row) {
	lines := func(positions []int, colour, dash string) {
		for _, pos := range positions {
			if at := t.events.at(pos); at < t.from || at > t.to {
				continue
			}
			x := t.x(pos)
			t.printf(`<g><title>%s</title><line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="%s" stroke-width="2"%s/></g>`+"\n",
				text(t.events.records[pos].String()), x, r.top-laneGap, x, r.top+r.height()-laneGap/2, colour, dash)
		}
	}
	lines(t.events.starts[r.instance], "#00a152", ` stroke-dasharray="2 2"`)
	lines(t.events.stops[r.instance], "#0277bd", ` stroke-dasharray="2 2"`)
	var losses []int
	for _, l := range t.events.lossesOf(r.instance).losses {
		losses = append(losses, l.from, l.to)
	}
	lines(slices.Compact(losses), "#d50000", ` stroke-dasharray="6 3"`)
	lines(t.events.kills[r.instance], "#000000", "")
}

func shorten(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}
