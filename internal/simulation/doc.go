// Package simulation runs the real manager on the embedded broker's profiles in virtual time, with random tasks, losses, hanging calls, stops and
// takeovers, and has orderaudit judge every run. A schedule is drawn from a seed; one that fails is shrunk to the steps that
// matter and printed with the command that replays it:
//
//	go test ./internal/simulation -run TestSeed -seed 4711 -v
//
// What the manager does in smaller schedules is recorded as observations of internal/model, which must be able to do the same (TestTraces).
//
// The package has no code but its tests.
package simulation
