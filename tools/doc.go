// Package tools pins the programs that check this project and holds its own:
// staticcheck (a tool directive in go.mod) and releasesmoke. It is a module of
// its own, outside go.work, so that nothing of it reaches a user's module graph.
package tools
