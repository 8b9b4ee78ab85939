// Package model is an explicit-state model of the give-back rule: what a manager does when a message leaves it unsettled.
//
// The model has a broker with one queue, one or two processes that read it, and a budget of faults. Every order in which
// their steps can happen is explored; at every start of a task the guarantees are checked, and on the whole graph that all
// messages can still be settled and that the rule does not fire for ever without a new fault. The rule is cut into clauses
// (see Clause). Dropping a clause is a mutant: the explorer must find the shortest way in which it breaks a guarantee.
//
// The files follow the parts: state.go is what there is; broker.go, reader.go, worker.go, loss.go, giveback.go and
// lifecycle.go are the steps; deadletter.go, ack.go, prefetch.go, probe.go and hang.go extend them, each behind a switch
// of Config; check.go has the guarantees; explore.go, progress.go, livelock.go and walk.go look at the graph;
// scenario.go lists what is explored; trace.go and checker.go decide whether what a real manager did is a path of the model.
package model
