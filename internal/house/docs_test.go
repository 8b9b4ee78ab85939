package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// codeBlock is a fenced block of a document.
type codeBlock struct {
	document string
	line     int // of its first line
	language string
	text     string
}

func codeBlocks(t *testing.T, document, text string) (blocks []codeBlock) {
	t.Helper()
	var open *codeBlock
	number := 0
	for line := range strings.Lines(text) {
		number++
		fence, isFence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case isFence && open == nil:
			open = &codeBlock{document: document, line: number + 1, language: strings.TrimSpace(fence)}
		case isFence:
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			open.text += line
		}
	}
	if open != nil {
		t.Errorf("%s:%d: the code block does not end", document, open.line)
	}
	return blocks
}

func allCodeBlocks(t *testing.T, languages ...string) (blocks []codeBlock) {
	t.Helper()
	for _, name := range treeFiles(t, isMarkdown) {
		for _, b := range codeBlocks(t, name, readFile(t, name)) {
			if slices.Contains(languages, b.language) {
				blocks = append(blocks, b)
			}
		}
	}
	return blocks
}

// TestGoInDocuments: a program of a document that needs the root module alone is compiled, those that need a broker's module are the release smoke
// test's; every other Go block parses, as a file, as declarations or as statements. A line "..." stands for what is left out.
func TestGoInDocuments(t *testing.T) {
	nested := moduleDirs(t)
	compiled := 0
	for _, b := range allCodeBlocks(t, "go") {
		text := regexp.MustCompile(`(?m)^\s*\.\.\.$`).ReplaceAllString(b.text, "")
		file, err := parser.ParseFile(token.NewFileSet(), "main.go", text, 0)
		if err != nil {
			if _, asDecls := parser.ParseFile(token.NewFileSet(), "", "package p\n"+text, 0); asDecls == nil {
				continue
			}
			if _, asBody := parser.ParseFile(token.NewFileSet(), "", "package p\nfunc _() {\n"+text+"\n}", 0); asBody != nil {
				t.Errorf("%s:%d: the Go block does not parse: %v", b.document, b.line, asBody)
			}
			continue
		}
		if file.Name.Name != "main" || needsNested(file, nested) {
			continue
		}
		source := filepath.Join(t.TempDir(), "main.go")
		if err := os.WriteFile(source, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		compiled++
		cmd := exec.Command("go", "vet", source)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "GOWORK=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s:%d: the program does not compile: %v\n%s", b.document, b.line, err, out)
		}
	}
	if compiled == 0 {
		t.Error("no program was found in any document: is this test still looking at the right blocks?")
	}
}

// needsNested reports whether a program imports a package of a nested module, or one that is neither of this tree nor of the standard library.
func needsNested(file *ast.File, nested []string) bool {
	return slices.ContainsFunc(file.Imports, func(spec *ast.ImportSpec) bool {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil || !strings.Contains(strings.SplitN(name, "/", 2)[0], ".") {
			return false
		}
		if !within(name, modulePath) {
			return true
		}
		dir := strings.TrimPrefix(strings.TrimPrefix(name, modulePath), "/")
		return slices.ContainsFunc(nested, func(module string) bool { return module != "." && within(dir, module) })
	})
}

var inlineCommand = regexp.MustCompile("`((?:go (?:run|test) |scripts/)[^`]*)`")

// TestCommandsInDocuments: what a document says to type exists: the packages of go run and go test, the tests named by -run and -bench, scripts,
// folders. TestMakeTargets looks at make.
func TestCommandsInDocuments(t *testing.T) {
	checked := 0
	for _, name := range treeFiles(t, isMarkdown) {
		text := readFile(t, name)
		for _, b := range codeBlocks(t, name, text) {
			if b.language != "sh" {
				continue
			}
			dir := "."
			for i, line := range strings.Split(b.text, "\n") {
				line, _, _ = strings.Cut(line, " #")
				for _, command := range strings.Split(line, "&&") {
					checked++
					dir = checkCommand(t, name, b.line+i, dir, command)
				}
			}
		}
		proseLines(text, func(number int, line string) {
			for _, m := range inlineCommand.FindAllStringSubmatch(line, -1) {
				checked++
				checkCommand(t, name, number, ".", m[1])
			}
		})
	}
	if checked < 10 {
		t.Errorf("only %d commands found: is this test still looking at the right places?", checked)
	}
}

var assignment = regexp.MustCompile(`^[A-Z_]+=`)

// checkCommand checks one command and returns the folder in which the next one is typed.
func checkCommand(t *testing.T, document string, line int, dir, command string) string {
	t.Helper()
	wrong := func(format string, args ...any) {
		t.Helper()
		t.Errorf("%s:%d: %q: "+format, append([]any{document, line, strings.TrimSpace(command)}, args...)...)
	}
	words := strings.Fields(regexp.MustCompile(`\$\([^)]*\)`).ReplaceAllString(command, "x"))
	for len(words) > 0 && assignment.MatchString(words[0]) {
		words = words[1:]
	}
	if len(words) == 0 || strings.HasPrefix(words[0], "#") {
		return dir
	}
	exists := func(name string) bool {
		_, err := os.Stat(filepath.Join(root, filepath.FromSlash(path.Join(dir, name))))
		return err == nil
	}
	switch first := words[0]; {
	case first == "cd" && len(words) == 2:
		if !exists(words[1]) {
			wrong("there is no folder %s", words[1])
		}
		return path.Join(dir, words[1])
	case first == "go" && len(words) > 1 && (words[1] == "run" || words[1] == "test"):
		checkPackages(t, dir, words[1], words[2:], exists, wrong)
	case first == "make", first == "go", first == "docker", first == "git", first == "curl", first == "export":
	case strings.Contains(first, "/"):
		if !exists(strings.TrimPrefix(first, "./")) {
			wrong("there is no %s", first)
		}
	default:
		wrong("what is %s? Name it in this test if a reader has it", first)
	}
	return dir
}

// checkPackages checks the arguments of go run and go test.
func checkPackages(t *testing.T, dir, verb string, args []string, exists func(string) bool, wrong func(string, ...any)) {
	t.Helper()
	var packages []string
	patterns := map[string]string{} // flag to pattern
	for i, arg := range args {
		switch {
		case i > 0 && (args[i-1] == "-run" || args[i-1] == "-bench"):
			patterns[args[i-1]] = strings.Trim(arg, "'\"")
		case arg == "." || strings.HasPrefix(arg, "./"):
			packages = append(packages, arg)
		}
		if verb == "run" && len(packages) > 0 {
			break // the rest are the program's
		}
	}
	for _, p := range packages {
		folder := strings.TrimSuffix(strings.TrimSuffix(p, "..."), "/")
		if !exists(folder) {
			wrong("there is no package %s", p)
			continue
		}
		for flag, pattern := range patterns {
			if pattern == "^$" || pattern == "." {
				continue
			}
			kind := "Test"
			if flag == "-bench" {
				kind = "Benchmark"
			}
			named := regexp.MustCompile(`(?m)^func (` + kind + `\w+)\(`)
			match, err := regexp.Compile(strings.SplitN(pattern, "/", 2)[0])
			if err != nil {
				wrong("%v", err)
				continue
			}
			where := path.Join(dir, folder)
			if !slices.ContainsFunc(treeFiles(t, isTest), func(name string) bool {
				if path.Dir(name) != where && !(strings.HasSuffix(p, "...") && within(name, where)) {
					return false
				}
				return slices.ContainsFunc(named.FindAllStringSubmatch(readFile(t, name), -1), func(m []string) bool { return match.MatchString(m[1]) })
			}) {
				wrong("no %s in %s matches %q", kind, p, pattern)
			}
		}
	}
}

var (
	// `run.perform` (settlement.go), and `run.supervise` in run.go
	placed     = regexp.MustCompile("`([A-Za-z.]+)`(?:\\s+in)?\\s+\\(?([a-z/]+\\.go)\\b")
	goFileName = regexp.MustCompile(`(?:^|[\s(|])([a-z_/]+\.go)\b`)
)

// TestPlacesInDocuments: functions and files that the documents about the code name are there. Several names before one file ("`a`, `b` in c.go")
// are looked for in it, in the table of docs/model.md.
func TestPlacesInDocuments(t *testing.T) {
	model := readFile(t, "docs/model.md")
	if at := strings.Index(model, "## Where the code is"); at >= 0 {
		for line := range strings.Lines(model[at:]) {
			cells := strings.Split(line, "|")
			if len(cells) < 3 {
				continue
			}
			for part := range strings.SplitSeq(cells[2], ";") {
				checkPlaces(t, "docs/model.md", part)
			}
		}
	} else {
		t.Error("docs/model.md no longer says where the code is")
	}
	text := readFile(t, "docs/ARCHITECTURE.md")
	found := placed.FindAllStringSubmatch(text, -1)
	for _, m := range found {
		if !declares(t, m[2], m[1]) {
			t.Errorf("docs/ARCHITECTURE.md: %s has no %s", m[2], m[1])
		}
	}
	if len(found) < 30 {
		t.Errorf("only %d places found in docs/ARCHITECTURE.md: is this test still looking at the right form?", len(found))
	}
	for _, m := range goFileName.FindAllStringSubmatch(text, -1) {
		if len(filesNamed(t, m[1])) == 0 {
			t.Errorf("docs/ARCHITECTURE.md: there is no %s", m[1])
		}
	}
}

// checkPlaces checks "`a`, `b` in c.go and `d` in e.go".
func checkPlaces(t *testing.T, document, text string) {
	t.Helper()
	var names []string
	for _, m := range regexp.MustCompile("`([A-Za-z.]+)`|\\bin ([a-z/]+\\.go)\\b").FindAllStringSubmatch(text, -1) {
		if m[1] != "" {
			names = append(names, m[1])
			continue
		}
		for _, name := range names {
			if !declares(t, m[2], name) {
				t.Errorf("%s: %s has no %s", document, m[2], name)
			}
		}
		names = nil
	}
}

// filesNamed finds a file by its path or, if it is not at the root, by its name in internal/keyqueue, which the documents leave out.
func filesNamed(t *testing.T, name string) []string {
	t.Helper()
	return treeFilesOrNone(name, path.Join("internal/keyqueue", name))
}

func treeFilesOrNone(names ...string) (found []string) {
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(name))); err == nil {
			found = append(found, name)
		}
	}
	return found
}

// declares reports whether a file declares a function, a method ("run.perform", or "perform" of whatever type) or a type.
func declares(t *testing.T, file, name string) bool {
	t.Helper()
	owner, member, isMethod := strings.Cut(name, ".")
	if !isMethod {
		member = name
	}
	pattern := `(?m)^(?:func (?:\(\w+ \*?\w+(?:\[[^\]]*\])?\) )?|type )` + regexp.QuoteMeta(member) + `\b`
	if isMethod && owner != "keyqueue" {
		pattern = `(?m)^func \(\w+ \*?` + regexp.QuoteMeta(owner) + `(?:\[[^\]]*\])?\) ` + regexp.QuoteMeta(member) + `\b`
	}
	match := regexp.MustCompile(pattern)
	return slices.ContainsFunc(filesNamed(t, file), func(f string) bool { return match.MatchString(readFile(t, f)) })
}
