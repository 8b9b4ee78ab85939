package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// user is somebody with an empty folder and no knowledge of this tree.
type user struct {
	work string
	env  []string
	out  io.Writer
	n    int // folders made

	empty []string // modules without a package that can be imported
	waits int      // modules and programs that could not be tried for that
}

// newUser gives the user a module cache of its own, since the packed version
// has other contents at every run. Modules of others come from the real cache
// when they are there, else from where the go command always gets them.
func newUser(ctx context.Context, work, proxy string, out io.Writer) (*user, error) {
	cache, err := goCommand(ctx, work, os.Environ(), "env", "GOMODCACHE")
	if err != nil {
		return nil, err
	}
	upstream, err := goCommand(ctx, work, os.Environ(), "env", "GOPROXY")
	if err != nil {
		return nil, err
	}
	download := filepath.Join(cache, "cache", "download")
	proxies := []string{fileURL(proxy), fileURL(download), upstream}
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{"GOPROXY", "GOMODCACHE", "GOFLAGS", "GOWORK", "GONOSUMDB", "GOPRIVATE", "GONOPROXY"}, name)
	})
	env = append(env,
		"GOPROXY="+strings.Join(proxies, ","),
		"GOMODCACHE="+filepath.Join(work, "modcache"),
		"GOFLAGS=-modcacherw",
		"GOWORK=off",
		"GONOSUMDB="+rootPath, // the packed version is in no checksum database
	)
	return &user{work: work, env: env, out: out}, nil
}

func fileURL(dir string) string { return "file://" + filepath.ToSlash(dir) }

// emptyModule makes a folder with a fresh go.mod, as go mod init does.
func (u *user) emptyModule(ctx context.Context) (string, error) {
	u.n++
	dir := filepath.Join(u.work, fmt.Sprintf("user%d", u.n))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	_, err := goCommand(ctx, dir, u.env, "mod", "init", "example.com/user")
	return dir, err
}

// useModule gets one module and builds a program that imports every package of
// it a user may import. A module that has none yet is noted and no failure.
func (u *user) useModule(ctx context.Context, m publishedModule, version string) error {
	dir, err := u.emptyModule(ctx)
	if err != nil {
		return err
	}
	if _, err := goCommand(ctx, dir, u.env, "get", m.path+"/...@"+version); err != nil {
		return err
	}
	list, err := goCommand(ctx, dir, u.env, "list", "-e", "-f", "{{if ne .Name \"main\"}}{{.ImportPath}}{{end}}", m.path+"/...")
	if err != nil {
		return err
	}
	var source strings.Builder
	source.WriteString("package main\n\nimport (\n")
	count := 0
	for path := range strings.FieldsSeq(list) {
		if strings.Contains(path+"/", "/internal/") {
			continue
		}
		fmt.Fprintf(&source, "\t_ %q\n", path)
		count++
	}
	source.WriteString(")\n\nfunc main() {}\n")
	if count == 0 {
		u.empty = append(u.empty, m.path)
		u.waits++
		fmt.Fprintf(u.out, "waits    %s: it has no package a user can import yet\n", m.path)
		return nil
	}
	what := fmt.Sprintf("%s (%d packages)", m.path, count)
	return u.build(ctx, dir, what, source.String())
}

// buildProgram builds a program of the README after go get of exactly the
// modules that it imports.
func (u *user) buildProgram(ctx context.Context, p program, modules []publishedModule, version string) error {
	for _, path := range p.imports {
		if slices.Contains(u.empty, owner(modules, path)) {
			u.waits++
			fmt.Fprintf(u.out, "waits    README.md line %d: it imports %s, which is not there yet\n", p.line, path)
			return nil
		}
	}
	dir, err := u.emptyModule(ctx)
	if err != nil {
		return err
	}
	get := []string{"get"}
	for _, m := range modules {
		if slices.ContainsFunc(p.imports, func(i string) bool { return owner(modules, i) == m.path }) {
			get = append(get, m.path+"@"+version)
		}
	}
	if len(get) == 1 {
		return fmt.Errorf("the program imports nothing of %s", rootPath)
	}
	if _, err := goCommand(ctx, dir, u.env, get...); err != nil {
		return err
	}
	return u.build(ctx, dir, fmt.Sprintf("README.md line %d", p.line), p.source)
}

// owner is the module with the longest path that contains the package.
func owner(modules []publishedModule, pkg string) string {
	best := ""
	for _, m := range modules {
		if (pkg == m.path || strings.HasPrefix(pkg, m.path+"/")) && len(m.path) > len(best) {
			best = m.path
		}
	}
	return best
}

// build compiles main.go in dir. A program that reaches cgo code outside the
// standard library needs a C client and its flags: without CGO_CFLAGS set, its
// packages are resolved and that is said, for nothing more can be known here.
func (u *user) build(ctx context.Context, dir, what, source string) error {
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o644); err != nil {
		return err
	}
	cgo, err := goCommand(ctx, dir, append(slices.Clone(u.env), "CGO_ENABLED=1"),
		"list", "-deps", "-f", "{{if and .CgoFiles (not .Standard)}}{{.ImportPath}}{{end}}", ".")
	if err != nil {
		return err
	}
	if cgo != "" && os.Getenv("CGO_CFLAGS") == "" {
		fmt.Fprintf(u.out, "resolved %s; not compiled: %s needs its C library, set CGO_CFLAGS and CGO_LDFLAGS for it\n", what, strings.Join(strings.Fields(cgo), ", "))
		return nil
	}
	if _, err := goCommand(ctx, dir, u.env, "build", "-o", "program", "."); err != nil {
		return err
	}
	if _, err := goCommand(ctx, dir, u.env, "vet", "."); err != nil {
		return err
	}
	fmt.Fprintf(u.out, "built    %s\n", what)
	return nil
}
