package orderaudit

import (
	"cmp"
	"fmt"
	"time"
)

// Kind says what a Record records.
type Kind uint8

const (
	KindSent     Kind = iota + 1 // Key, Seq: the broker has confirmed the message
	KindDoubtful                 // Key, Seq: one more copy of the message may be on the queue, or not
	KindStart                    // Instance, Key, Seq, N (attempt), ID: a task is about to start
	KindReturn                   // as KindStart, Outcome: the task has returned and this is to become of the message
	KindEnd                      // as KindStart, Outcome: this has become of the message
	KindOutput                   // Key, Seq, N: the Nth message sent by the message's task has come out
	KindLeft                     // Key, Seq: found on the queue after the run
	KindLoss                     // Instance ("": all), Text, N (most messages in flight, 0: not known), ID (0: has no LossDone)
	KindLossDone                 // Instance, ID of its Loss: it has happened by now
	KindKilled                   // Instance: its process is dead; what ran has ended
	KindStarted                  // Instance: begins to read
	KindStopping                 // Instance: is about to be stopped and may give back what it holds
	KindTakeover                 // Instance, Delay: it waits so long after a loss of another instance
)

var kindNames = [...]string{"", "sent", "doubtful", "start", "return", "end", "output", "left", "loss", "loss done", "killed", "started", "stopping", "takeover"}

// String returns the name that saved histories use.
func (k Kind) String() string {
	if k > 0 && int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

func parseKind(s string) (Kind, error) {
	for i, name := range kindNames {
		if i > 0 && name == s {
			return Kind(i), nil
		}
	}
	return 0, fmt.Errorf("unknown kind %q", s)
}

// Record is one entry of a History. The constants of Kind say which fields each kind uses; the others are zero.
type Record struct {
	At       time.Duration // since the first record of the history or the making of the Recorder
	Instance string
	Key      string
	Text     string
	Seq      int64
	ID       uint64 // joins Start, Return and End of one attempt, or Loss and LossDone; 0: the message's latest attempt there
	N        int
	Delay    time.Duration
	Kind     Kind
	Outcome  Outcome
}

// String is one line for a reader, such as "+1.204s A: start of 4, attempt 1".
func (r Record) String() string {
	at := fmt.Sprintf("+%v ", r.At)
	switch r.Kind {
	case KindSent:
		return at + fmt.Sprintf("sent %d", r.Seq)
	case KindDoubtful:
		return at + fmt.Sprintf("sent %d, unconfirmed", r.Seq)
	case KindStart:
		return at + fmt.Sprintf("%s: start of %d, attempt %d", r.Instance, r.Seq, r.N)
	case KindReturn:
		return at + fmt.Sprintf("%s: task of %d returned, to be %v", r.Instance, r.Seq, r.Outcome)
	case KindEnd:
		return at + fmt.Sprintf("%s: %d %v", r.Instance, r.Seq, r.Outcome)
	case KindOutput:
		return at + fmt.Sprintf("output %d of %d", r.N, r.Seq)
	case KindLeft:
		return at + fmt.Sprintf("%d left on the queue", r.Seq)
	case KindLoss:
		who, most := cmp.Or(r.Instance, "all instances"), ""
		if r.N > 0 {
			most = fmt.Sprintf(", at most %d in flight", r.N)
		}
		return at + fmt.Sprintf("%s: loss (%s%s)", who, r.Text, most)
	case KindTakeover:
		return at + fmt.Sprintf("%s: takes over after %v", r.Instance, r.Delay)
	}
	return at + fmt.Sprintf("%s: %v", cmp.Or(r.Instance, "all instances"), r.Kind)
}
