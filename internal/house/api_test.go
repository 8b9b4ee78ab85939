package house

import (
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// apiFile is the golden list of what users can name; one line each, so that a
// change of the API is a line in a diff and not an accident.
const apiFile = "testdata/api.txt"

// maxRootNames bounds package keyseq: what comes later gets a package of its own.
const maxRootNames = 60

// TestAPI compares the exported declarations of every package of the root
// module that users can import with the golden list.
func TestAPI(t *testing.T) {
	var lines []string
	for _, pkg := range exportedPackages(t) {
		lines = append(lines, describePackage(pkg)...)
		if pkg.Path() == modulePath {
			if n := len(exportedNames(pkg)); n > maxRootNames {
				t.Errorf("package keyseq exports %d names; it stays at %d or below, later powers get packages of their own", n, maxRootNames)
			}
		}
	}
	got := strings.Join(lines, "\n") + "\n"
	name := filepath.Join(root, filepath.FromSlash(apiFile))
	if *update {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatalf("%v; write it with: go test ./internal/house -update", err)
	}
	if diff := lineDiff(string(want), got); diff != "" {
		t.Errorf("the exported declarations differ from %s:\n%s\nIf that is meant: go test ./internal/house -update, and a line in CHANGELOG.md.", apiFile, diff)
	}
}

// exportedPackages loads the packages from the compiler's export data: the
// types as a user's compiler sees them, constants with their values.
func exportedPackages(t *testing.T) []*types.Package {
	t.Helper()
	var paths []string
	list := goCommand(t, ".", "list", "-f", "{{.ImportPath}} {{.Name}}", "./...")
	for line := range strings.Lines(list) {
		path, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name != "main" && !strings.Contains(path+"/", "/internal/") && !within(path, modulePath+"/examples") {
			paths = append(paths, path)
		}
	}
	if len(paths) == 0 {
		t.Fatal("the root module has no package a user can import")
	}
	exports := map[string]string{}
	list = goCommand(t, ".", append([]string{"list", "-deps", "-export", "-f", "{{.ImportPath}} {{.Export}}"}, paths...)...)
	for line := range strings.Lines(list) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		exports[path] = file
	}
	slices.Sort(paths)
	imp := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	var pkgs []*types.Package
	for _, path := range paths {
		pkg, err := imp.Import(path)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		pkgs = append(pkgs, pkg)
	}
	return pkgs
}

func exportedNames(pkg *types.Package) []string {
	return slices.DeleteFunc(pkg.Scope().Names(), func(name string) bool { return !token.IsExported(name) })
}

// describePackage returns a line for each exported declaration, field and
// method, in the manner of the Go project's own api files.
func describePackage(pkg *types.Package) []string {
	qualify := func(other *types.Package) string {
		if other == pkg {
			return ""
		}
		return other.Name()
	}
	text := func(t types.Type) string { return types.TypeString(t, qualify) }
	signature := func(f *types.Func) string {
		return f.Name() + strings.TrimPrefix(text(f.Signature()), "func")
	}
	name := strings.TrimPrefix(strings.TrimPrefix(pkg.Path(), modulePath), "/")
	if name == "" {
		name = pkg.Name()
	}
	var lines []string
	add := func(format string, args ...any) {
		lines = append(lines, fmt.Sprintf("pkg %s, ", name)+fmt.Sprintf(format, args...))
	}
	for _, n := range exportedNames(pkg) {
		switch obj := pkg.Scope().Lookup(n).(type) {
		case *types.Const:
			add("const %s %s = %s", n, text(obj.Type()), obj.Val().ExactString())
		case *types.Var:
			add("var %s %s", n, text(obj.Type()))
		case *types.Func:
			add("func %s", signature(obj))
		case *types.TypeName:
			if obj.IsAlias() {
				add("type %s = %s", n, text(types.Unalias(obj.Type())))
				continue
			}
			named := obj.Type().(*types.Named)
			params := ""
			if tp := named.TypeParams(); tp.Len() > 0 {
				params = strings.TrimPrefix(text(named), n)
			}
			switch under := named.Underlying().(type) {
			case *types.Struct:
				add("type %s%s struct", n, params)
				for f := range under.Fields() {
					switch {
					case !f.Exported():
					case f.Embedded():
						add("type %s struct, embedded %s", n, text(f.Type()))
					default:
						add("type %s struct, %s %s", n, f.Name(), text(f.Type()))
					}
				}
			case *types.Interface:
				add("type %s%s interface", n, params)
				for e := range under.EmbeddedTypes() {
					add("type %s interface, embedded %s", n, text(e))
				}
				for m := range under.ExplicitMethods() {
					if m.Exported() {
						add("type %s interface, %s", n, signature(m))
					} else {
						add("type %s interface, unexported methods", n)
					}
				}
			default:
				add("type %s%s %s", n, params, text(under))
			}
			for m := range named.Methods() {
				if m.Exported() {
					add("method (%s) %s", text(m.Signature().Recv().Type()), signature(m))
				}
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// lineDiff shows what two sorted lists do not share.
func lineDiff(want, got string) string {
	lines := func(s string) map[string]bool {
		set := map[string]bool{}
		for line := range strings.Lines(s) {
			set[strings.TrimSuffix(line, "\n")] = true
		}
		return set
	}
	w, g := lines(want), lines(got)
	var diff []string
	for line := range w {
		if !g[line] {
			diff = append(diff, line+"\x00-")
		}
	}
	for line := range g {
		if !w[line] {
			diff = append(diff, line+"\x00+")
		}
	}
	slices.Sort(diff)
	for i, line := range diff {
		text, sign, _ := strings.Cut(line, "\x00")
		diff[i] = sign + " " + text
	}
	return strings.Join(diff, "\n")
}

func TestLineDiff(t *testing.T) {
	got := lineDiff("a\nb\nc\n", "a\nB\nc\nd\n")
	if want := "+ B\n- b\n+ d"; got != want {
		t.Errorf("lineDiff: got %q, want %q", got, want)
	}
	if got := lineDiff("a\n", "a\n"); got != "" {
		t.Errorf("lineDiff of equal lists: %q", got)
	}
}
