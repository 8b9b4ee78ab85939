// Package mutants plants faults in the source, one at a time, to see whether a test notices. Those of testdata/mutants each break one row of what
// the library promises, and name the test that has to fail (Load); others are drawn at random from the source (Random).
//
// The source itself is not touched: go test -overlay compiles the changed file in place of the real one.
package mutants

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Mutant is one planted fault.
type Mutant struct {
	Name   string // of its file, without extension
	Row    string // what it breaks: B1, G3, H12 ...
	Breaks string // in words
	Pkg    string // of the test, as go test names it
	Test   string // that must fail
	Edits  []Edit
}

// Edit replaces a piece of a file that must be there exactly once, so that edits elsewhere do not matter.
type Edit struct {
	File, Search, Replace string
}

// Load reads all mutants of a directory, in the order of their names. A file looks like this:
//
//	row: B4
//	breaks: what was read behind a failure overtakes it
//	test: . TestB04_WhatWasReadBehindAFailureDoesNotOvertake
//	file: settlement.go
//	<<<<
//	return keyqueue.Left()
//	====
//	return keyqueue.Done()
//	>>>>
//
// There may be several edits, each with its own file line or in the file of the one before.
func Load(dir string) ([]Mutant, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return nil, err
	}
	var all []Mutant
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		m, err := parse(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		m.Name = strings.TrimSuffix(filepath.Base(name), ".txt")
		all = append(all, m)
	}
	return all, nil
}

const (
	begins, middle, ends = "<<<<\n", "====\n", ">>>>\n"
)

func parse(text string) (Mutant, error) {
	var m Mutant
	file := ""
	for text != "" {
		if rest, found := strings.CutPrefix(text, begins); found {
			search, rest, found := strings.Cut(rest, middle)
			if !found {
				return m, errors.New("an edit has no ====")
			}
			replace, rest, found := strings.Cut(rest, ends)
			if !found {
				return m, errors.New("an edit has no >>>>")
			}
			m.Edits = append(m.Edits, Edit{file, strings.TrimSuffix(search, "\n"), strings.TrimSuffix(replace, "\n")})
			text = rest
			continue
		}
		var line string
		line, text, _ = strings.Cut(text, "\n")
		field, value, _ := strings.Cut(line, ": ")
		switch field {
		case "row":
			m.Row = value
		case "breaks":
			m.Breaks = value
		case "test":
			m.Pkg, m.Test, _ = strings.Cut(value, " ")
		case "file":
			file = value
		case "":
		default:
			return m, fmt.Errorf("no such field: %q", line)
		}
	}
	if m.Row == "" || m.Breaks == "" || m.Test == "" || len(m.Edits) == 0 || file == "" {
		return m, errors.New("row, breaks, test, file and an edit are needed")
	}
	return m, nil
}

// Apply returns the changed files by their paths under root.
func (m Mutant) Apply(root string) (map[string]string, error) {
	changed := map[string]string{}
	for _, e := range m.Edits {
		path := filepath.Join(root, e.File)
		text, seen := changed[path]
		if !seen {
			b, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			text = string(b)
		}
		if n := strings.Count(text, e.Search); n != 1 {
			return nil, fmt.Errorf("%s: found %d times, must be once: %q", e.File, n, e.Search)
		}
		changed[path] = strings.Replace(text, e.Search, e.Replace, 1)
	}
	return changed, nil
}
