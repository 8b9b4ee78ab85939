// Package jms is the contract between keyseq and a message broker. It needs the standard library only.
//
// A program that uses keyseq needs little of it: Message and Outgoing, which package keyseq repeats, and the errors ErrRolledBack and
// ErrCommitUnknown in OnMessageError, ErrConnectionLost as the cause of a task's context, ErrConfig from Start and Run. A provider for
// another broker implements three small interfaces (ConnectionFactory, Connection, Session: ten methods), says in Capabilities
// how the broker differs, and is checked by package providertest. Further powers are optional interfaces of a Connection:
// Elector, Predecessor, CleanStarter, Inquirer, QueueChecker. Interfaces add methods, Capabilities describe behaviour, never both for
// one thing.
//
// # What the manager does with it
//
// The manager connects once for a queue and opens a Session for every message in flight. One goroutine receives: it asks for
// room first, takes a session and calls Receive, so there are never two Receives at once on a connection. The message
// stays in its session, unsettled, until a task has handled it; then the session is committed (with what the task sends) or
// rolled back, from whichever goroutine ran the task, and is used again for another message.
//
// # The rules of a provider
//
// Each has a case of its own in package providertest.
//
//  1. Connect and New-style constructors check settings; only Connect does I/O. It returns when the connection
//     stands, and does not wait to become the active instance (that is Elector.AwaitActive).
//  2. Receive hands out messages in the queue's order, and a message handed out is invisible to everybody else until its
//     session commits, rolls back or closes. Messages are complete copies: nothing of them may be tied to the session.
//  3. A Receive that holds a message when its context ends returns the message. ctx.Err() means that nothing is held.
//     A waiting Receive returns promptly when a message arrives, when its context ends, and when the connection is closed.
//  4. No context may be kept after the call it was given to: a message is held long after the context of its Receive has ended.
//  5. Commit sends in the order given and removes the received message, as one act where Capabilities.AtomicSends says so;
//     otherwise each send is confirmed by the broker before the message is acknowledged. What cannot be routed or
//     stored is an error, never a silent success. A Commit without a received message only sends.
//  6. Rollback gives the received message back at once. Where Capabilities.RollbackInPlace is set it keeps its place in the queue,
//     whatever the order in which several are given back; where it is not, the manager never calls Rollback on a held message
//     but closes the connection, and a provider never gives back a message alone (it reports ErrConnectionLost instead).
//  7. After one of the errors ErrConnectionLost, ErrSessionLost, ErrCommitUnknown and ErrRolledBack only Close may follow
//     on that session, and the provider may rely on it. After any other error nothing was done: the session is as before the call,
//     a received message is still held, and the same call may be repeated.
//  8. Close of a session gives back what it holds; where Capabilities.RollbackInPlace is not set, by losing the connection. Close
//     of a connection closes its sessions, ends a waiting Receive and may come at any time, also during any other call. Both are
//     idempotent and safe after any error.
//  9. Calls on one session never overlap, but may come from different goroutines; calls on different sessions run
//     concurrently, and so do calls of OpenSession. Calls should return soon after their context ends; where the broker's
//     client cannot be interrupted they may not, and the manager then lets them end in the background.
//  10. Done is closed when the connection, or the role of the active instance, is lost, also while no call waits.
package jms
