package mutants

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const root = "../.."

// Every planted fault still fits the source, and its test is there.
func TestMutantsApply(t *testing.T) {
	all, err := Load(filepath.Join(root, "testdata", "mutants"))
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatal("no mutants")
	}
	tests := map[string]string{}
	for _, m := range all {
		if _, err := m.Apply(root); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
		if _, read := tests[m.Pkg]; !read {
			files, err := filepath.Glob(filepath.Join(root, m.Pkg, "*_test.go"))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				b, err := os.ReadFile(f)
				if err != nil {
					t.Fatal(err)
				}
				tests[m.Pkg] += string(b)
			}
		}
		if found, err := regexp.MatchString(`(?m)^func `+m.Test+`\(`, tests[m.Pkg]); err != nil || !found {
			t.Errorf("%s: no test %s in %s", m.Name, m.Test, m.Pkg)
		}
	}
}

func TestApplyRefusesWhatIsNotUnique(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.go"), []byte("x\ny\ny\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for search, ok := range map[string]bool{"x": true, "y": false, "z": false} {
		m, err := parse("row: B1\nbreaks: it\ntest: . TestIt\nfile: a.go\n<<<<\n" + search + "\n====\nw\n>>>>\n")
		if err != nil {
			t.Fatal(err)
		}
		changed, err := m.Apply(dir)
		if ok != (err == nil) || ok && changed[filepath.Join(dir, "a.go")] != "w\ny\ny\n" {
			t.Errorf("%q: %v, %v", search, changed, err)
		}
	}
	for _, text := range []string{"", "row: B1\n", "what: x\n", "<<<<\na\n", "<<<<\na\n====\nb\n"} {
		if _, err := parse(text); err == nil {
			t.Errorf("accepted: %q", text)
		}
	}
}

// Random mutations are where they say.
func TestRandom(t *testing.T) {
	dir := t.TempDir()
	src := "package p\n\nfunc f(a int) bool {\n\tif a > 3 {\n\t\treturn true\n\t}\n\ta++\n\tm.log.Info(\"x\")\n\treturn false\n}\n"
	if err := os.WriteFile(filepath.Join(dir, "p.go"), []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := Random(dir, "p.go")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range all {
		got = append(got, m.Name+" "+m.Breaks)
		if changed, err := m.Apply(dir); err != nil || changed[filepath.Join(dir, "p.go")] == src {
			t.Errorf("%s: %v", m.Name, err)
		}
	}
	want := "p.go:7:2 statement dropped: a++|p.go:4:5 condition negated: a > 3|p.go:4:9 constant changed: 3|p.go:5:10 returned value changed: true|p.go:9:9 returned value changed: false"
	if s := strings.Join(got, "|"); s != want {
		t.Errorf("got  %s\nwant %s", s, want)
	}
}
