// Command drawings makes the pictures of docs/guarantees.md and docs/failure.md: timelines, drawn from the descriptions in pictures.txt.
//
//	go run ./internal/drawings
//
// A picture is a line "= name: title", then a lane a line: a label and bars, each " | kind from-to text" with times of 0 to 100; "@time text" is a
// mark across all lanes.
package main

import (
	"embed"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strings"
)

//go:embed pictures.txt
var descriptions embed.FS

func main() {
	pictures, err := all()
	if err == nil {
		err = write(filepath.Join("docs", "img"), pictures)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(dir string, pictures []picture) error {
	for _, p := range pictures {
		if err := os.WriteFile(filepath.Join(dir, p.name+".svg"), []byte(p.svg()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

type picture struct {
	name, title string
	lanes       []lane
	marks       []mark
}

type lane struct {
	label string
	bars  []bar
}

type bar struct {
	kind     string
	from, to float64
	text     string
}

type mark struct {
	at   float64
	text string
}

// all reads the descriptions.
func all() ([]picture, error) {
	data, err := descriptions.ReadFile("pictures.txt")
	if err != nil {
		return nil, err
	}
	return parse(string(data))
}

func parse(text string) (pictures []picture, err error) {
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if err := parseLine(&pictures, line); err != nil {
			return nil, fmt.Errorf("pictures.txt:%d: %q: %w", i+1, line, err)
		}
	}
	return pictures, nil
}

func parseLine(pictures *[]picture, line string) error {
	if line == "" {
		return nil
	}
	if rest, ok := strings.CutPrefix(line, "= "); ok {
		name, title, _ := strings.Cut(rest, ": ")
		*pictures = append(*pictures, picture{name: name, title: title})
		return nil
	}
	if len(*pictures) == 0 {
		return fmt.Errorf("no picture has begun")
	}
	p := &(*pictures)[len(*pictures)-1]
	if rest, ok := strings.CutPrefix(line, "@"); ok {
		var m mark
		at, text, _ := strings.Cut(rest, " ")
		if _, err := fmt.Sscan(at, &m.at); err != nil {
			return err
		}
		m.text = text
		p.marks = append(p.marks, m)
		return nil
	}
	parts := strings.Split(line, " | ")
	l := lane{label: parts[0]}
	for _, part := range parts[1:] {
		var b bar
		words := strings.SplitN(part, " ", 3)
		if len(words) < 2 {
			return fmt.Errorf("a bar is: kind from-to text")
		}
		if len(words) == 3 {
			b.text = words[2]
		}
		b.kind = words[0]
		if _, known := colours[b.kind]; !known {
			return fmt.Errorf("no kind %q", b.kind)
		}
		if _, err := fmt.Sscanf(words[1], "%f-%f", &b.from, &b.to); err != nil {
			return err
		}
		l.bars = append(l.bars, b)
	}
	p.lanes = append(p.lanes, l)
	return nil
}

// colours of the kinds of bars: fill and edge. They are told apart in grey too.
var colours = map[string][2]string{
	"task":   {"#cfe3f7", "#2a6099"},
	"commit": {"#cdebd0", "#2e7d32"},
	"wait":   {"#f4f4f4", "#999999"},
	"fail":   {"#f9d0cd", "#b3261e"},
	"lost":   {"#ffffff", "#b3261e"},
	"queue":  {"#fff3cd", "#a07900"},
}

const (
	width, left, right = 880.0, 140.0, 20.0
	top, row, height   = 62.0, 40.0, 28.0
)

func x(at float64) float64 { return left + at/100*(width-left-right) }

func (p picture) svg() string {
	total := top + row*float64(len(p.lanes)) + 14
	var b strings.Builder
	f := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	f(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="Helvetica, Arial, sans-serif" font-size="12">`, width, total)
	f(`<title>%s</title>`, html.EscapeString(p.title))
	f(`<rect width="%.0f" height="%.0f" fill="#ffffff"/>`, width, total)
	f(`<text x="12" y="20" font-size="14" font-weight="bold">%s</text>`, html.EscapeString(p.title))
	for i, l := range p.lanes {
		y := top + row*float64(i)
		f(`<text x="%.1f" y="%.1f" text-anchor="end">%s</text>`, left-8, y+height/2+4, html.EscapeString(l.label))
		f(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#dddddd"/>`, left, y+height+4, width-right, y+height+4)
		for _, bar := range l.bars {
			c := colours[bar.kind]
			dash := ""
			if bar.kind == "wait" || bar.kind == "lost" {
				dash = ` stroke-dasharray="4 3"`
			}
			f(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.0f" rx="3" fill="%s" stroke="%s"%s/>`, x(bar.from), y, x(bar.to)-x(bar.from), height, c[0], c[1], dash)
			f(`<text x="%.1f" y="%.1f" text-anchor="middle" font-size="11">%s</text>`, (x(bar.from)+x(bar.to))/2, y+height/2+4, html.EscapeString(bar.text))
		}
	}
	for _, m := range p.marks {
		anchor := "middle"
		switch {
		case m.at > 85:
			anchor = "end"
		case m.at < 8:
			anchor = "start"
		}
		f(`<line x1="%.1f" y1="48" x2="%.1f" y2="%.1f" stroke="#b3261e" stroke-dasharray="2 3"/>`, x(m.at), x(m.at), total-8)
		f(`<text x="%.1f" y="44" text-anchor="%s" font-size="11" fill="#b3261e">%s</text>`, x(m.at), anchor, html.EscapeString(m.text))
	}
	f(`<text x="%.1f" y="%.1f" text-anchor="end" font-size="10" fill="#777777">time →</text>`, width-right, total-2)
	b.WriteString("</svg>\n")
	return b.String()
}
