package orderaudit_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/keyseq/keyseq/orderaudit"
)

var outcomes = map[string]orderaudit.Outcome{
	"settled": orderaudit.Settled, "failed": orderaudit.Failed, "dead-lettered": orderaudit.DeadLettered,
	"discarded": orderaudit.Discarded, "given-back": orderaudit.GivenBack, "unknown": orderaudit.Unknown,
}

// script makes a history of one step a line, one millisecond apart; # begins a comment. The steps:
//
//	key K                     of the lines that follow (k at first)
//	sent N..., doubtful N..., left N..., output N I
//	A start N [ATTEMPT]       opens an attempt (1 without ATTEMPT)
//	A return N OUTCOME        of the latest attempt of N that A has started
//	A end N OUTCOME
//	A policy N OUTCOME        an outcome without an attempt
//	A run N...                start, return, end, all settled
//	loss A|* MOST, done A (its latest loss), started A, killed A, stopping A, takeover A DURATION, wait DURATION
func script(t *testing.T, text string) *orderaudit.History {
	t.Helper()
	s := scripted{key: "k", open: map[string]orderaudit.Record{}}
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		if f := strings.Fields(line); len(f) > 0 {
			if err := s.line(f); err != nil {
				t.Fatalf("script line %d %q: %v", i+1, line, err)
			}
		}
	}
	return &orderaudit.History{Records: s.records}
}

type scripted struct {
	now     time.Duration
	key     string
	records []orderaudit.Record
	open    map[string]orderaudit.Record
	id      uint64
}

func (s *scripted) add(r orderaudit.Record) {
	s.now += time.Millisecond
	r.At = s.now
	s.records = append(s.records, r)
}

func (s *scripted) line(f []string) error {
	for len(f) < 5 { // so that a missing word is an empty one
		f = append(f, "")
	}
	kinds := map[string]orderaudit.Kind{"sent": orderaudit.KindSent, "doubtful": orderaudit.KindDoubtful, "left": orderaudit.KindLeft}
	switch f[0] {
	case "key":
		s.key = f[1]
	case "sent", "doubtful", "left":
		for _, n := range f[1:] {
			if n != "" {
				s.add(orderaudit.Record{Kind: kinds[f[0]], Key: s.key, Seq: number(n)})
			}
		}
	case "output":
		s.add(orderaudit.Record{Kind: orderaudit.KindOutput, Key: s.key, Seq: number(f[1]), N: int(number(f[2]))})
	case "loss":
		s.add(orderaudit.Record{Kind: orderaudit.KindLoss, Instance: strings.Trim(f[1], "*"), Text: "cut", N: int(number(f[2])), ID: 1000 + uint64(len(s.records))})
		s.open["loss"+f[1]] = s.records[len(s.records)-1]
	case "done":
		r := s.open["loss"+f[1]]
		r.Kind, r.Text, r.N = orderaudit.KindLossDone, "", 0
		s.add(r)
	case "started":
		s.add(orderaudit.Record{Kind: orderaudit.KindStarted, Instance: f[1]})
	case "killed":
		s.add(orderaudit.Record{Kind: orderaudit.KindKilled, Instance: f[1]})
	case "stopping":
		s.add(orderaudit.Record{Kind: orderaudit.KindStopping, Instance: f[1]})
	case "takeover":
		d, err := time.ParseDuration(f[2])
		s.add(orderaudit.Record{Kind: orderaudit.KindTakeover, Instance: f[1], Delay: d})
		return err
	case "wait":
		d, err := time.ParseDuration(f[1])
		s.now += d
		return err
	default:
		return s.attempt(f)
	}
	return nil
}

func (s *scripted) attempt(f []string) error {
	r := orderaudit.Record{Instance: f[0], Key: s.key, Seq: number(f[2]), N: 1}
	name := fmt.Sprint(r.Instance, r.Key, r.Seq)
	switch f[1] {
	case "run":
		for _, n := range f[2:] {
			if n != "" {
				for _, step := range [][]string{{f[0], "start", n, "", ""}, {f[0], "return", n, "settled"}, {f[0], "end", n, "settled"}} {
					if err := s.attempt(step); err != nil {
						return err
					}
				}
			}
		}
		return nil
	case "start":
		s.id++
		r.Kind, r.ID = orderaudit.KindStart, s.id
		if f[3] != "" {
			r.N = int(number(f[3]))
		}
		s.open[name] = r
		s.add(r)
		return nil
	case "return", "end":
		r = s.open[name]
		r.Kind = orderaudit.KindReturn
		if f[1] == "end" {
			r.Kind = orderaudit.KindEnd
		}
	case "policy":
		r.Kind, r.N = orderaudit.KindEnd, 0
	default:
		return fmt.Errorf("unknown step %q", f[1])
	}
	o, ok := outcomes[f[3]]
	if !ok {
		return fmt.Errorf("unknown outcome %q", f[3])
	}
	r.Outcome = o
	s.add(r)
	return nil
}

func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}
