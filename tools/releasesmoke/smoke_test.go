package main

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tree is a small project of the same shape as this one.
var tree = map[string]string{
	"go.mod":                    "module " + rootPath + "\n\ngo 1.26\n",
	"keyseq.go":                 "// Package keyseq is a small one.\npackage keyseq\n\n// N is a number.\nconst N = 1\n",
	"internal/x/x.go":           "package x\n",
	"provider/rabbitmq/go.mod":  "module " + rootPath + "/provider/rabbitmq\n\ngo 1.26\n\nrequire " + rootPath + " v0.3.0\n\nreplace " + rootPath + " => ../..\n",
	"provider/rabbitmq/p.go":    "package rabbitmq\n\nimport \"" + rootPath + "\"\n\n// M is more.\nconst M = keyseq.N + 1\n",
	"examples/rabbitmq/go.mod":  "module " + rootPath + "/examples/rabbitmq\n\ngo 1.26\n",
	"examples/rabbitmq/main.go": "package main\n\nfunc main() { broken }\n",
	"README.md": "# keyseq\n\n```go\nx := keyseq.N // a fragment\n```\n\n```go\npackage main\n\nimport \"" + rootPath +
		"/provider/rabbitmq\"\n\nfunc main() { println(rabbitmq.M) }\n```\n",
}

// TestRun releases the small project, whole and with one fault in it.
func TestRun(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  map[string]string // file to its text, "" takes it away
		failure string            // part of the error; "" for none
	}{
		{"whole", nil, ""},
		{"program does not compile", map[string]string{"README.md": strings.Replace(tree["README.md"], "rabbitmq.M)", "rabbitmq.Q)", 1)}, "README.md line 8"},
		{"program imports what is not published", map[string]string{"README.md": "```go\npackage main\n\nimport _ \"" + rootPath + "/gone\"\n\nfunc main() {}\n```\n"}, "gone"},
		{"broken package in a module that is there", map[string]string{"provider/rabbitmq/p.go": "package rabbitmq\n\nconst M = gone\n"}, "undefined: gone"},
		{"no program", map[string]string{"README.md": "# keyseq\n"}, "no complete program"},
		{"no README", map[string]string{"README.md": ""}, "README.md"},
		{"root version nobody has", map[string]string{"provider/rabbitmq/go.mod": strings.Replace(tree["provider/rabbitmq/go.mod"], "v0.3.0", "v0.0.0", 1)}, "released version"},
		{"works only through its replace", map[string]string{
			"testdata/dep/go.mod": "module example.com/dep\n\ngo 1.26\n",
			"testdata/dep/dep.go": "package dep\n",
			"go.mod":              tree["go.mod"] + "\nrequire example.com/dep v1.0.0\n\nreplace example.com/dep => ./testdata/dep\n",
			"other.go":            "package keyseq\n\nimport _ \"example.com/dep\"\n",
		}, "example.com/dep: module lookup disabled"},
		{"file left out of the zip", map[string]string{
			"keyseq.go":  "// Package keyseq is a small one.\npackage keyseq\n\nimport _ \"embed\"\n\n//go:embed sub/text\nvar N string\n",
			"sub/text":   "x",
			"sub/go.mod": "module " + rootPath + "/sub\n\ngo 1.26\n",
			"sub/sub.go": "package sub\n",
		}, "sub/text"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			files := maps.Clone(tree)
			maps.Copy(files, c.change)
			for name, text := range files {
				if text == "" {
					continue
				}
				name = filepath.Join(root, filepath.FromSlash(name))
				if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			// The test is about these files: nothing may come from a network.
			t.Setenv("GOPROXY", "off")
			var out strings.Builder
			err := run(t.Context(), root, false, &out)
			switch {
			case c.failure == "" && err != nil:
				t.Errorf("%v\n%s", err, out.String())
			case c.failure == "" && !strings.Contains(out.String(), "release smoke: ok (2 modules, 1 README programs)"):
				t.Errorf("output:\n%s", out.String())
			case c.failure != "" && (err == nil || !strings.Contains(err.Error(), c.failure)):
				t.Errorf("got error %v, want %q in it", err, c.failure)
			}
		})
	}
}

// TestModuleWithoutPackages: a module that only holds test code so far waits,
// and so does the README's program for it.
func TestModuleWithoutPackages(t *testing.T) {
	root := t.TempDir()
	for name, text := range tree {
		if name == "provider/rabbitmq/p.go" {
			name, text = "provider/rabbitmq/internal/p/p.go", "package p\n"
		}
		name = filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOPROXY", "off")
	var out strings.Builder
	if err := run(t.Context(), root, false, &out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "2 of these wait") {
		t.Errorf("want the module and the program to wait:\n%s", out.String())
	}
}

func TestReadmePrograms(t *testing.T) {
	name := filepath.Join(t.TempDir(), "README.md")
	text := "```go\npackage main\n```\n\n```sh\npackage main\n```\n\n```go\n// A comment first.\n\npackage main\n\nimport \"fmt\"\n```\n\n```go\npackage other\n```\n"
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	programs, err := readmePrograms(name)
	if err != nil {
		t.Fatal(err)
	}
	if len(programs) != 2 || programs[0].line != 2 || programs[1].line != 10 || len(programs[1].imports) != 1 || programs[1].imports[0] != "fmt" {
		t.Errorf("found %+v", programs)
	}
	if err := os.WriteFile(name, []byte("```go\npackage main\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readmePrograms(name); err == nil {
		t.Error("a code block without an end is no error")
	}
}
