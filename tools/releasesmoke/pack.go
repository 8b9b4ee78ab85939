package main

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/module"
	modzip "golang.org/x/mod/zip"
)

// export returns a directory with the files of HEAD, made in work. Without a
// git repository (an unpacked archive of the sources) it is the root itself.
func export(ctx context.Context, root, work string, out io.Writer) (string, error) {
	git := func(args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		stdout, err := cmd.Output()
		if err != nil {
			err = fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
		}
		return strings.TrimSpace(string(stdout)), err
	}
	head, err := git("rev-parse", "--short", "HEAD")
	if err != nil {
		if _, statErr := os.Stat(filepath.Join(root, ".git")); statErr == nil {
			return "", err
		}
		fmt.Fprintln(out, "packing  the directory as it is: it is no git repository")
		return root, nil
	}
	changed, err := git("status", "--porcelain")
	if err != nil {
		return "", err
	}
	if changed != "" {
		fmt.Fprintf(out, "note     %d changed files are not in HEAD and not looked at\n", strings.Count(changed, "\n")+1)
	}
	archive := filepath.Join(work, "head.zip")
	if _, err := git("archive", "--format=zip", "-o", archive, "HEAD"); err != nil {
		return "", err
	}
	files, err := zip.OpenReader(archive)
	if err != nil {
		return "", err
	}
	defer files.Close()
	dir := filepath.Join(work, "head")
	fmt.Fprintln(out, "packing  HEAD", head)
	return dir, os.CopyFS(dir, files)
}

// pack writes one module at one version in the layout of a module proxy and
// returns the size of its zip.
func pack(m publishedModule, root, version, proxy string) (int64, error) {
	mv := module.Version{Path: m.path, Version: version}
	escaped, err := module.EscapePath(m.path)
	if err != nil {
		return 0, err
	}
	dir := filepath.Join(proxy, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, err
	}
	name := filepath.Join(dir, version+".zip")
	out, err := os.Create(name)
	if err != nil {
		return 0, err
	}
	err = modzip.CreateFromDir(out, mv, filepath.Join(root, filepath.FromSlash(m.subdir)))
	if err := errors.Join(err, out.Close()); err != nil {
		return 0, err
	}
	if _, err := modzip.CheckZip(mv, name); err != nil {
		return 0, err
	}
	stat, err := os.Stat(name)
	if err != nil {
		return 0, err
	}
	info, err := json.Marshal(struct {
		Version string
		Time    time.Time
	}{version, time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return 0, err
	}
	return stat.Size(), errors.Join(
		os.WriteFile(filepath.Join(dir, version+".info"), info, 0o644),
		os.WriteFile(filepath.Join(dir, version+".mod"), m.bytes, 0o644),
		os.WriteFile(filepath.Join(dir, "list"), []byte(version+"\n"), 0o644),
	)
}
