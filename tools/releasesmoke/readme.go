package main

import (
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
)

// program is one complete program found in a Markdown document.
type program struct {
	line    int // of its first line in the document
	source  string
	imports []string
}

// readmePrograms returns the ```go blocks of a document that are package main.
// Other blocks are fragments for the reader and are left alone.
func readmePrograms(name string) ([]program, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var programs []program
	lines := strings.Split(string(data), "\n")
	for i := 0; i < len(lines); i++ {
		if strings.TrimSpace(lines[i]) != "```go" {
			continue
		}
		start := i + 1
		for i = start; i < len(lines) && strings.TrimSpace(lines[i]) != "```"; i++ {
		}
		if i == len(lines) {
			return nil, fmt.Errorf("%s line %d: the code block does not end", name, start)
		}
		source := strings.Join(lines[start:i], "\n") + "\n"
		if !isProgram(source) {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), "main.go", source, parser.ImportsOnly)
		if err != nil {
			return nil, fmt.Errorf("%s line %d: %w", name, start+1, err)
		}
		p := program{line: start + 1, source: source}
		for _, spec := range file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return nil, fmt.Errorf("%s line %d: %w", name, start+1, err)
			}
			p.imports = append(p.imports, path)
		}
		programs = append(programs, p)
	}
	return programs, nil
}

// isProgram reports whether the package clause is main. A block that does not
// parse but says package main is a program too: its error is the user's error.
func isProgram(source string) bool {
	for line := range strings.Lines(source) {
		switch line = strings.TrimSpace(line); {
		case line == "" || strings.HasPrefix(line, "//"):
		default:
			fields := strings.Fields(line)
			return len(fields) >= 2 && fields[0] == "package" && fields[1] == "main"
		}
	}
	return false
}
