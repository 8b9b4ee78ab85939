package orderaudit

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// History is a recorded run: its records in the order in which they happened. Get one from Recorder.History, Load or
// Read, or write one by hand.
type History struct {
	Records []Record
	// Torn is how many lines were cut off by a killed process: of each opening of a file at most the last.
	Torn int

	err   error // of recording or reading; Check reports it, so that half a history never passes
	clock string
}

// runClock is of times that count from the start of their own run.
const runClock = "run"

// Load joins the files of one run, in the order of their times: those of several processes on one machine, or one saved with
// WriteTo. It fails on a file that cannot be read, on lines that are no records, and on files whose clocks differ.
func Load(paths ...string) (*History, error) {
	all := &History{}
	for i, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("orderaudit: cannot load a history: %w", err)
		}
		h, err := Read(f)
		_ = f.Close() // only read
		if err != nil {
			return nil, fmt.Errorf("orderaudit: %s: %w", path, err)
		}
		if i > 0 && (h.clock != all.clock || h.clock == runClock) {
			return nil, fmt.Errorf("orderaudit: %s: its times (clock: %s) do not compare with those of %s (clock: %s)", path, h.clock, paths[0], all.clock)
		}
		all.clock = h.clock
		all.Records = append(all.Records, h.Records...)
		all.Torn += h.Torn
	}
	slices.SortStableFunc(all.Records, func(a, b Record) int { return cmp.Compare(a.At, b.At) })
	if len(all.Records) > 0 {
		first := all.Records[0].At
		for i := range all.Records {
			all.Records[i].At -= first
		}
	}
	all.clock = runClock
	return all, nil
}

// Read reads one saved history or one recorder's file. Times stay as they are.
func Read(r io.Reader) (*History, error) {
	h := &History{}
	in := bufio.NewReaderSize(r, 1<<16)
	whole := true  // the last line ends with a newline
	var torn error // of the line before, which only a header or the end may follow
	for number := 1; ; number++ {
		text, err := in.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		end := err != nil
		if len(text) > 0 {
			whole = text[len(text)-1] == '\n'
		}
		if len(bytes.TrimSpace(text)) > 0 {
			rec, clock, err := parseLine(text)
			switch {
			case err != nil && torn != nil:
				return nil, torn
			case err != nil:
				torn = fmt.Errorf("line %d: %w", number, err)
			case clock != "":
				if h.clock != "" && clock != h.clock {
					return nil, fmt.Errorf("line %d: the clock changes from %s to %s", number, h.clock, clock)
				}
				if h.clock = clock; torn != nil {
					h.Torn++
				}
				torn = nil
			case torn != nil:
				return nil, torn
			case h.clock == "":
				return nil, fmt.Errorf("line %d: a record before any header", number)
			default:
				h.Records = append(h.Records, rec)
			}
		}
		if end {
			break
		}
	}
	if torn != nil {
		if whole {
			return nil, torn
		}
		h.Torn++
	}
	if h.clock == "" {
		return nil, errors.New("not a history: it has no header")
	}
	return h, nil
}

// WriteTo saves the history, for Load and Read to read again: text, a JSON object a line.
func (h *History) WriteTo(w io.Writer) (int64, error) {
	if h.err != nil {
		return 0, fmt.Errorf("orderaudit: not saved, the history is incomplete: %w", h.err)
	}
	clock := cmp.Or(h.clock, runClock)
	var written int64
	buf := appendHeader(nil, clock)
	for i := 0; ; i++ {
		if i == len(h.Records) || len(buf) > 1<<16 {
			n, err := w.Write(buf)
			written += int64(n)
			if err != nil {
				return written, fmt.Errorf("orderaudit: cannot save a history: %w", err)
			}
			buf = buf[:0]
		}
		if i == len(h.Records) {
			return written, nil
		}
		buf = appendRecord(buf, h.Records[i])
	}
}
