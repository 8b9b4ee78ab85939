// Command releasesmoke does what a user does on the day of a release, before
// the release exists: it packs the modules of HEAD into a module proxy made of
// files, and in empty modules outside the tree runs go get at the coming
// version and builds the README's programs and every published package.
//
// It catches what the tree itself cannot show: a replace directive that only
// works here, a requirement on a version nobody can have, a file left out of a
// module's zip, a README program that does not compile.
//
// Usage, from the tools directory: go run ./releasesmoke
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	root := flag.String("root", "..", "directory of the root module")
	keep := flag.Bool("keep", false, "keep the working folder and print where it is")
	limit := flag.Duration("timeout", 8*time.Minute, "give up after this time")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, *limit)
	defer cancel()
	if err := run(ctx, *root, *keep, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "release smoke: FAILED:", err)
		os.Exit(1)
	}
}

// run returns every failure it finds, joined, so that one broken module does
// not hide the next.
func run(ctx context.Context, root string, keep bool, out io.Writer) (err error) {
	root, err = filepath.Abs(root)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "keyseq-release-")
	if err != nil {
		return err
	}
	defer func() {
		if keep {
			fmt.Fprintln(out, "kept:", work)
			return
		}
		err = errors.Join(err, os.RemoveAll(work))
	}()

	root, err = export(ctx, root, work, out)
	if err != nil {
		return err
	}
	modules, err := publishedModules(root)
	if err != nil {
		return err
	}
	version, err := releaseVersion(modules)
	if err != nil {
		return err
	}
	proxy := filepath.Join(work, "proxy")
	for _, m := range modules {
		size, err := pack(m, root, version, proxy)
		if err != nil {
			return fmt.Errorf("packing %s: %w", m.path, err)
		}
		fmt.Fprintf(out, "packed   %s@%s (%d KiB)\n", m.path, version, (size+1023)/1024)
	}
	u, err := newUser(ctx, work, proxy, out)
	if err != nil {
		return err
	}

	var failures []error
	for _, m := range modules {
		if err := u.useModule(ctx, m, version); err != nil {
			failures = append(failures, fmt.Errorf("using %s: %w", m.path, err))
		}
	}
	programs, err := readmePrograms(filepath.Join(root, "README.md"))
	if err != nil {
		return errors.Join(append(failures, err)...)
	}
	if len(programs) == 0 {
		failures = append(failures, errors.New("README.md has no complete program; a reader cannot start from it"))
	}
	for _, p := range programs {
		if err := u.buildProgram(ctx, p, modules, version); err != nil {
			failures = append(failures, fmt.Errorf("README.md line %d: %w", p.line, err))
		}
	}
	if len(failures) > 0 {
		return errors.Join(failures...)
	}
	waiting := ""
	if u.waits > 0 {
		waiting = fmt.Sprintf("; %d of these wait", u.waits)
	}
	fmt.Fprintf(out, "release smoke: ok (%d modules, %d README programs%s)\n", len(modules), len(programs), waiting)
	return nil
}

// goCommand runs the go command in dir and returns its standard output; the
// error carries what it wrote to standard error.
func goCommand(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = env
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(stdout)), nil
}
