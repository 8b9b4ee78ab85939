// Package orderaudit records a run of an ordered consumer and proves or refutes the guarantees G1-G4: order, never two, no
// loss, and duplicates only where something was lost.
package orderaudit
