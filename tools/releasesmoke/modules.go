package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// rootPath is the module every other one requires.
const rootPath = "github.com/keyseq/keyseq"

// firstVersion is packed while no nested module names a version of the root.
const firstVersion = "v0.1.0"

// unpublished are the directories whose modules no user imports.
var unpublished = []string{"tools", "bench", "examples", "internal"}

type publishedModule struct {
	path   string        // module path
	subdir string        // slash-separated, relative to the root; "" for the root
	file   *modfile.File // its go.mod
	bytes  []byte
}

// publishedModules finds the modules that a release tags, the root first.
func publishedModules(root string) ([]publishedModule, error) {
	var found []publishedModule
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
			if rel != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || slices.Contains(unpublished, rel)) {
				return fs.SkipDir
			}
			return nil
		}
		if d.Name() != "go.mod" {
			return nil
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		file, err := modfile.Parse(name, data, nil)
		if err != nil {
			return err
		}
		m := publishedModule{path: file.Module.Mod.Path, file: file, bytes: data}
		want := rootPath
		if rel != "go.mod" {
			m.subdir = strings.TrimSuffix(rel, "/go.mod")
			want += "/" + m.subdir
		}
		if m.path != want {
			return fmt.Errorf("%s names module %s; its place in the tree makes it %s", rel, m.path, want)
		}
		found = append(found, m)
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b publishedModule) int { return strings.Compare(a.path, b.path) })
	if len(found) == 0 || found[0].path != rootPath {
		return nil, fmt.Errorf("no module %s in %s", rootPath, root)
	}
	return found, nil
}

// releaseVersion is the version the nested modules require of the root. They
// must agree, and the version must be one a proxy can serve: a user gets no
// replace directive, so v0.0.0 would be looked up and not be found.
func releaseVersion(modules []publishedModule) (string, error) {
	version, from := "", ""
	for _, m := range modules {
		for _, r := range m.file.Require {
			if r.Mod.Path != rootPath {
				continue
			}
			v := r.Mod.Version
			if v == "v0.0.0" || module.IsPseudoVersion(v) || semver.Canonical(v) != v {
				return "", fmt.Errorf("%s requires %s %s; users need a released version there, as %s", m.path, rootPath, v, firstVersion)
			}
			if version != "" && v != version {
				return "", fmt.Errorf("%s requires %s %s but %s requires %s; make them agree", m.path, rootPath, v, from, version)
			}
			version, from = v, m.path
		}
	}
	if version == "" {
		return firstVersion, nil
	}
	return version, nil
}
