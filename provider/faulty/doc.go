// Package faulty wraps any provider and breaks it on purpose: it fails, delays, loses the reply of, or never returns from the k-th call of
// a kind, before or after its effect.
//
//	factory := faulty.New(broker,
//		faulty.On(faulty.Commit).Nth(3).After().Return(jms.ErrCommitUnknown), // done, and the reply is lost
//		faulty.On(faulty.Receive).Nth(7).Delay(time.Minute),
//		faulty.On(faulty.Commit).Nth(9).Hang(),
//	)
//
// Random draws such rules from a seed, within a budget. Factory.Events lists what was done; each rule prints as the Go
// expression that makes it, so a failure found at random is replayed by copying what was printed.
//
// # A fault is true
//
// What an injected error says is made true, so that the wrapped provider still keeps the contract of package jms. After jms.ErrConnectionLost
// the connection is closed, Done with it; after jms.ErrSessionLost, jms.ErrCommitUnknown or jms.ErrRolledBack the session is, and where the
// provider does not give back in place (Capabilities.RollbackInPlace) the connection. After any other error nothing was done. A commit that is
// done and whose reply is lost says jms.ErrCommitUnknown, whatever else it says.
//
// What a lost session or connection held is given back in order, before the caller hears of the loss. That a broker gives back
// late, or in silence, cannot be had from outside; package memory does that.
//
// Rules that match nothing change nothing: a wrapped healthy provider behaves as it does unwrapped, with the optional interfaces
// that its connections have and no others. Close each connection: its Done, once asked for, is watched by a goroutine until then.
package faulty
