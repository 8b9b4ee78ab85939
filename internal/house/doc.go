// Package house holds the tests about the tree itself: what the root module
// may link, which declarations are exported, how the documents and the tests
// hang together. It has no code of its own that a program could import; the
// rules are one test file each, and a rule's exceptions stand in that file
// with their reasons.
package house
