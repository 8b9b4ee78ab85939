package orderaudit_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/keyseq/keyseq/orderaudit"
)

// TestChildWorksUntilKilled is no test of its own: the tests below start it as a process of its own. It handles messages
// as an instance would, says on its output what it did (the effect), and never ends by itself.
func TestChildWorksUntilKilled(t *testing.T) {
	path := os.Getenv("ORDERAUDIT_CHILD_FILE")
	if path == "" {
		t.Skip("runs as a child of the other tests")
	}
	rec, err := orderaudit.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	instance := os.Getenv("ORDERAUDIT_CHILD_INSTANCE")
	first := number(os.Getenv("ORDERAUDIT_CHILD_FIRST"))
	for seq := first; ; seq++ {
		a := rec.Start(instance, "k", seq, 1)
		fmt.Println("task", seq)
		a.Return(orderaudit.Settled)
		fmt.Println("commit", seq)
		a.End(orderaudit.Settled)
	}
}

// child starts the process and kills it with -9 after it has said a number of lines. It returns the last task and commit it spoke of.
func child(t *testing.T, path, instance string, first int64, lines int) (task, commit int64) {
	t.Helper()
	ctx := t.Context()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestChildWorksUntilKilled$")
	cmd.Env = append(os.Environ(), "ORDERAUDIT_CHILD_FILE="+path, "ORDERAUDIT_CHILD_INSTANCE="+instance, fmt.Sprintf("ORDERAUDIT_CHILD_FIRST=%d", first))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	says := bufio.NewScanner(out)
	for n := 0; says.Scan(); n++ {
		if n == lines {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
		switch what, seq, _ := strings.Cut(says.Text(), " "); what {
		case "task":
			task = number(seq)
		case "commit":
			commit = number(seq)
		}
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("the child ended by itself: %v", err)
	}
	return task, commit
}

// What a process did before kill -9 is in its file: the start of every task, and the intent of every commit.
func TestNothingWrittenIsLostByAKill(t *testing.T) {
	for _, lines := range []int{1, 50, 2001} {
		path := filepath.Join(t.TempDir(), "a.jsonl")
		task, commit := child(t, path, "A", 1, lines)
		h, err := orderaudit.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		var started, intended int64
		for _, r := range h.Records {
			switch r.Kind {
			case orderaudit.KindStart:
				started = r.Seq
			case orderaudit.KindReturn:
				intended = r.Seq
			}
		}
		if started < task || intended < commit {
			t.Errorf("killed after %d lines: task %d ran and %d are recorded, commit %d was made and %d are recorded", lines, task, started, commit, intended)
		}
		if v := h.Check(orderaudit.Options{Base: 1, Incomplete: true}); !v.OK() {
			t.Error(v)
		}
	}
}

// Two processes and their parent write three files. Joined they prove a takeover where B begins with the first message that A
// has not settled, and refute one that begins earlier or later.
func TestLoadJoinsProcesses(t *testing.T) {
	for _, c := range []struct {
		name  string
		shift int64
		want  orderaudit.Rule
	}{
		{name: "resumes", want: ""},
		{name: "repeats a settled one", shift: -1, want: orderaudit.G4},
		{name: "skips one", shift: 1, want: orderaudit.G3},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			file := func(name string) string { return filepath.Join(dir, name) }
			parent, err := orderaudit.OpenFile(file("parent"))
			if err != nil {
				t.Fatal(err)
			}
			child(t, file("a"), "A", 1, 100)
			parent.Killed("A")
			a, err := orderaudit.Load(file("a"))
			if err != nil {
				t.Fatal(err)
			}
			first := int64(1)
			for _, r := range a.Records {
				if r.Kind == orderaudit.KindEnd {
					first = r.Seq + 1
				}
			}
			if c.shift > 0 { // one that A has not begun
				first = a.Records[len(a.Records)-1].Seq + 1
			}
			child(t, file("b"), "B", first+c.shift, 100)
			parent.Killed("B")
			if err := parent.Close(); err != nil {
				t.Fatal(err)
			}
			h, err := orderaudit.Load(file("b"), file("parent"), file("a"))
			if err != nil {
				t.Fatal(err)
			}
			v := h.Check(orderaudit.Options{Base: 1, Incomplete: true})
			if v.Losses != 2 || v.Attempts < 95 {
				t.Errorf("joined: %v", v)
			}
			switch {
			case c.want == "" && !v.OK():
				t.Error(v)
			case c.want != "" && !slices.ContainsFunc(v.Violations, func(v orderaudit.Violation) bool { return v.Rule == c.want }):
				t.Errorf("not %s: %v", c.want, v)
			}
		})
	}
}

func TestOpenFileGoesOnAfterATornLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.jsonl")
	for i := range int64(3) {
		rec, err := orderaudit.OpenFile(path)
		if err != nil {
			t.Fatal(err)
		}
		rec.Start("A", "k", i, 1).End(orderaudit.Settled)
		if err := rec.Close(); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(`{"k":"start","t":17,"i":`); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	h, err := orderaudit.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if h.Torn != 3 || len(h.Records) != 6 {
		t.Errorf("%d torn lines, %d records", h.Torn, len(h.Records))
	}
	if v := h.Check(orderaudit.Options{}); !v.OK() {
		t.Error(v)
	}
}

func TestLostRecordsAreNoticed(t *testing.T) {
	rec, err := orderaudit.OpenFile(filepath.Join(t.TempDir(), "a.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	rec.Start("A", "k", 0, 1).End(orderaudit.Settled)
	if v := rec.History().Check(orderaudit.Options{}); !v.OK() {
		t.Fatal(v)
	}
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	rec.Sent("k", 1)
	if err := rec.Close(); err == nil {
		t.Error("Close says nothing of a record that could not be written")
	}
	h := rec.History()
	if v := h.Check(orderaudit.Options{}); v.OK() || v.Violations[0].Rule != orderaudit.Malformed {
		t.Errorf("half a history passes: %v", v)
	}
	if _, err := h.WriteTo(&strings.Builder{}); err == nil {
		t.Error("half a history is saved as a whole one")
	}
	if _, err := orderaudit.OpenFile(t.TempDir()); err == nil {
		t.Error("a directory was opened")
	}
}

// A bound that a debugger's breakpoint or a full disk would break by far, and nothing else.
func TestFileRecorderIsCheap(t *testing.T) {
	if testing.Short() {
		t.Skip("measures")
	}
	rec, err := orderaudit.OpenFile(filepath.Join(t.TempDir(), "a.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	const n = 20000
	began := time.Now()
	for seq := range int64(n) {
		rec.Sent("k", seq)
	}
	if each := time.Since(began) / n; each > time.Millisecond {
		t.Errorf("%v a record", each)
	}
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
}
