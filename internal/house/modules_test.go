package house

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// goMod is what the rules need of go mod edit -json.
type goMod struct {
	Module    struct{ Path string }
	Go        string
	Toolchain string
	Require   []struct {
		Path, Version string
		Indirect      bool
	}
	Replace []struct {
		Old, New struct{ Path, Version string }
	}
}

func readGoMod(t *testing.T, dir string) goMod {
	t.Helper()
	var m goMod
	if err := json.Unmarshal([]byte(goCommand(t, dir, "mod", "edit", "-json")), &m); err != nil {
		t.Fatalf("%s/go.mod: %v", dir, err)
	}
	return m
}

// TestRootRequiresOnlyTestModules: every line of the root's go.mod shows up in
// the module graph of everybody who uses keyseq.
func TestRootRequiresOnlyTestModules(t *testing.T) {
	allowed := []string{"go.uber.org/goleak", "github.com/stretchr/testify"}
	m := readGoMod(t, ".")
	for _, r := range m.Require {
		if !r.Indirect && !slices.Contains(allowed, r.Path) {
			t.Errorf("go.mod requires %s; allowed are %s, for tests", r.Path, strings.Join(allowed, " and "))
		}
	}
	if len(m.Replace) > 0 {
		t.Errorf("the root's go.mod has a replace directive, which no user gets: %+v", m.Replace)
	}
}

// TestGoDirective: the oldest supported Go release, and no toolchain line,
// which would make a user's go command download another one.
func TestGoDirective(t *testing.T) {
	for _, dir := range moduleDirs(t) {
		m := readGoMod(t, dir)
		// A requirement may ask for the patch form of the same release.
		if m.Go != "1.26" && (m.Go != "1.26.0" || dir == ".") {
			t.Errorf("%s/go.mod says go %s, want 1.26", dir, m.Go)
		}
		if m.Toolchain != "" {
			t.Errorf("%s/go.mod has a toolchain line", dir)
		}
	}
}

// TestNestedModules: a nested module is named by its folder, requires a version
// of the root that a user can have, and replaces it by the tree for our own
// builds. A command has no replace, because go install refuses one.
func TestNestedModules(t *testing.T) {
	files := parseFiles(t, isSource)
	dirs := moduleDirs(t)
	versions := map[string]string{}
	for _, dir := range dirs {
		if dir == "." {
			continue
		}
		m := readGoMod(t, dir)
		if want := modulePath + "/" + dir; m.Module.Path != want {
			t.Errorf("%s/go.mod names module %s, want %s", dir, m.Module.Path, want)
		}
		i := slices.IndexFunc(m.Require, func(r struct {
			Path, Version string
			Indirect      bool
		}) bool {
			return r.Path == modulePath
		})
		if i < 0 {
			continue
		}
		version := m.Require[i].Version
		versions[version] = dir
		if strings.HasPrefix(version, "v0.0.0") {
			t.Errorf("%s/go.mod requires %s %s, which no user can get; name the coming release", dir, modulePath, version)
		}
		replaced := false
		for _, r := range m.Replace {
			if r.Old.Path != modulePath && !strings.HasPrefix(r.Old.Path, modulePath+"/") {
				t.Errorf("%s/go.mod replaces %s: users do not get that", dir, r.Old.Path)
			}
			up := strings.Repeat("../", strings.Count(dir, "/")+1)
			if r.Old.Path == modulePath {
				replaced = true
				if r.New.Path != strings.TrimSuffix(up, "/") {
					t.Errorf("%s/go.mod replaces %s by %s, want %s", dir, modulePath, r.New.Path, strings.TrimSuffix(up, "/"))
				}
			}
		}
		isCommand := slices.ContainsFunc(files, func(f goFile) bool { return f.dir == dir && f.Name.Name == "main" }) && !within(dir, "examples")
		if replaced == isCommand {
			t.Errorf("%s/go.mod: replace of %s present is %v; a library keeps it, an installable command has none", dir, modulePath, replaced)
		}
	}
	if len(versions) > 1 {
		t.Errorf("nested modules require different versions of the root: %v", versions)
	}
}

// TestWorkspaceHasEveryModule: what go.work does not use, nobody builds while
// developing. The tools stay out: their requirements would mix with ours.
func TestWorkspaceHasEveryModule(t *testing.T) {
	var work struct{ Use []struct{ DiskPath string } }
	if err := json.Unmarshal([]byte(goCommand(t, ".", "work", "edit", "-json", "go.work")), &work); err != nil {
		t.Fatal(err)
	}
	var used []string
	for _, u := range work.Use {
		used = append(used, strings.TrimPrefix(u.DiskPath, "./"))
	}
	for _, dir := range moduleDirs(t) {
		if dir != "tools" && !slices.Contains(used, dir) {
			t.Errorf("go.work does not use %s; run: go work use ./%s", dir, dir)
		}
	}
	if slices.Contains(used, "tools") {
		t.Error("go.work uses tools")
	}
}
