// Package orderaudit records a run of a consumer that handles the messages of a key one after another, and proves or
// refutes four guarantees from the record alone:
//
//   - G1 order: the task of message n+1 of a key does not start before message n is settled, also during retries, after
//     losses and on another instance.
//   - G2 never two: two tasks of a key do not run at the same time. A task of an instance that has been lost may overlap with one of
//     its successor, if it outlives the takeover delay, and if it is not committed.
//   - G3 no loss: every message that was sent is settled as its policy says (or still on the queue), nothing else is, retries are
//     counted 1, 2, 3, and what its task sent has come out.
//   - G4 duplicates: a message starts again only if it was given back, or in flight at a recorded loss; at most what was in flight
//     repeats; the key then runs forward in order.
//
// It knows nothing of queues or brokers and trusts no one's counters: the record is made where the work is done.
//
// # Auditing a task
//
// Give each message of a key a number when it is sent, carry it in a property or the body, and record:
//
//	rec := orderaudit.NewRecorder()
//
//	// the producer, when the broker has confirmed the message
//	rec.Sent(key, seq)
//
//	// the task
//	a := rec.Start("A", key, seq, d.Attempt)
//	err := work(ctx)
//	if err != nil {
//		a.Return(orderaudit.Failed)
//		return err
//	}
//	a.Return(orderaudit.Settled)
//	return nil
//
//	// the events of the manager: committed, dead-lettered, discarded, rolled back
//	rec.End("A", key, seq, orderaudit.Settled)
//
//	// the test, at its end
//	if err := rec.History().Check(orderaudit.Options{}).Err(); err != nil {
//		t.Error(err)
//	}
//
// Return says what is meant to happen, End what has happened. Without the events a message counts as settled when its
// task has returned, and G1 is proved only up to there: record both. A task that was cancelled (connection lost,
// shutdown) returns GivenBack; one that ran into its own timeout, Failed. A commit in doubt ends Unknown. End must be
// recorded before the next message of the key starts, so from an event that is told before the key goes on.
//
// Numbers may start anywhere and may have holes when Sent is recorded. A test that cannot record what was sent leaves Sent
// out; then numbers must be gapless from Options.Base on, and the loss of a key's last messages goes unseen. A
// message whose sending failed half-way is SentDoubtful. What is found on the queue afterwards is Left.
//
// # Losses and several processes
//
// A repeat needs a reason in the record. A test that cuts a connection, kills a broker or freezes a process wraps that in
// Loss and Done; a stop is announced by InstanceStopping. Instances are names: two managers in one process, or
// processes.
//
// A process that may be killed records to a file of its own (OpenFile): each record is on its way to the disk cache, by one
// write, before the effect it speaks of. Load joins the files of one machine. Where acknowledgements are asynchronous
// (RabbitMQ), set Options.AckDelay to how long the broker may take to process one.
//
// # What it cannot prove
//
//   - That every key in a record is the right key. If the extractor puts all messages under one key, or every message under a key
//     of its own, take the key for the record from where the producer put it.
//   - What was not recorded. A task that works before Start or after Return is outside; a message that another consumer took is lost.
//   - Settlement itself: End repeats what the client library reported. A message that was settled and is still on the queue shows
//     only when it comes again, or as Left.
//   - That a commit in doubt was done. Verdict.Uncertain counts messages that ended so.
//   - That a broker marked a repeat as redelivered: brokers mark too many or none.
//   - Anything about runs that were not made. Vary them: many keys, failures, losses.
//   - Times across machines: files of different machines cannot be joined.
//
// # Saved histories
//
// History.WriteTo, and every file of a recorder, is text: a JSON object a line. The first line, and each opening of a file,
// is a header:
//
//	{"k":"orderaudit","v":1,"clock":"monotonic"}
//
// v is the version of the format. Times compare between files of the clocks monotonic (of one machine since its start) and wall;
// those of the clock run count from the beginning of their own run. The other lines are records:
//
//	k       sent, doubtful, start, return, end, output, left, loss, loss done, killed, started, stopping, takeover
//	t       time in nanoseconds
//	i       instance; of a loss, missing: every instance
//	key     key of the message; or key64, in base64, when it is not valid UTF-8
//	seq     number of the message
//	id      joins start, return and end of one attempt, or loss and loss done; missing: the latest attempt of the message
//	n       attempt (start, return, end), number of the output (output), most messages in flight (loss)
//	o       outcome of return and end: settled, failed, dead-lettered, discarded, given back, unknown
//	d       nanoseconds of the takeover delay
//	text    description of the loss
//
// Fields with the value 0 or "" may be missing, except t and key. A last line that a kill has cut off is skipped and counted
// in History.Torn; any other line that does not fit is an error.
package orderaudit
