module github.com/keyseq/keyseq/bench

go 1.26.0

require (
	github.com/keyseq/keyseq v0.1.0
	github.com/sourcegraph/conc v0.3.0
	go.uber.org/goleak v1.3.0
	golang.org/x/sync v0.25.0
)

require (
	go.uber.org/atomic v1.7.0 // indirect
	go.uber.org/multierr v1.9.0 // indirect
)

replace github.com/keyseq/keyseq => ..
