package house

import (
	"go/ast"
	"regexp"
	"strings"
	"testing"
)

// pathWords are source files that may name a place of one machine, with the reason.
var pathWords = map[string]string{}

// machinePath finds folders that exist on the machine of whoever wrote the line.
var machinePath = regexp.MustCompile(`(^|[^A-Za-z0-9_.\-/])/(work|root|tmp|home)/`)

// TestNoMachinePaths: a path in a string constant works on one machine. Tests
// are checked for the folders of developers only; /tmp there is no promise.
func TestNoMachinePaths(t *testing.T) {
	for _, f := range parseFiles(t, isSource) {
		if allowed(pathWords, f.name) {
			continue
		}
		ast.Inspect(f.File, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && machinePath.MatchString(strings.Trim(lit.Value, "\"`")) {
				t.Errorf("%s:%d: %s is a path of one machine; use os.MkdirTemp or a setting", f.name, f.line(n), lit.Value)
			}
			return true
		})
	}
}

// TestTextNamesNoMachine looks at everything people read or run. The words are
// put together here so that this file does not contain them.
func TestTextNamesNoMachine(t *testing.T) {
	hosts := []string{"proxy." + "golang.org", "sum." + "golang.org", "deb." + "debian.org", "security." + "debian.org", "goproxy" + ".cn", "goproxy" + ".io"}
	words := regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)
	folders := regexp.MustCompile(`(^|[^A-Za-z0-9_.\-/])/(work|farm)/`)
	text := func(name string) bool {
		for _, suffix := range []string{".go", ".md", ".sh", ".bash", ".yaml", ".yml", ".c", ".h", ".txt", ".conf", "Makefile", "go.mod", "go.work"} {
			if strings.HasSuffix(name, suffix) {
				return true
			}
		}
		return within(name, "scripts") || within(name, ".ci")
	}
	for _, name := range treeFiles(t, text) {
		number := 0
		for line := range strings.Lines(readFile(t, name)) {
			number++
			for _, host := range hosts {
				if strings.Contains(line, host) {
					t.Errorf("%s:%d: names the registry host %s", name, number, host)
				}
			}
			if word := words.FindString(line); word != "" {
				t.Errorf("%s:%d: %s; do it, or open an issue", name, number, word)
			}
			if folders.MatchString(line) {
				t.Errorf("%s:%d: a path of one machine: %s", name, number, strings.TrimSpace(line))
			}
		}
	}
}
