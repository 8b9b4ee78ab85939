package orderaudit

import (
	"sync"
	"sync/atomic"
	"time"
)

// Recorder writes down what happens during a run. Make one with NewRecorder (in memory) or OpenFile (a file that
// survives a killed process). All methods are safe for concurrent use, never block on anything but a short mutex (and
// the write, for a file), and may be called from tasks and event functions. The order of the calls is the order that Check judges.
type Recorder struct {
	log    log
	lastID atomic.Uint64
}

// log keeps records in the order of its calls and stamps their time.
type log interface {
	append(Record)
	history() *History
	close() error
}

// NewRecorder returns a Recorder that keeps its records in memory, about 100 bytes each. Inside a testing/synctest
// bubble its times are virtual, if it was made there.
func NewRecorder() *Recorder {
	return &Recorder{log: &memoryLog{origin: time.Now()}}
}

// History returns what has been recorded up to now. It is a copy; recording may go on.
// For a file it reads the file.
func (r *Recorder) History() *History { return r.log.history() }

// Close ends a file's recording and returns the first error of any of its writes. In memory it does nothing.
// Records made after Close of a file are refused, and History says so to Check.
func (r *Recorder) Close() error { return r.log.close() }

// Sent records that the broker has confirmed message seq of key. Order does not matter, unless Options.Order is BySent.
// Once any message is recorded as sent, all of them must be: what starts and was never sent counts as invented.
func (r *Recorder) Sent(key string, seq int64) {
	r.log.append(Record{Kind: KindSent, Key: key, Seq: seq})
}

// SentDoubtful records, before or after an attempt to send, that message seq of key may have reached the queue. Each call
// stands for one possible copy; a Sent that follows confirms the latest. A doubtful message that never shows up is not lost.
func (r *Recorder) SentDoubtful(key string, seq int64) {
	r.log.append(Record{Kind: KindDoubtful, Key: key, Seq: seq})
}

// Left records that message seq of key was found on the queue when the run was over, so it is not lost.
func (r *Recorder) Left(key string, seq int64) {
	r.log.append(Record{Kind: KindLeft, Key: key, Seq: seq})
}

// Output records that the nth message (from 1) which the task of message seq sent has come out at its destination.
func (r *Recorder) Output(key string, seq int64, n int) {
	r.log.append(Record{Kind: KindOutput, Key: key, Seq: seq, N: n})
}

// Start records that instance is about to run a task; call it before the task does anything. Attempt counts from 1; 0 means
// that attempts are not numbered.
func (r *Recorder) Start(instance, key string, seq int64, attempt int) Attempt {
	a := Attempt{recorder: r, record: Record{Instance: instance, Key: key, Seq: seq, N: attempt, ID: r.lastID.Add(1)}}
	a.write(KindStart, Open)
	return a
}

// End records the outcome of the latest attempt of message seq on instance, for places that do not have its Attempt at
// hand. A message that a policy settled without any task has no attempt: End records its outcome alone. GivenBack is ignored
// for a message whose task has not begun, so that every event of the manager may be passed on.
func (r *Recorder) End(instance, key string, seq int64, outcome Outcome) {
	r.log.append(Record{Kind: KindEnd, Instance: instance, Key: key, Seq: seq, Outcome: outcome})
}

// Loss records that instance ("": every instance) lost its connection, a session or its broker. What was in flight there may
// repeat: at most maxInFlight messages (0: not known). A test that causes a loss calls Loss before and Done after
// it, because other instances act, and this one still may, while it happens:
//
//	loss := rec.Loss("A", "kill -9", 100)
//	_ = process.Kill()
//	_, _ = process.Wait()
//	rec.Killed("A")
//	loss.Done()
//
// Who only notices a loss (a state event) needs no Done; the loss then lies where it was noticed.
func (r *Recorder) Loss(instance, description string, maxInFlight int) Loss {
	id := r.lastID.Add(1)
	r.log.append(Record{Kind: KindLoss, Instance: instance, Text: description, N: maxInFlight, ID: id})
	return Loss{recorder: r, instance: instance, id: id}
}

// Loss is a recorded loss that may still be happening.
type Loss struct {
	recorder *Recorder
	instance string
	id       uint64
}

// Done records that the loss has happened by now.
func (l Loss) Done() {
	l.recorder.log.append(Record{Kind: KindLossDone, Instance: l.instance, ID: l.id})
}

// Killed records that the process of instance is dead: what it ran has ended here at the latest. Call it when the process has
// been waited for. It counts as a loss too.
func (r *Recorder) Killed(instance string) {
	r.log.append(Record{Kind: KindKilled, Instance: instance})
}

// InstanceStarted records that instance begins to read. No rule needs it; timelines show it.
func (r *Recorder) InstanceStarted(instance string) {
	r.log.append(Record{Kind: KindStarted, Instance: instance})
}

// InstanceStopping records that instance is about to be stopped; call it before Stop or Shutdown. From here on a message
// whose last attempt failed may be given back and start on another instance.
func (r *Recorder) InstanceStopping(instance string) {
	r.log.append(Record{Kind: KindStopping, Instance: instance})
}

// Takeover records that instance starts nothing earlier than delay after another instance was lost. A task that runs longer
// than that after its loss may overlap; one that starts sooner breaks G2.
func (r *Recorder) Takeover(instance string, delay time.Duration) {
	r.log.append(Record{Kind: KindTakeover, Instance: instance, Delay: delay})
}

// Attempt is one recorded attempt. The zero Attempt is not usable.
type Attempt struct {
	recorder *Recorder
	record   Record
}

// Return records that the task has returned and what is meant to become of its message; call it as the last act of the
// task, before the message is settled. Without an End the intent counts as the outcome, but as one that a loss may undo.
func (a Attempt) Return(intent Outcome) { a.write(KindReturn, intent) }

// End records what has become of the message; call it when the settlement is done, before the key goes on.
// On an instance that never records a Return, the End of an attempt ends its task too; on any other a task without a Return
// runs on, whatever its outcome.
func (a Attempt) End(outcome Outcome) { a.write(KindEnd, outcome) }

func (a Attempt) write(kind Kind, outcome Outcome) {
	rec := a.record
	rec.Kind, rec.Outcome = kind, outcome
	a.recorder.log.append(rec)
}

// memoryLog keeps records in chunks, so that growing never copies what is there while tasks wait.
type memoryLog struct {
	origin time.Time
	mu     sync.Mutex
	chunks [][]Record
}

const chunkSize = 4096

func (l *memoryLog) append(rec Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	rec.At = time.Since(l.origin)
	last := len(l.chunks) - 1
	if last < 0 || len(l.chunks[last]) == chunkSize {
		l.chunks = append(l.chunks, make([]Record, 0, chunkSize))
		last++
	}
	l.chunks[last] = append(l.chunks[last], rec)
}

func (l *memoryLog) history() *History {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := &History{Records: make([]Record, 0, len(l.chunks)*chunkSize)}
	for _, c := range l.chunks {
		h.Records = append(h.Records, c...)
	}
	return h
}

func (l *memoryLog) close() error { return nil }
