package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var images = filepath.Join("..", "..", "docs", "img")

// The pictures in docs are those of the descriptions, and each is shown somewhere.
func TestPicturesAreThoseInDocs(t *testing.T) {
	pictures, err := all()
	if err != nil {
		t.Fatal(err)
	}
	shown := ""
	for _, name := range []string{"guarantees.md", "failure.md"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		shown += string(text)
	}
	for _, p := range pictures {
		is, err := os.ReadFile(filepath.Join(images, p.name+".svg"))
		if err != nil || string(is) != p.svg() {
			t.Errorf("docs/img/%s.svg is not what pictures.txt describes (%v): go run ./internal/drawings", p.name, err)
		}
		if !strings.Contains(shown, "](img/"+p.name+".svg)") {
			t.Errorf("no document shows %s", p.name)
		}
	}
}

// Bars lie in their lanes' order, within the picture.
func TestBarsFit(t *testing.T) {
	pictures, err := all()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pictures {
		for _, l := range p.lanes {
			last := 0.0
			if float64(len([]rune(l.label)))*6.6 > left-8 {
				t.Errorf("%s: the label %q is too long", p.name, l.label)
			}
			for _, b := range l.bars {
				if b.from < last || b.to <= b.from || b.to > 100 {
					t.Errorf("%s, lane %q: bar %q from %v to %v", p.name, l.label, b.text, b.from, b.to)
				}
				if room := (b.to - b.from) / 100 * (width - left - right); float64(len([]rune(b.text)))*5.6 > room+4 {
					t.Errorf("%s, lane %q: %q needs more room than %.0f", p.name, l.label, b.text, room)
				}
				last = b.to
			}
		}
	}
}

func TestDescriptionsWithMistakes(t *testing.T) {
	for _, text := range []string{"lane | task 1-2 x", "= a: b\nlane | nothing 1-2 x", "= a: b\nlane | task one-two x", "= a: b\nlane | task", "= a: b\n@now x"} {
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), "pictures.txt:") {
			t.Errorf("%q: error %v, want one that names the line", text, err)
		}
	}
}
