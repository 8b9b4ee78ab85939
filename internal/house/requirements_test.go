package house

import (
	"fmt"
	"go/ast"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// requirementsFile maps each numbered requirement to the tests that prove it.
const requirementsFile = "docs/requirements.md"

// requirementRows are all rows there are.
func requirementRows() []string {
	var rows []string
	for _, series := range []struct {
		format string
		last   int
	}{{"R1.%02d", 28}, {"R2.%02d", 20}, {"B%d", 24}, {"T%d", 32}, {"H%d", 25}, {"G%d", 8}} {
		for i := 1; i <= series.last; i++ {
			rows = append(rows, fmt.Sprintf(series.format, i))
		}
	}
	return rows
}

// proof is one line of the table: a test that proves a row, and its package.
type proof struct {
	line           int
	row, test, dir string
}

// readRequirements takes the two tables apart: the proofs (| row | test |
// where |), and, under the heading "Not yet", the rows that wait.
func readRequirements(text string) (proofs []proof, waiting map[string]string, problems []string) {
	waiting = map[string]string{}
	notYet := false
	proseLines(text, func(number int, line string) {
		if m := heading.FindStringSubmatch(line); m != nil {
			notYet = strings.EqualFold(m[1], "Not yet")
			return
		}
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			return
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(cells[i]), "`")
		}
		if cells[0] == "row" || cells[0] == "rows" || strings.Trim(cells[0], "-: ") == "" {
			return
		}
		if notYet {
			if len(cells) != 2 || cells[1] == "" {
				problems = append(problems, fmt.Sprintf("line %d: want | rows | what they wait for |", number))
				return
			}
			for row := range strings.SplitSeq(cells[0], ",") {
				row = strings.TrimSpace(row)
				if _, twice := waiting[row]; twice {
					problems = append(problems, fmt.Sprintf("line %d: %s waits twice", number, row))
				}
				waiting[row] = cells[1]
			}
			return
		}
		if len(cells) != 3 {
			problems = append(problems, fmt.Sprintf("line %d: want | row | test | where |", number))
			return
		}
		proofs = append(proofs, proof{number, cells[0], cells[1], cells[2]})
	})
	return proofs, waiting, problems
}

var testName = regexp.MustCompile(`^(Test|Fuzz|Example)[A-Za-z0-9_]*(/.+)?$`)

// checkRequirements returns what is wrong. tests holds the test functions by
// folder, literals the string constants of each folder's test files, for the
// names of subtests.
func checkRequirements(text string, rows []string, tests, literals map[string][]string) []string {
	proofs, waiting, problems := readRequirements(text)
	complain := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	proved := map[string]bool{}
	seen := map[proof]bool{}
	for _, p := range proofs {
		if !slices.Contains(rows, p.row) {
			complain("line %d: there is no row %s", p.line, p.row)
		}
		proved[p.row] = true
		key := proof{row: p.row, test: p.test, dir: p.dir}
		if seen[key] {
			complain("line %d: %s and %s are paired twice", p.line, p.row, p.test)
		}
		seen[key] = true
		name, sub, _ := strings.Cut(p.test, "/")
		switch {
		case !testName.MatchString(p.test):
			complain("line %d: %q is no test name", p.line, p.test)
		case !slices.Contains(tests[p.dir], name):
			complain("line %d: %s names %s in %s; that folder has no such test", p.line, p.row, name, p.dir)
		case sub != "" && !slices.Contains(literals[p.dir], sub):
			complain("line %d: %s names %s; no string in the tests of %s is %q", p.line, p.row, p.test, p.dir, sub)
		}
	}
	for _, row := range rows {
		_, waits := waiting[row]
		switch {
		case proved[row] && waits:
			complain("%s has a test and waits under \"Not yet\"", row)
		case !proved[row] && !waits:
			complain("%s is missing: name its test, or put it under \"Not yet\" with what it waits for", row)
		}
	}
	for _, row := range slices.Sorted(maps.Keys(waiting)) {
		if !slices.Contains(rows, row) {
			complain("there is no row %s (under \"Not yet\")", row)
		}
	}
	return problems
}

// TestRequirements: every numbered row names a test that exists, or says
// openly that it has none yet.
func TestRequirements(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(requirementsFile)))
	if err != nil {
		t.Fatal(err)
	}
	tests, literals := map[string][]string{}, map[string][]string{}
	mentions := map[string][]string{}
	row := regexp.MustCompile(`\b(R[12]\.\d\d|[BTHG][1-9]\d?)\b`)
	// The conformance suites keep their cases in ordinary files.
	for _, f := range parseFiles(t, func(name string) bool { return isTest(name) || within(name, "provider/providertest") }) {
		ast.Inspect(f.File, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok {
				literals[f.dir] = append(literals[f.dir], strings.Trim(lit.Value, "\"`"))
			}
			return true
		})
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || !testName.MatchString(fn.Name.Name) || !isTest(f.name) {
				continue
			}
			tests[f.dir] = append(tests[f.dir], fn.Name.Name)
			for _, r := range row.FindAllString(fn.Doc.Text(), -1) {
				mentions[r] = append(mentions[r], fn.Name.Name+" in "+f.dir)
			}
		}
	}
	for _, problem := range checkRequirements(string(text), requirementRows(), tests, literals) {
		t.Errorf("%s: %s", requirementsFile, problem)
	}
	// For whoever fills the table: go test -v shows what could leave the list.
	_, waiting, _ := readRequirements(string(text))
	for _, r := range requirementRows() {
		if _, waits := waiting[r]; waits && len(mentions[r]) > 0 {
			t.Logf("%s waits under \"Not yet\"; the comments of these tests name it: %s", r, strings.Join(mentions[r], ", "))
		}
	}
}

// TestRequirementsChecker feeds the checker one document for each mistake.
func TestRequirementsChecker(t *testing.T) {
	const table = "| row | test | where |\n|---|---|---|\n"
	const notYet = "\n## Not yet\n\n| rows | what they wait for |\n|---|---|\n"
	rows := []string{"B1", "B2"}
	tests := map[string][]string{".": {"TestOne"}}
	literals := map[string][]string{".": {"sub"}}
	for _, c := range []struct{ name, text, want string }{
		{"good", table + "| B1 | `TestOne` | `.` |\n" + notYet + "| B2 | speed |\n", ""},
		{"good subtest", table + "| B1 | TestOne/sub | . |\n| B2 | TestOne | . |\n", ""},
		{"two wait", notYet + "| B1, B2 | speed |\n", ""},
		{"missing row", table + "| B1 | TestOne | . |\n", "B2 is missing"},
		{"no such test", table + "| B1 | TestTwo | . |\n| B2 | TestOne | . |\n", "no such test"},
		{"wrong folder", table + "| B1 | TestOne | jms |\n| B2 | TestOne | . |\n", "no such test"},
		{"no such subtest", table + "| B1 | TestOne/other | . |\n| B2 | TestOne | . |\n", "no string in the tests"},
		{"unknown row", table + "| B1 | TestOne | . |\n| B2 | TestOne | . |\n| B3 | TestOne | . |\n", "there is no row B3"},
		{"unknown waiting row", table + "| B1 | TestOne | . |\n| B2 | TestOne | . |\n" + notYet + "| B3 | x |\n", "there is no row B3"},
		{"both", table + "| B1 | TestOne | . |\n" + notYet + "| B1, B2 | x |\n", "B1 has a test and waits"},
		{"no reason", table + "| B1 | TestOne | . |\n" + notYet + "| B2 | |\n", "what they wait for"},
		{"twice", table + "| B1 | TestOne | . |\n| B1 | TestOne | . |\n| B2 | TestOne | . |\n", "paired twice"},
		{"no test name", table + "| B1 | see below | . |\n| B2 | TestOne | . |\n", "is no test name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := strings.Join(checkRequirements(c.text, rows, tests, literals), "; ")
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q in it", got, c.want)
			}
		})
	}
}
