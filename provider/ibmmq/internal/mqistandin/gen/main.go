// Gen writes the two headers of the stand-in that hold numbers: mqconst.h
// (MQI constants as macros) and cmqstrc.h (their names as text). The numbers
// come from the Go constants that mq-golang publishes, read out of the module
// cache at build time, so none of them is kept in this repository.
//
//	go run ./internal/mqistandin/gen -ibmmq DIR -out DIR [C source]...
//
// Only what is named is written: by mq-golang's Go code (C.MQ...), by its cgo
// preambles, and by the C sources given.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	ibmmq := flag.String("ibmmq", "", "directory of mq-golang's package ibmmq")
	out := flag.String("out", "", "directory the headers go to")
	flag.Parse()
	if err := generate(*ibmmq, *out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func generate(ibmmq, out string, sources []string) error {
	if ibmmq == "" || out == "" {
		return errors.New("both -ibmmq and -out are needed")
	}
	all, err := readConstants(filepath.Join(ibmmq, "cmqc_linux_amd64.go"))
	if err != nil {
		return err
	}
	need := map[string]bool{}
	if err := namedByGo(ibmmq, need); err != nil {
		return err
	}
	for _, f := range sources {
		if err := namedByC(f, need); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, "mqconst.h"), []byte(macroHeader(all, need)), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "cmqstrc.h"), []byte(nameHeader(all)), 0o644)
}

var (
	word     = regexp.MustCompile(`\bMQ[A-Z0-9]*_[A-Z0-9_]+\b`)
	goUse    = regexp.MustCompile(`\bC\.(MQ[A-Z0-9]*_[A-Z0-9_]+)\b`)
	preamble = regexp.MustCompile(`(?s)/\*.*?\*/`)
)

// namedByGo adds the constants that package ibmmq takes from the C headers.
func namedByGo(dir string, need map[string]bool) error {
	files, err := filepath.Glob(filepath.Join(dir, "mq*.go"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("no Go files of package ibmmq in %s: run `go mod download` first", dir)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		for _, m := range goUse.FindAllStringSubmatch(string(b), -1) {
			need[m[1]] = true
		}
		for _, c := range preamble.FindAllString(string(b), -1) {
			if !strings.Contains(c, "#include") {
				continue
			}
			for _, m := range word.FindAllString(c, -1) {
				need[m] = true
			}
		}
	}
	return nil
}

func namedByC(file string, need map[string]bool) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for _, m := range word.FindAllString(string(b), -1) {
		need[m] = true
	}
	return nil
}

func sortedKeys(m map[string]bool) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
