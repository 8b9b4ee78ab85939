package orderaudit_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/keyseq/keyseq/orderaudit"
)

// ruleCase is a history and what Check must say of it. The cases come in pairs: right, and the nearest wrong one.
type ruleCase struct {
	name   string
	want   orderaudit.Rule // "": it must pass
	says   string          // a part of the violation's sentence
	count  int             // of violations in all; 0: any
	opts   orderaudit.Options
	script string
}

func runCases(t *testing.T, cases []ruleCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h := script(t, c.script)
			c.judge(t, h)
			if c.opts.AckDelay == 0 && !strings.Contains(c.script, "takeover") {
				for i := range h.Records { // as in virtual time: only the order of the records tells
					h.Records[i].At = 0
				}
				c.judge(t, h)
			}
		})
	}
}

func (c ruleCase) judge(t *testing.T, h *orderaudit.History) {
	t.Helper()
	v := h.Check(c.opts)
	if c.want == "" {
		if err := v.Err(); err != nil {
			t.Fatal(err)
		}
		return
	}
	if c.count > 0 && len(v.Violations) != c.count {
		t.Errorf("not %d: %v", c.count, v)
	}
	i := slices.IndexFunc(v.Violations, func(v orderaudit.Violation) bool { return v.Rule == c.want && strings.Contains(v.Text, c.says) })
	if i < 0 {
		t.Fatalf("no violation of %s that says %q in\n%v", c.want, c.says, v)
	}
	if v.OK() || v.Err() == nil {
		t.Error("OK in spite of a violation")
	}
}

func TestG1Order(t *testing.T) {
	runCases(t, []ruleCase{
		{name: "in order", script: "sent 1 2 3\nA run 1 2 3"},
		{name: "numbers from 0, with holes", script: "sent 0 5 9\nA run 0 5 9"},
		{name: "swapped", want: orderaudit.G1, says: "before message 1 is settled: it starts later",
			script: "sent 1 2 3\nA run 2 1 3"},
		{name: "before the commit", want: orderaudit.G1, says: "before message 1 is settled: it is settled at",
			script: "sent 1 2\nA start 1\nA return 1 settled\nA start 2\nA end 1 settled\nA return 2 settled\nA end 2 settled"},
		{name: "while the predecessor waits for its retry", want: orderaudit.G1, says: "it was failed",
			script: "sent 1 2\nA start 1\nA return 1 failed\nA run 2\nA start 1 2\nA return 1 settled\nA end 1 settled"},
		{name: "other keys do not wait", script: "sent 1\nkey l\nsent 1\nkey k\nA start 1\nkey l\nA run 1\nkey k\nA return 1 settled\nA end 1 settled"},
		{name: "dead-lettered and discarded ones free their key",
			script: "sent 1 2 3 4\nA start 1\nA return 1 failed\nA end 1 dead-lettered\nA start 2\nA return 2 discarded\nA end 2 discarded\nA policy 3 dead-lettered\nA run 4"},
		{name: "an unknown outcome frees its key", script: "sent 1 2\nA start 1\nA return 1 settled\nA end 1 unknown\nA run 2"},
		{name: "a rolled back one does not", want: orderaudit.G1, says: "given back",
			script: "sent 1 2\nA start 1\nA return 1 settled\nA end 1 given-back\nA run 2 1"},
		{name: "priority: order of the Sent records", opts: orderaudit.Options{Order: orderaudit.BySent}, script: "sent 3 1 2\nA run 3 1 2"},
		{name: "priority ignored", want: orderaudit.G1, opts: orderaudit.Options{Order: orderaudit.BySent}, script: "sent 3 1 2\nA run 1 2 3"},
		{name: "left behind", want: orderaudit.G1, says: "left on the queue", script: "sent 1 2\nA run 2\nleft 1"},
		{name: "skipped in a run cut short", want: orderaudit.G1, says: "never started",
			opts: orderaudit.Options{Incomplete: true}, script: "sent 1 2\nA run 2"},
		{name: "takeover while the predecessor runs in the lost instance", want: orderaudit.G1, says: "has been running",
			script: "sent 1 2\nA start 1\nloss A 5\nB run 2"},
		{name: "takeover after a kill skips the interrupted one", want: orderaudit.G1, says: "killed",
			script: "sent 1 2\nA start 1\nloss A 5\nkilled A\nB run 2"},
		{name: "takeover resumes at the interrupted one", script: "sent 1 2\nA start 1\nloss A 5\nkilled A\nB run 1 2"},
		{name: "a commit done and then lost is noted late",
			script: "sent 1 2\nA start 1\nA return 1 settled\nloss A 5\nB run 2\nA end 1 unknown"},
		{name: "a commit in doubt is noted late in the same instance", want: orderaudit.G1,
			script: "sent 1 2\nA start 1\nA return 1 settled\nloss A 5\nA run 2\nA end 1 unknown"},
		{name: "a commit that failed is noted late", want: orderaudit.G1, says: "it is given back at",
			script: "sent 1 2\nA start 1\nA return 1 settled\nloss A 5\nB run 2\nA end 1 given-back\nB run 1"},
		{name: "hand-over before the commit is noted", want: orderaudit.G1,
			script: "sent 1 2\nA start 1\nA return 1 settled\nB run 2\nA end 1 settled"},
	})
}

func TestG2NeverTwo(t *testing.T) {
	runCases(t, []ruleCase{
		{name: "two messages at once", want: orderaudit.G2, says: "in the same instance",
			script: "sent 1 2\nA start 1\nA start 2\nA return 1 settled\nA end 1 settled\nA return 2 settled\nA end 2 settled"},
		{name: "a retry beside its own earlier attempt", want: orderaudit.G2, count: 1, says: "in the same instance",
			script: "sent 1\nA start 1\nA end 1 failed\nA start 1 2\nA return 1 settled\nA end 1 settled"},
		{name: "a repeat beside its own earlier attempt", want: orderaudit.G2, count: 1, says: "in the same instance",
			script: "sent 1\nA start 1\nA start 1\nA return 1 settled\nA end 1 settled"},
		{name: "a zombie beside its message after a loss", want: orderaudit.G2, says: "in the same instance",
			script: "sent 1 2\nA start 1\nloss A 5\nA run 1\nA run 2"},
		{name: "a zombie that has ended", script: "sent 1 2\nA start 1\nloss A 5\nA return 1 given-back\nA run 1\nA run 2"},
		{name: "two instances, nothing lost", want: orderaudit.G2, says: "no loss of A",
			script: "sent 1\nA start 1\nB start 1\nA return 1 given-back\nA end 1 given-back\nB return 1 settled\nB end 1 settled"},
		{name: "another instance's loss does not excuse", want: orderaudit.G2, says: "no loss of A",
			script: "sent 1\nA start 1\nloss B 5\nB start 1\nA return 1 given-back\nA end 1 given-back\nB return 1 settled\nB end 1 settled"},
		{name: "frozen, taken over, thawed, not committed",
			script: "sent 1 2\nA start 1\nloss A 5\nB run 1\nB start 2\nA return 1 settled\nA end 1 given-back\nB return 2 settled\nB end 2 settled"},
		{name: "frozen, taken over, thawed and committed", want: orderaudit.G2, says: "was settled after the loss of A",
			script: "sent 1\nA start 1\nloss A 5\nB start 1\nA return 1 settled\nA end 1 settled\nB return 1 settled\nB end 1 unknown"},
		{name: "a new start after the thaw", want: orderaudit.G2, says: "no loss of B",
			script: "sent 1 2\nA start 1\nloss A 5\nB run 1\nB start 2\nA return 1 settled\nA end 1 given-back\nA start 2\nB return 2 settled\nB end 2 settled\nA return 2 settled\nA end 2 given-back"},
		{name: "takeover delay kept", script: "takeover B 50ms\nsent 1\nA start 1\nloss A 5\nwait 49ms\nB run 1\nA return 1 given-back"},
		{name: "takeover delay broken", want: orderaudit.G2, says: "it takes over after 50ms",
			script: "takeover B 50ms\nsent 1\nA start 1\nloss A 5\nwait 48ms\nB run 1\nA return 1 given-back"},
		{name: "taken over while the kill goes on", script: "sent 1\nloss A 5\nA start 1\nB run 1\nkilled A\ndone A"},
		{name: "taken over before the kill", want: orderaudit.G2, says: "no loss of A", script: "sent 1\nA start 1\nB run 1\nloss A 5\nkilled A\ndone A"},
		{name: "taken over after the kill was done", want: orderaudit.G2, says: "no loss of A", script: "sent 1\nloss A 5\ndone A\nA start 1\nB run 1\nA return 1 given-back"},
		{name: "killed tasks end at the kill", script: "sent 1\nA start 1\nkilled A\nB run 1"},
	})
}

func TestG3NoLoss(t *testing.T) {
	expect := func(_ string, seq int64) orderaudit.Outcome {
		return map[int64]orderaudit.Outcome{2: orderaudit.DeadLettered}[seq]
	}
	runCases(t, []ruleCase{
		{name: "lost before it started", want: orderaudit.G3, says: "message 2 is lost: it never started", script: "sent 1 2 3\nA run 1 3"},
		{name: "never retried", want: orderaudit.G3, says: "failed and was not retried", script: "sent 1\nA start 1\nA return 1 failed"},
		{name: "given back and gone", want: orderaudit.G3, says: "never came again", script: "sent 1\nA start 1\nA end 1 given-back"},
		{name: "killed and gone", want: orderaudit.G3, says: "process was killed", script: "sent 1\nA start 1\nkilled A"},
		{name: "no outcome", want: orderaudit.G3, says: "no outcome", script: "sent 1\nA start 1"},
		{name: "left on the queue", script: "sent 1 2\nA start 1\nA end 1 failed\nleft 1 2"},
		{name: "cut short", opts: orderaudit.Options{Incomplete: true}, script: "sent 1 2\nA start 1"},
		{name: "invented", want: orderaudit.G3, says: "message 3 was never sent", script: "sent 1 2\nA run 1 2 3"},
		{name: "invented and not settled", want: orderaudit.G3, count: 1, says: "message 2 was never sent", script: "sent 1\nA run 1\nA start 2\nA return 2 failed"},
		{name: "invented key", want: orderaudit.G3, says: "never sent", script: "sent 1\nA run 1\nkey typo\nA run 1"},
		{name: "doubtful, not arrived", script: "sent 1\ndoubtful 2\nsent 3\nA run 1 3"},
		{name: "doubtful, arrived", script: "sent 1\ndoubtful 2\nsent 3\nA run 1 2 3"},
		{name: "doubtful, then confirmed, then lost", want: orderaudit.G3, says: "message 2 is lost", script: "sent 1\ndoubtful 2\nsent 2 3\nA run 1 3"},
		{name: "doubtful, arrived, not settled", want: orderaudit.G3, script: "doubtful 1\nA start 1\nA end 1 failed"},
		{name: "without Sent: no gap", opts: orderaudit.Options{Base: 1}, script: "A run 1 2 3"},
		{name: "without Sent: gap", want: orderaudit.G3, says: "messages 2 to 3", opts: orderaudit.Options{Base: 1}, script: "A run 1 4"},
		{name: "without Sent: first missing", want: orderaudit.G3, says: "messages 0 to 0", script: "A run 1 2"},
		{name: "without Sent: below the base", want: orderaudit.G3, says: "before the first", opts: orderaudit.Options{Base: 1}, script: "A run 0 1"},
		{name: "as the policy demands", opts: orderaudit.Options{Expect: expect}, script: "sent 1 2\nA run 1\nA start 2\nA return 2 dead-lettered\nA end 2 dead-lettered"},
		{name: "not as the policy demands", want: orderaudit.G3, says: "policy demands dead-lettered",
			opts: orderaudit.Options{Expect: expect}, script: "sent 1 2\nA run 1 2"},
		{name: "retries count up", script: "sent 1\nA start 1\nA return 1 failed\nA start 1 2\nA return 1 failed\nA start 1 3\nA return 1 settled\nA end 1 settled"},
		{name: "attempts without numbers", script: "sent 1\nA start 1 0\nA return 1 failed\nA start 1 0\nA return 1 settled\nA end 1 unknown\nA start 1 0\nA return 1 settled\nA end 1 settled"},
		{name: "a retry is skipped", want: orderaudit.G3, says: "must be counted 2", script: "sent 1\nA start 1\nA return 1 failed\nA start 1 3\nA return 1 settled\nA end 1 settled"},
		{name: "a retry counts from 1", want: orderaudit.G3, says: "must be counted 2", script: "sent 1\nA start 1\nA return 1 failed\nA run 1"},
		{name: "the first is counted 2", want: orderaudit.G3, says: "must be counted 1", script: "sent 1\nA start 1 2\nA return 1 settled\nA end 1 settled"},
		{name: "counting goes on after a loss", script: "sent 1\nA start 1\nA return 1 failed\nloss A 5\nA start 1 2\nA return 1 settled\nA end 1 settled"},
		{name: "counting begins again after a loss", script: "sent 1\nA start 1\nA return 1 failed\nloss A 5\nA start 1\nA return 1 settled\nA end 1 settled"},
		{name: "counting jumps after a loss", want: orderaudit.G3, says: "never started",
			script: "sent 1\nA start 1\nA return 1 failed\nloss A 5\nA start 1 3\nA return 1 settled\nA end 1 settled"},
	})
}

func TestG4Duplicates(t *testing.T) {
	async := orderaudit.Options{AckDelay: 100 * time.Millisecond}
	runCases(t, []ruleCase{
		{name: "nothing was lost", want: orderaudit.G4, says: "no loss of A", script: "sent 1\nA start 1\nA return 1 settled\nA run 1"},
		{name: "the commit was lost", script: "sent 1 2\nA start 1\nA return 1 settled\nloss A 5\nA run 1 2"},
		{name: "the loss came before", want: orderaudit.G4, says: "no loss of A", script: "sent 1\nloss A 5\nA start 1\nA return 1 settled\nA run 1"},
		{name: "the loss came after", want: orderaudit.G4, says: "no loss of A", script: "sent 1\nA start 1\nA return 1 settled\nA run 1\nloss A 5"},
		{name: "another instance's loss", want: orderaudit.G4, says: "no loss of A", script: "sent 1\nA start 1\nA return 1 settled\nloss B 5\nA run 1"},
		{name: "everyone's loss", script: "sent 1\nA start 1\nA return 1 settled\nloss * 5\nA run 1"},
		{name: "a kill is a loss", script: "sent 1\nA start 1\nA return 1 settled\nkilled A\nA run 1"},
		{name: "rolled back", script: "sent 1\nA start 1\nA return 1 settled\nA end 1 given-back\nB run 1"},
		{name: "in doubt", script: "sent 1\nA start 1\nA return 1 settled\nA end 1 unknown\nA run 1"},
		{name: "in doubt, but its successor began", want: orderaudit.G4, says: "after a later one", script: "sent 1 2\nA start 1\nA return 1 settled\nA end 1 unknown\nA run 2 1"},
		{name: "settled for certain", want: orderaudit.G4, says: "which no loss undoes", script: "sent 1\nA run 1\nloss A 5\nA run 1"},
		{name: "settled, seen again on the queue", want: orderaudit.G4, says: "still on the queue", script: "sent 1\nA run 1\nleft 1"},
		{name: "a retry moves to another instance, nothing lost", want: orderaudit.G4,
			script: "sent 1\nA start 1\nA return 1 failed\nB run 1"},
		{name: "a retry moves to another instance at a stop", script: "sent 1\nA start 1\nA return 1 failed\nstopping A\nB run 1"},
		{name: "forward after the loss", script: "sent 1 2 3\nA run 1\nA start 2\nloss A 5\nB run 2 3"},
		{name: "not forward after the loss", want: orderaudit.G1, says: "before message 2 is settled", script: "sent 1 2 3\nA run 1\nA start 2\nloss A 5\nB run 3 2"},
		{name: "acks lost: both repeat", opts: async, script: "sent 1 2 3\nA run 1 2\nloss A 5\nB run 1 2 3"},
		{name: "acks lost: on a synchronous broker", want: orderaudit.G4, script: "sent 1 2 3\nA run 1 2\nloss A 5\nB run 1 2 3"},
		{name: "acks lost: only the later repeats", opts: async, script: "sent 1 2 3\nA run 1 2\nloss A 5\nB run 2 3"},
		{name: "acks lost: not forward", want: orderaudit.G4, says: "after a later one", opts: async, script: "sent 1 2 3\nA run 1 2\nloss A 5\nB run 2 1 3"},
		{name: "acks lost: not waiting for the repeat", want: orderaudit.G1, opts: async, script: "sent 1 2\nA run 1 2\nloss A 5\nB start 1\nB run 2\nB return 1 settled\nB end 1 settled"},
		{name: "acks lost: too long ago", want: orderaudit.G4, opts: async, script: "sent 1 2\nA run 1\nwait 200ms\nA run 2\nloss A 5\nB run 1 2"},
		{name: "acks lost: outcomes not recorded", opts: async, script: "sent 1 2\nA start 1\nA return 1 settled\nA run 2\nloss A 5\nA run 1 2"},
		{name: "acks lost: outcomes not recorded, too long ago", want: orderaudit.G4, opts: async,
			script: "sent 1 2\nA start 1\nA return 1 settled\nwait 200ms\nA run 2\nloss A 5\nA run 1 2"},
		{name: "acks lost: before the later one began", want: orderaudit.G4, says: "after a later one", opts: async, script: "sent 1 2\nA run 1\nloss A 5\nA run 2 1"},
		{name: "in doubt does not count against a later loss",
			script: "sent 1\nkey l\nsent 1\nkey k\nA start 1\nA return 1 settled\nA end 1 unknown\nkey l\nA start 1\nA return 1 settled\nloss A 1\nA run 1\nkey k\nA run 1"},
		{name: "as many as were in flight", script: "sent 1\nkey l\nsent 1\nkey k\nA start 1\nkey l\nA start 1\nloss A 2\nkilled A\nkey k\nB run 1\nkey l\nB run 1"},
		{name: "more than were in flight", want: orderaudit.G4, says: "one more than the 1 in flight",
			script: "sent 1\nkey l\nsent 1\nkey k\nA start 1\nA return 1 settled\nkey l\nA start 1\nA return 1 settled\nloss A 1\nkey k\nB run 1\nkey l\nB run 1"},
		{name: "a kill during another's loss", script: "sent 1\nB start 1\nloss A 1\nkilled B\ndone A\nC run 1"},
		{name: "more than were in flight at a kill", want: orderaudit.G4, says: "one more than the 1 in flight",
			script: "sent 1\nkey l\nsent 1\nkey k\nA start 1\nkey l\nA start 1\nloss A 1\nkilled A\ndone A\nkey k\nB run 1\nkey l\nB run 1"},
		{name: "two losses, one each", script: "sent 1\nkey l\nsent 1\nkey k\nA start 1\nA return 1 settled\nkey l\nA start 1\nA return 1 settled\nloss A 1\nloss A 1\nkey k\nA run 1\nkey l\nA run 1"},
		{name: "sent twice in doubt", script: "doubtful 1\ndoubtful 1\nsent 1 2\nA run 1 1 2"},
		{name: "sent twice in doubt, the second later", script: "doubtful 1\nsent 2\ndoubtful 1\nA run 1 2 1"},
		{name: "sent twice in doubt, seen three times, later", want: orderaudit.G4, script: "doubtful 1\nsent 2\ndoubtful 1\nA run 1 2 1\nA run 1"},
		{name: "sent twice in doubt, one is left", script: "doubtful 1\ndoubtful 1\nA run 1\nleft 1"},
		{name: "acks lost: at the last moment", opts: async, script: "sent 1\nA run 1\nwait 99ms\nloss A 5\nB run 1"},
		{name: "acks lost: a moment too late", want: orderaudit.G4, opts: async, script: "sent 1\nA run 1\nwait 100ms\nloss A 5\nB run 1"},
		{name: "a loss that was over does not count while another goes on", want: orderaudit.G4, says: "one more than the 1 in flight",
			script: "sent 1\nkey l\nsent 1\nkey k\nloss * 1\nloss A 5\nA start 1\nA return 1 settled\nkey l\nA start 1\nA return 1 settled\nA start 1\nkey k\nA start 1\ndone *"},
		{name: "sent twice in doubt, seen three times", want: orderaudit.G4, script: "doubtful 1\ndoubtful 1\nsent 1 2\nA run 1 1 1"},
	})
}

func TestOutputs(t *testing.T) {
	two := orderaudit.Options{Outputs: func(string, int64) int { return 2 }}
	loose, async := two, two
	loose.OutputsRepeat, async.AckDelay = true, time.Second
	runCases(t, []ruleCase{
		{name: "all once", opts: two, script: "sent 1\nA run 1\noutput 1 1\noutput 1 2"},
		{name: "one lost", want: orderaudit.G3, says: "output 2 of message 1 is lost", opts: two, script: "sent 1\nA run 1\noutput 1 1"},
		{name: "one twice", want: orderaudit.G4, says: "output 2 of message 1 came out 2 times", opts: two, script: "sent 1\nA run 1\noutput 1 1\noutput 1 2\noutput 1 2"},
		{name: "rolled back, then settled: once", want: orderaudit.G4, opts: two,
			script: "sent 1\nA start 1\nA return 1 settled\nA end 1 given-back\nA run 1\noutput 1 1\noutput 1 2\noutput 1 1\noutput 1 2"},
		{name: "as often as it was committed", opts: async, script: "sent 1\nA run 1\nloss A 5\nA run 1\noutput 1 1\noutput 1 2\noutput 1 1\noutput 1 2"},
		{name: "as often as it may have been committed", opts: async,
			script: "sent 1\nA start 1\nA return 1 settled\nA end 1 unknown\nA run 1\noutput 1 1\noutput 1 2\noutput 1 1\noutput 1 2"},
		{name: "more often than it was committed", want: orderaudit.G4, opts: async,
			script: "sent 1\nA start 1\nA return 1 failed\nA start 1 2\nA return 1 settled\nA end 1 settled\noutput 1 1\noutput 1 2\noutput 1 1\noutput 1 2"},
		{name: "both copies of a message", opts: two, script: "doubtful 1\ndoubtful 1\nA run 1 1\noutput 1 1\noutput 1 2\noutput 1 1\noutput 1 2"},
		{name: "one too many", want: orderaudit.G3, says: "output 3", opts: two, script: "sent 1\nA run 1\noutput 1 1\noutput 1 2\noutput 1 3"},
		{name: "a failed attempt sends nothing", want: orderaudit.G4, opts: two,
			script: "sent 1\nA start 1\nA return 1 failed\nA end 1 dead-lettered\noutput 1 1\noutput 1 2"},
		{name: "in doubt: all", opts: two, script: "sent 1\nA start 1\nA return 1 settled\nA end 1 unknown\noutput 1 1\noutput 1 2"},
		{name: "in doubt: none", opts: two, script: "sent 1\nA start 1\nA return 1 settled\nA end 1 unknown"},
		{name: "in doubt: half", want: orderaudit.G3, says: "all or none", opts: two, script: "sent 1\nA start 1\nA return 1 settled\nA end 1 unknown\noutput 1 1"},
		{name: "repeats where sends are not atomic", opts: loose, script: "sent 1\nA start 1\nA return 1 failed\nA start 1 2\nA return 1 settled\nA end 1 settled\noutput 1 1\noutput 1 1\noutput 1 2"},
		{name: "lost also where sends are not atomic", want: orderaudit.G3, opts: loose, script: "sent 1\nA run 1\noutput 1 1\noutput 1 1"},
	})
}

func TestMalformedHistories(t *testing.T) {
	runCases(t, []ruleCase{
		{name: "empty", want: orderaudit.Malformed, says: "nothing", script: ""},
		{name: "only events", want: orderaudit.Malformed, says: "nothing", script: "loss A 5"},
		{name: "twice returned", want: orderaudit.Malformed, says: "returns twice", script: "sent 1\nA start 1\nA return 1 settled\nA return 1 settled"},
		{name: "twice ended", want: orderaudit.Malformed, says: "ends twice", script: "sent 1\nA run 1\nA end 1 given-back"},
		{name: "a loss that ends without having begun", want: orderaudit.Malformed, says: "has not begun", script: "sent 1\nA run 1\ndone A"},
		{name: "a stale copy is given back", want: orderaudit.Malformed, says: "ends twice", script: "sent 1\nA run 1\nA policy 1 given-back"},
		{name: "a stale copy is given back where acknowledgements may be lost", opts: orderaudit.Options{AckDelay: time.Second}, script: "sent 1\nA run 1\nA policy 1 given-back"},
		{name: "given back before its task began", script: "sent 1 2\nA policy 1 given-back\nA policy 1 given-back\nA run 1 2"},
		{name: "given back, received, given back before its task began",
			script: "sent 1\nA start 1\nA return 1 settled\nA end 1 given-back\nA policy 1 given-back\nA run 1"},
		{name: "failed, then given up", script: "sent 1\nA start 1\nA return 1 failed\nA end 1 failed\nA end 1 dead-lettered"},
		{name: "failed, then given back in its pause", script: "sent 1\nA start 1\nA return 1 failed\nA end 1 failed\nA policy 1 given-back\nB run 1"},
		{name: "doubt resolved", script: "sent 1\nA start 1\nA return 1 settled\nA end 1 unknown\nA end 1 settled"},
	})
	for _, done := range []orderaudit.Record{{Instance: "A"}, {Instance: "B", ID: 7}, {Instance: "A", ID: 8}} {
		h := script(t, "sent 1\nA run 1")
		done.Kind = orderaudit.KindLossDone
		h.Records = append(h.Records, orderaudit.Record{Kind: orderaudit.KindLoss, Instance: "A", ID: 7}, orderaudit.Record{Kind: orderaudit.KindLoss, Instance: "A"}, done)
		if v := h.Check(orderaudit.Options{}); !hasRule(v, orderaudit.Malformed) {
			t.Errorf("%+v ends a loss: %v", done, v)
		}
	}
	for _, bad := range []orderaudit.Record{{}, {Kind: 99, Key: "k"}, {Kind: orderaudit.KindEnd, Instance: "A", Key: "k", Seq: 1, ID: 99, Outcome: orderaudit.Settled}} {
		h := script(t, "sent 1\nA run 1")
		h.Records = append(h.Records, bad)
		if v := h.Check(orderaudit.Options{}); len(v.Violations) != 1 || !hasRule(v, orderaudit.Malformed) || v.Keys != 1 {
			t.Errorf("%+v: %v", bad, v)
		}
	}
	h := script(t, "sent 1\nA run 1")
	h.Records[1], h.Records[2] = h.Records[2], h.Records[1]
	if v := h.Check(orderaudit.Options{}); v.OK() || v.Violations[0].Rule != orderaudit.Malformed {
		t.Errorf("a return before its start passes: %v", v)
	}
}

// The counts of a verdict, on a history that has one of each.
func TestVerdictCounts(t *testing.T) {
	h := script(t, takeoverScript+"key l\nsent 1 2\nA start 1\nA return 1 discarded\nA end 1 discarded\nA start 2\nA return 2 settled\nA end 2 given-back\nA run 2")
	want := "ok: 2 keys, 7 messages, 10 attempts, 1 retry, 2 repeats, 2 losses, 1 dead-lettered, 1 discarded, 1 left on the queue, 1 in doubt"
	if v := h.Check(orderaudit.Options{}); v.String() != want || v.Settled != 3 {
		t.Errorf("%d settled\n%v\nwant\n%s", v.Settled, v, want)
	}
}
