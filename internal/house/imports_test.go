package house

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// TestRootLinksOnlyTheStandardLibrary is a promise to the people who must
// review what a program contains: keyseq itself adds nothing but keyseq.
func TestRootLinksOnlyTheStandardLibrary(t *testing.T) {
	list := goCommand(t, ".", "list", "-deps", "-f", `{{if not .Standard}}{{.ImportPath}} {{len .CgoFiles}}{{end}}`, "./...")
	own := 0
	for line := range strings.Lines(list) {
		path, cgo, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case !within(path, modulePath):
			t.Errorf("the root module links %s; only its tests may use other modules, a broker's client belongs in a nested module", path)
		case cgo != "0":
			t.Errorf("%s uses cgo; the root module must build without a C compiler", path)
		default:
			own++
		}
	}
	if own == 0 {
		t.Error("go list found no package of the root module")
	}
}

// TestDependenciesPointOneWay keeps the contract at the bottom: jms knows
// nobody, a provider knows jms, and nobody outside uses internal packages.
func TestDependenciesPointOneWay(t *testing.T) {
	for _, f := range parseFiles(t, isSource) {
		for path := range f.importNames() {
			if !within(path, modulePath) {
				continue
			}
			to := strings.TrimPrefix(strings.TrimPrefix(path, modulePath), "/")
			if to == "" {
				to = "."
			}
			switch {
			case within(f.dir, "jms") && !within(to, "jms"):
				t.Errorf("%s imports %s; package jms is the contract and imports only the standard library", f.name, path)
			case within(f.dir, "provider") && within(to, "internal"):
				t.Errorf("%s imports %s; a provider uses only what every provider in the world could use", f.name, path)
			case within(f.dir, "provider") && !within(f.dir, "provider/providertest") && isLibrary(f) && !within(to, "jms") && !within(to, "provider"):
				t.Errorf("%s imports %s; a provider depends on package jms and not on the manager", f.name, path)
			}
		}
	}
}

// isLibrary tells a package that users import from a command and from code
// below a folder named internal.
func isLibrary(f goFile) bool {
	return f.Name.Name != "main" && !slices.Contains(strings.Split(f.dir, "/"), "internal")
}

// TestLibraryNeitherExitsNorPrints: words go to the user's slog.Logger, ends
// are returned as errors, and importing a package does no work.
func TestLibraryNeitherExitsNorPrints(t *testing.T) {
	forbidden := map[string][]string{
		"os":  {"Exit", "Stdout", "Stderr"},
		"fmt": {"Print", "Printf", "Println"},
		"log": {"Print", "Printf", "Println", "Fatal", "Fatalf", "Fatalln", "Panic", "Panicf", "Panicln", "Default"},
	}
	for _, f := range parseFiles(t, isSource) {
		if !isLibrary(f) || within(f.dir, "tools") || within(f.dir, "examples") {
			continue
		}
		for path, names := range forbidden {
			for _, n := range f.mentions(path, names...) {
				sel := n.(*ast.SelectorExpr)
				t.Errorf("%s:%d: %s.%s in a library", f.name, f.line(n), path, sel.Sel.Name)
			}
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s:%d: func init in a library: importing it must do nothing", f.name, f.line(d))
			}
		}
	}
}
