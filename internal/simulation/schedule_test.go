package simulation

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/provider/memory"
)

// schedule is everything that makes a run, drawn from a seed. What a task does follows from the seed, the message and the attempt, so that
// leaving a step out changes nothing else.
type schedule struct {
	seed        uint64
	profile     int
	sac         bool // two instances, one active
	workers     int
	maxInFlight int
	keys        int
	messages    int
	maxRetries  int
	deadLetters bool
	maxHold     time.Duration
	failures    float64 // share of attempts that fail
	slow        float64 // share of tasks that outlive their timeout
	priorities  bool    // a key has a priority of its own
	maxBytes    int64   // MaxInFlightBytes; 0: the default
	deliveries  int     // MaxDeliveries
	sessions    int     // the broker's limit of sessions; 0: the profile's
	exhausted   keyseq.Action
	onKeyError  keyseq.Action
	keyErrors   float64       // share of messages whose key cannot be extracted
	unreadable  float64       // share of messages whose key cannot be read at first
	verdicts    float64       // share of failures that say something unusual
	slowUser    float64       // share of the other callbacks that take their time
	opening     time.Duration // the most that a session takes to be opened, where it is costly
	steps       []step
}

// step is something that happens to the run from outside.
type step struct {
	at   time.Duration
	kind stepKind
	n    uint64 // chooses what it happens to
}

type stepKind int

const (
	breakLink stepKind = iota
	breakLate
	loseSession
	loseReceive
	takeBack
	commitRolledBack
	commitLostReply
	commitLostBefore
	commitBusy
	commitHangs
	receiveHangs
	rollbackFails
	rollbackHangs
	openBusy
	connectFails
	closeFails
	restartBroker
	inhibitGet
	deadLettersInhibited
	quiesce
	loseRole
	connectHangs
	awaitHangs
	openHangs
	sessionCloseHangs
	manyEnds
	stopStart
	shutdownStart
	shutdownAtOnce
	stepKinds // how many there are
)

var stepNames = [...]string{"break link", "break link, broker late", "lose session", "lose receive", "take back", "commit rolled back", "commit done, reply lost",
	"commit lost", "commit busy", "commit hangs", "receive hangs", "rollback fails", "rollback hangs", "open session busy", "connect fails", "close fails",
	"restart broker", "inhibit get", "dead letters inhibited", "quiesce",
	"lose role", "connect hangs", "await active hangs", "open session hangs", "session close hangs", "several stops at once and start", "stop and start", "shutdown and start", "shutdown at once and start"}

func (s step) String() string { return fmt.Sprintf("%8v %s (%d)", s.at, stepNames[s.kind], s.n%1000) }

var profiles = []memory.Profile{{}, memory.LikeIBMMQ(), memory.LikeRabbitMQ(), memory.LikeQuorum()}

func draw(seed uint64) schedule {
	r := rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))
	s := schedule{
		seed: seed, profile: r.IntN(len(profiles)), sac: r.IntN(3) == 0, workers: 1 + r.IntN(6), maxInFlight: 1 + r.IntN(24), keys: 1 + r.IntN(6),
		messages: 5 + r.IntN(50), maxRetries: r.IntN(5) - 1, deadLetters: r.IntN(3) > 0,
		failures: r.Float64() * 0.4, slow: r.Float64() * 0.1,
	}
	if r.IntN(3) == 0 {
		s.maxHold = time.Duration(10+r.IntN(50)) * time.Second
		if s.sac {
			s.maxHold += takeover
		}
	}
	s.priorities = r.IntN(4) == 0
	if r.IntN(6) == 0 {
		s.maxBytes = 200 + r.Int64N(2000)
	}
	if r.IntN(4) == 0 {
		s.sessions = 1 + r.IntN(6)
		if s.sac {
			s.sessions++ // a standby may have one too
		}
	}
	if r.IntN(4) == 0 {
		s.verdicts, s.exhausted = r.Float64()*0.3, []keyseq.Action{keyseq.ActionAuto, keyseq.ActionHold, keyseq.ActionDiscard, keyseq.ActionStop}[r.IntN(4)]
		// Otherwise such a message would stop every run; and a broker that sends ahead counts what nobody has seen.
		if profiles[s.profile].Prefetch == 0 && (s.exhausted == keyseq.ActionDiscard || s.exhausted == keyseq.ActionAuto && s.deadLetters) {
			s.deliveries = r.IntN(2) * (1 + r.IntN(6))
		}
	}
	if r.IntN(4) == 0 {
		s.keyErrors, s.unreadable = r.Float64()*0.15, r.Float64()*0.15
		s.onKeyError = []keyseq.Action{keyseq.ActionAuto, keyseq.ActionDiscard, keyseq.ActionStop}[r.IntN(3)]
	}
	if r.IntN(4) == 0 {
		s.slowUser = r.Float64() * 0.1
	}
	for range r.IntN(9) {
		s.steps = append(s.steps, step{at: time.Duration(r.Int64N(int64(30 * time.Second))).Truncate(time.Millisecond), kind: stepKind(r.IntN(int(stepKinds))), n: r.Uint64()})
	}
	if profiles[s.profile].CostlySessions && r.IntN(4) > 0 {
		s.opening = time.Duration(r.Int64N(int64(2 * time.Second)))
	}
	return s
}

func (s schedule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: profile %q, single active consumer %t, workers %d, max in flight %d, keys %d, messages %d, max retries %d, dead letters %t, max hold %v, failures %.2f, slow %.2f\n",
		s.seed, profiles[s.profile].Name, s.sac, s.workers, s.maxInFlight, s.keys, s.messages, s.maxRetries, s.deadLetters, s.maxHold, s.failures, s.slow)
	fmt.Fprintf(&b, "  priorities %t, max bytes %d, max deliveries %d, sessions %d, on exhausted %v, on key error %v, key errors %.2f, unreadable keys %.2f, verdicts %.2f, slow callbacks %.2f, opening %v\n",
		s.priorities, s.maxBytes, s.deliveries, s.sessions, s.exhausted, s.onKeyError, s.keyErrors, s.unreadable, s.verdicts, s.slowUser, s.opening)
	for _, st := range s.steps {
		fmt.Fprintf(&b, "  %v\n", st)
	}
	return b.String()
}

// broker is the profile of the run.
func (s schedule) broker() memory.Profile {
	p := profiles[s.profile]
	if s.sessions > 0 {
		p.MaxSessions = s.sessions
	}
	return p
}

// choice is a number in [0,1) that belongs to a message and an attempt.
func (s schedule) choice(key string, seq int64, attempt int, what string) float64 {
	h := s.seed
	for _, c := range []byte(fmt.Sprintf("%s/%d/%d/%s", key, seq, attempt, what)) {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return rand.New(rand.NewPCG(h, h>>7)).Float64()
}
