package house

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"
	"testing"
)

const goleakPath = "go.uber.org/goleak"

var goleakNames = []string{"VerifyTestMain", "Find"}

// noLeakCheck are test packages without goleak, with the reason.
var noLeakCheck = map[string]string{
	"jms":                                    "declarations and values: nothing in it starts a goroutine",
	"provider/ibmmq/internal/mqistandin/gen": "generates headers; starts no goroutine, and is no part of the library",
	"tools":                                  "checks the project's documents and packs archives; starts no goroutine and is no part of the library",
}

// TestLeaksAreChecked: a goroutine that outlives its test is a goroutine that
// nobody waits for. Every test package has a TestMain that looks for them.
func TestLeaksAreChecked(t *testing.T) {
	all := parseFiles(t, func(string) bool { return true })
	// Functions of this tree that check on behalf of a TestMain.
	checkers := map[string][]string{} // import path to names
	for _, f := range all {
		uses := f.mentions(goleakPath, goleakNames...)
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if ok && fn.Recv == nil && slices.ContainsFunc(uses, func(n ast.Node) bool { return fn.Pos() <= n.Pos() && n.End() <= fn.End() }) {
				path := modulePath + "/" + f.dir
				checkers[path] = append(checkers[path], fn.Name.Name)
			}
		}
	}
	checked := map[string]bool{}
	for _, f := range all {
		if !isTest(f.name) {
			continue
		}
		ok := false
		for _, d := range f.Decls {
			fn, isFunc := d.(*ast.FuncDecl)
			if isFunc && fn.Recv == nil && fn.Name.Name == "TestMain" {
				ok = len(f.mentions(goleakPath, goleakNames...)) > 0
				for path, names := range checkers {
					ok = ok || len(f.mentions(path, names...)) > 0
				}
				if !ok && !allowed(noLeakCheck, f.dir) {
					t.Errorf("%s:%d: TestMain without goleak.VerifyTestMain", f.name, f.line(fn))
				}
			}
		}
		checked[f.dir] = checked[f.dir] || ok
	}
	for dir, ok := range checked {
		if !ok && !allowed(noLeakCheck, dir) {
			t.Errorf("%s has tests but no TestMain with goleak.VerifyTestMain; if it needs none, say why in noLeakCheck", dir)
		}
	}
}

// sleepingTests are test files that may call time.Sleep outside a synctest
// bubble of their own, with the reason.
var sleepingTests = map[string]string{
	"provider/providertest":                                 "the broken providers run inside the suite's bubbles: their sleeps are virtual",
	"provider/memory/example_program_test.go":               "a program as a user writes it: it asks the broker until the queue is empty",
	"provider/rabbitmq/loss_test.go":                        youngQuorumQueue,
	"provider/rabbitmq/internal/guarantees/traffic_test.go": youngQuorumQueue,
	"provider/ibmmq/chaos_test.go":                          "faults come at random moments of a minute; what settles is waited for with a deadline",
	"provider/ibmmq/numbers_test.go":                        "its tasks sleep: that is the work whose time is measured",
	"internal/keyqueue/stress_test.go":                      "real goroutines and real time are the point; what ends is waited for",
}

const youngQuorumQueue = "a quorum queue younger than a second does not survive a kill -9 on RabbitMQ 3.10, and nothing tells its age"

// TestNoTestSleeps: a sleep in real time is either too short on a busy machine
// or too long on every other one. In a synctest bubble it is virtual and exact.
// So in a package whose tests make bubbles, a test that sleeps must make one,
// itself or through another function; what those call may sleep. In a broker's
// module the pause of a polling loop (for ...; time.Sleep(d)) is no
// synchronisation, as a broker that tells nothing can only be asked again, and
// neither is a task's sleep: it is the task's work.
func TestNoTestSleeps(t *testing.T) {
	files := parseFiles(t, isTest)
	bubbles := bubbleFuncs(files)
	modules := slices.DeleteFunc(moduleDirs(t), func(dir string) bool { return !within(dir, "provider") })
	for _, f := range files {
		if _, bubble := f.importNames()["testing/synctest"]; bubble || allowed(sleepingTests, f.name) {
			continue
		}
		ofBroker := slices.ContainsFunc(modules, func(dir string) bool { return within(f.dir, dir) })
		var fine []ast.Node
		ast.Inspect(f.File, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ForStmt:
				if ofBroker && n.Post != nil {
					fine = append(fine, n.Post)
				}
			case *ast.FuncLit:
				if isTask(n.Type) {
					fine = append(fine, n)
				}
			case *ast.FuncDecl:
				isTest := n.Recv == nil && testName.MatchString(n.Name.Name)
				if mentionsAny(n, bubbles[f.dir]) || !isTest && len(bubbles[f.dir]) > 0 && !ofBroker {
					fine = append(fine, n)
				}
			}
			return true
		})
		for _, n := range f.mentions("time", "Sleep") {
			if !slices.ContainsFunc(fine, func(p ast.Node) bool { return p.Pos() <= n.Pos() && n.End() <= p.End() }) {
				t.Errorf("%s:%d: time.Sleep in real time; wait for a channel with a deadline, or run in a synctest bubble", f.name, f.line(n))
			}
		}
	}
}

// isTask tells a listener's function by its *keyseq.Delivery.
func isTask(fn *ast.FuncType) bool {
	return slices.ContainsFunc(fn.Params.List, func(p *ast.Field) bool {
		return types.ExprString(p.Type) == "*keyseq.Delivery"
	})
}

// bubbleFuncs returns, by folder, the names of the functions in test files
// that make a synctest bubble or call one that does.
func bubbleFuncs(files []goFile) map[string]map[string]bool {
	found := map[string]map[string]bool{}
	for more := true; more; {
		more = false
		for _, f := range files {
			made := f.mentions("testing/synctest", "Test")
			for _, d := range f.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok || fn.Recv != nil || found[f.dir][fn.Name.Name] {
					continue
				}
				direct := slices.ContainsFunc(made, func(n ast.Node) bool { return fn.Pos() <= n.Pos() && n.End() <= fn.End() })
				if direct || mentionsAny(fn, found[f.dir]) {
					if found[f.dir] == nil {
						found[f.dir] = map[string]bool{}
					}
					found[f.dir][fn.Name.Name] = true
					more = true
				}
			}
		}
	}
	return found
}

// mentionsAny reports whether the function's body uses one of the names as a
// plain identifier.
func mentionsAny(fn *ast.FuncDecl, names map[string]bool) bool {
	found := false
	if fn.Body == nil {
		return false
	}
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && names[id.Name] {
			found = true
		}
		return !found
	})
	return found
}

// allowed reports whether the file or folder is in an allow list or below an
// entry of it.
func allowed(list map[string]string, name string) bool {
	for entry := range list {
		if within(name, entry) {
			return true
		}
	}
	return false
}

// TestAllowListsHaveReasons also finds entries that nothing needs any more.
func TestAllowListsHaveReasons(t *testing.T) {
	for _, list := range []map[string]string{noLeakCheck, sleepingTests, pathWords} {
		for entry, reason := range list {
			if strings.TrimSpace(reason) == "" {
				t.Errorf("the exception for %s has no reason", entry)
			}
			if !slices.ContainsFunc(treeFiles(t, isGo), func(name string) bool { return within(name, entry) }) {
				t.Errorf("the exception for %s is for nothing: no such file", entry)
			}
		}
	}
}
