package house

import (
	"go/ast"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// maxLines is where a file has more than one concept in it. 80 to 250 is usual.
const maxLines = 500

func TestFilesAreShort(t *testing.T) {
	for _, f := range parseFiles(t, isSource) {
		if ast.IsGenerated(f.File) {
			continue
		}
		if lines := strings.Count(readFile(t, f.name), "\n"); lines > maxLines {
			t.Errorf("%s has %d lines, more than %d: split it by concept", f.name, lines, maxLines)
		}
	}
}

// TestPackagesAreDocumented: each folder says once, and only once, what it is.
func TestPackagesAreDocumented(t *testing.T) {
	documented := map[string][]string{}
	for _, f := range parseFiles(t, isSource) {
		if _, ok := documented[f.dir]; !ok {
			documented[f.dir] = nil
		}
		if f.Doc != nil && strings.TrimSpace(f.Doc.Text()) != "" {
			documented[f.dir] = append(documented[f.dir], f.name)
			first, _, _ := strings.Cut(f.Doc.Text(), "\n")
			if f.Name.Name != "main" && !strings.HasPrefix(first, "Package "+f.Name.Name+" ") {
				t.Errorf("%s: the package comment starts %q, want \"Package %s ...\"", f.name, first, f.Name.Name)
			}
		}
	}
	for dir, files := range documented {
		switch len(files) {
		case 0:
			t.Errorf("%s: no file has a package comment", dir)
		case 1:
		default:
			t.Errorf("%s: package comments in %s; keep one", dir, strings.Join(files, " and "))
		}
	}
}

// TestScriptsCanBeRun: a lost executable bit shows only on somebody else's machine.
func TestScriptsCanBeRun(t *testing.T) {
	for _, name := range treeFiles(t, func(name string) bool { return true }) {
		if !within(name, "scripts") && name != ".ci/run" {
			continue
		}
		if !strings.HasPrefix(readFile(t, name), "#!") {
			continue
		}
		stat, err := os.Stat(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		if stat.Mode()&0o111 == 0 {
			t.Errorf("%s is not executable", name)
		}
	}
}

// TestNoProgramsInTheTree: what a build makes goes to a folder named build. A
// program left elsewhere is committed one day, and stays in every clone.
func TestNoProgramsInTheTree(t *testing.T) {
	for _, name := range treeFiles(t, func(name string) bool { return !isGo(name) }) {
		if strings.HasPrefix(readFile(t, name), "\x7fELF") {
			t.Errorf("%s is a compiled program; remove it", name)
		}
	}
}
