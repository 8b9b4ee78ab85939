package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

const notice = "/* Made at build time from the constants that mq-golang publishes (Apache-2.0). Never committed. */\n"

type constant struct {
	name, text string // text is a C expression
	number     bool
}

// constants keeps the order of the file: where several names share a value, the first one names it.
type constants struct {
	byName map[string]constant
	list   []constant
}

// readConstants reads every constant that is a literal, or a negated one.
func readConstants(path string) (constants, error) {
	all := constants{byName: map[string]constant{}}
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		return all, err
	}
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			for i, id := range v.Names {
				if i >= len(v.Values) {
					continue
				}
				if c, ok := toC(id.Name, v.Values[i]); ok {
					all.byName[c.name] = c
					all.list = append(all.list, c)
				}
			}
		}
	}
	if len(all.list) == 0 {
		return all, fmt.Errorf("%s: no constants found", path)
	}
	return all, nil
}

func toC(name string, e ast.Expr) (constant, bool) {
	switch x := e.(type) {
	case *ast.BasicLit:
		switch x.Kind {
		case token.STRING:
			t, err := strconv.Unquote(x.Value)
			if err != nil {
				return constant{}, false
			}
			if strings.HasPrefix(name, "MQFMT_") {
				t = fmt.Sprintf("%-8s", t) // format names are eight characters; Go's are trimmed
			}
			return constant{name: name, text: strconv.Quote(t)}, true
		case token.CHAR:
			return constant{name: name, text: x.Value}, true
		default:
			return constant{name: name, text: x.Value, number: true}, true
		}
	case *ast.UnaryExpr:
		if l, ok := x.X.(*ast.BasicLit); ok {
			return constant{name: name, text: "(" + x.Op.String() + l.Value + ")", number: true}, true
		}
	}
	return constant{}, false
}

// macroHeader leaves out names that are no Go constant (macros of our own, words
// of a comment): where one is really wanted, the C compiler says so.
func macroHeader(all constants, need map[string]bool) string {
	var b strings.Builder
	b.WriteString(notice + "#ifndef MQCONST_H\n#define MQCONST_H\n\n")
	for _, name := range sortedKeys(need) {
		if c, ok := all.byName[name]; ok {
			fmt.Fprintf(&b, "#define %-34s %s\n", name, c.text)
		}
	}
	b.WriteString("\n#endif\n")
	return b.String()
}

// nameHeader has the lookups of cmqstrc.h. Texts that only tools for commands
// and monitoring want are empty: nothing here sends PCF commands.
func nameHeader(all constants) string {
	var b strings.Builder
	b.WriteString(notice + "#ifndef CMQSTRC_H\n#define CMQSTRC_H\n#include <cmqc.h>\n\n")
	for _, prefix := range []string{"MQCC", "MQRC", "MQRCCF", "MQOT"} {
		lookup(&b, all, prefix)
	}
	for _, prefix := range []string{"BACF", "CA", "CACF", "CACH", "CAMO", "CHT", "CMD", "IA", "IACF", "IACH", "IAMO", "IAMO64", "PL"} {
		fmt.Fprintf(&b, "static inline const char *MQ%s_STR(MQLONG v) { (void)v; return \"\"; }\n", prefix)
	}
	b.WriteString("\n#endif\n")
	return b.String()
}

func lookup(b *strings.Builder, all constants, prefix string) {
	bounds := []string{"MQRC_APPL_FIRST", "MQRC_APPL_LAST"} // limits of a range, not codes
	fmt.Fprintf(b, "static inline const char *%s_STR(MQLONG v) {\n  switch (v) {\n", prefix)
	seen := map[string]bool{}
	for _, c := range all.list {
		if !strings.HasPrefix(c.name, prefix+"_") || !c.number || seen[c.text] || slices.Contains(bounds, c.name) {
			continue
		}
		seen[c.text] = true
		fmt.Fprintf(b, "  case %s: return \"%s\";\n", c.text, c.name)
	}
	b.WriteString("  default: return \"\";\n  }\n}\n\n")
}
