package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// modulePath is the root module's; nested modules extend it by their folder.
const modulePath = "github.com/keyseq/keyseq"

// root is the directory of the root module as seen from a test of this package.
var root = filepath.Join("..", "..")

// treeFiles returns the slash-separated paths, relative to the root, of the
// tree's own files: nothing of git, of make's outputs or of test data.
func treeFiles(t *testing.T, keep func(name string) bool) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if slices.Contains([]string{".git", "build", "testdata"}, d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if d.Type().IsRegular() && keep(rel) {
			names = append(names, rel)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(names) == 0 {
		t.Fatal("no files found; is this test run inside its tree?")
	}
	return names
}

func isGo(name string) bool     { return strings.HasSuffix(name, ".go") }
func isTest(name string) bool   { return strings.HasSuffix(name, "_test.go") }
func isSource(name string) bool { return isGo(name) && !isTest(name) }

// within reports whether the file or folder is dir or lies below it.
func within(name, dir string) bool { return name == dir || strings.HasPrefix(name, dir+"/") }

func readFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// goFile is one parsed file with what most rules ask of it.
type goFile struct {
	name string // relative to the root
	dir  string
	fset *token.FileSet
	*ast.File
}

func parseFiles(t *testing.T, keep func(name string) bool) []goFile {
	t.Helper()
	var files []goFile
	for _, name := range treeFiles(t, func(name string) bool { return isGo(name) && keep(name) }) {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, filepath.Join(root, filepath.FromSlash(name)), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		files = append(files, goFile{name: name, dir: folder(name), fset: fset, File: file})
	}
	return files
}

// folder is path.Dir with the root spelled ".".
func folder(name string) string {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		return name[:i]
	}
	return "."
}

func (f goFile) line(n ast.Node) int { return f.fset.Position(n.Pos()).Line }

// importNames returns the file's imports: path to the name used in the file.
func (f goFile) importNames() map[string]string {
	names := map[string]string{}
	for _, spec := range f.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // the parser has checked it
		}
		name := path[strings.LastIndexByte(path, '/')+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[path] = name
	}
	return names
}

// mentions returns the places where the file uses one of a package's names.
func (f goFile) mentions(path string, names ...string) []ast.Node {
	local, ok := f.importNames()[path]
	if !ok {
		return nil
	}
	var found []ast.Node
	ast.Inspect(f.File, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if pkg, ok := sel.X.(*ast.Ident); ok && pkg.Name == local && slices.Contains(names, sel.Sel.Name) {
			found = append(found, n)
		}
		return true
	})
	return found
}

// moduleDirs returns the folders that hold a go.mod, the root (".") first.
func moduleDirs(t *testing.T) []string {
	t.Helper()
	var dirs []string
	for _, name := range treeFiles(t, func(name string) bool { return name == "go.mod" || strings.HasSuffix(name, "/go.mod") }) {
		dirs = append(dirs, folder(name))
	}
	slices.Sort(dirs)
	return dirs
}

// goCommand runs the go command in a folder of the tree, that module alone.
func goCommand(t *testing.T, dir string, args ...string) string {
	t.Helper()
	// go test's cache sees what this process reads, not what the go command
	// does: without this walk an old result would stand after an edit.
	treeFiles(t, isGo)
	cmd := exec.Command("go", args...)
	cmd.Dir = filepath.Join(root, filepath.FromSlash(dir))
	cmd.Env = append(os.Environ(), "GOWORK=off")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s in %s: %v\n%s", strings.Join(args, " "), dir, err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}
