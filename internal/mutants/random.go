package mutants

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
)

// Random returns every small mutation of the files under root: a condition negated, a statement dropped, a constant changed, a returned
// bool or error changed. Whoever draws from them does so at random.
func Random(root string, files ...string) ([]Mutant, error) {
	var all []Mutant
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return nil, err
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, file, text, 0)
		if err != nil {
			return nil, err
		}
		g := generator{set: set, file: file, text: string(text)}
		ast.Inspect(tree, g.visit)
		all = append(all, g.out...)
	}
	return all, nil
}

type generator struct {
	set  *token.FileSet
	file string
	text string
	out  []Mutant
}

// change replaces a node. The Edit has the whole file: a piece of it may not be unique.
func (g *generator) change(n ast.Node, what, by string) {
	from, to := g.set.Position(n.Pos()), g.set.Position(n.End())
	was := g.text[from.Offset:to.Offset]
	g.out = append(g.out, Mutant{
		Name: fmt.Sprintf("%s:%d:%d", g.file, from.Line, from.Column), Row: "random", Breaks: fmt.Sprintf("%s: %s", what, was),
		Edits: []Edit{{g.file, g.text, g.text[:from.Offset] + by + g.text[to.Offset:]}},
	})
}

func (g *generator) source(n ast.Node) string {
	return g.text[g.set.Position(n.Pos()).Offset:g.set.Position(n.End()).Offset]
}

func (g *generator) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok != token.CONST && n.Tok != token.IMPORT
	case *ast.IfStmt:
		g.change(n.Cond, "condition negated", "!("+g.source(n.Cond)+")")
	case *ast.ForStmt:
		if n.Cond != nil {
			g.change(n.Cond, "loop condition false", "false && ("+g.source(n.Cond)+")")
		}
	case *ast.CaseClause:
		for _, e := range n.List {
			if b, ok := e.(*ast.BinaryExpr); ok {
				g.change(b, "case negated", "!("+g.source(b)+")")
			}
		}
	case *ast.ReturnStmt:
		for _, e := range n.Results {
			if id, ok := e.(*ast.Ident); ok {
				if by, ok := map[string]string{"true": "false", "false": "true", "err": "nil"}[id.Name]; ok {
					g.change(id, "returned value changed", by)
				}
			}
		}
	case *ast.BasicLit:
		if i, err := strconv.Atoi(n.Value); err == nil && n.Kind == token.INT {
			g.change(n, "constant changed", strconv.Itoa(i+1))
		}
	case *ast.BlockStmt:
		for _, s := range n.List {
			g.drop(s)
		}
	}
	return true
}

// drop leaves out a statement, but not a log line, which no test should need.
func (g *generator) drop(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.ExprStmt:
		if call, ok := s.X.(*ast.CallExpr); ok {
			if f, ok := call.Fun.(*ast.SelectorExpr); ok {
				if of, ok := f.X.(*ast.SelectorExpr); ok && of.Sel.Name == "log" {
					return
				}
			}
		}
	case *ast.AssignStmt:
		if s.Tok == token.DEFINE {
			return
		}
	case *ast.IncDecStmt, *ast.DeferStmt, *ast.GoStmt:
	default:
		return
	}
	g.change(s, "statement dropped", "")
}
