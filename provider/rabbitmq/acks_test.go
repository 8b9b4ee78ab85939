package rabbitmq

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// broker is what RabbitMQ knows of a channel: the tags it has delivered and not seen acknowledged.
type broker struct {
	unacked []uint64 // ascending
}

// ack does what basic.ack does; false: the broker closes the channel over it.
func (b *broker) ack(tag uint64, multiple bool) (gone []uint64, ok bool) {
	at, found := slices.BinarySearch(b.unacked, tag)
	if !found {
		return nil, false
	}
	from := at
	if multiple {
		from = 0
	}
	gone = slices.Clone(b.unacked[from : at+1])
	b.unacked = slices.Delete(b.unacked, from, at+1)
	return gone, true
}

// commit settles a batch as the connection does, and compares with what was asked for.
func (b *broker) commit(t *testing.T, s *settledTags, tags []uint64) {
	t.Helper()
	want := slices.Clone(b.unacked)
	want = slices.DeleteFunc(want, func(tag uint64) bool { return slices.Contains(tags, tag) })
	for _, a := range s.add(tags) {
		gone, ok := b.ack(a.tag, a.multiple)
		if !ok {
			t.Fatalf("batch %v: acknowledged %d, which the broker does not hold", tags, a.tag)
		}
		for _, tag := range gone {
			if !slices.Contains(tags, tag) {
				t.Fatalf("batch %v: acknowledged %d, which nobody committed", tags, tag)
			}
		}
	}
	if !slices.Equal(b.unacked, want) {
		t.Fatalf("batch %v: the broker still holds %v, want %v", tags, b.unacked, want)
	}
	if most := 2 * (len(b.unacked) + 1); len(s.runs) > most {
		t.Fatalf("%d ends of runs are kept with %d messages held, want %d at most", len(s.runs), len(b.unacked), most)
	}
}

// What is acknowledged is what was committed and nothing else, whatever the order and the batches, with much or little held, and the acknowledgements
// are those that RabbitMQ accepts.
func FuzzSettledTags(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, uint8(seed*13))
	}
	f.Fuzz(func(t *testing.T, seed uint64, window uint8) {
		random := rand.New(rand.NewPCG(seed, uint64(window)))
		var b broker
		var s settledTags
		delivered := uint64(0)
		for range 300 {
			for len(b.unacked) <= int(window) {
				delivered++
				b.unacked = append(b.unacked, delivered)
			}
			n := 1 + random.IntN(min(len(b.unacked), 40))
			var tags []uint64
			switch random.IntN(3) {
			case 0: // the oldest ones: all of them may be said by one
				tags = slices.Clone(b.unacked[:n])
			case 1: // the newest ones
				tags = slices.Clone(b.unacked[len(b.unacked)-n:])
			default:
				for _, i := range random.Perm(len(b.unacked))[:n] {
					tags = append(tags, b.unacked[i])
				}
			}
			random.Shuffle(len(tags), func(i, j int) { tags[i], tags[j] = tags[j], tags[i] })
			b.commit(t, &s, tags)
		}
		b.commit(t, &s, slices.Clone(b.unacked))
		if s.low != delivered || len(s.runs) != 0 {
			t.Fatalf("all %d are settled, and the set says %d and keeps %d ends of runs", delivered, s.low, len(s.runs))
		}
	})
}

// One acknowledgement stands for as many as it may, and never for the one that is held.
func TestAcknowledgementsAreJoined(t *testing.T) {
	var s settledTags
	for _, c := range []struct {
		tags []uint64
		want []ack
	}{
		{[]uint64{1}, []ack{{1, false}}},
		{[]uint64{3, 2, 4}, []ack{{4, true}}},
		{[]uint64{6, 8, 7}, []ack{{6, false}, {8, false}, {7, false}}}, // 5 is held
		{[]uint64{10, 5}, []ack{{5, false}, {10, false}}},              // 6 to 8 are settled already
		{[]uint64{11, 9, 13}, []ack{{11, true}, {13, false}}},          // 12 is held
	} {
		if got := s.add(c.tags); !slices.Equal(got, c.want) {
			t.Errorf("settling %v says %v, want %v", c.tags, got, c.want)
		}
	}
}

// A commit returns when its tag has been written and not before, its batch fails as one, and the next batch does not wait for those of an earlier one.
func TestCommitsAreWrittenTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a acks
		var mu sync.Mutex
		written, writes, writing := map[uint64]bool{}, 0, false
		failure := errors.New("the third write fails")
		write := func(tags []uint64) error {
			mu.Lock()
			if writing {
				t.Error("two writes at a time")
			}
			writing = true
			writes++
			failed := writes == 3
			mu.Unlock()
			time.Sleep(time.Second) // meanwhile the next batch gathers
			mu.Lock()
			defer mu.Unlock()
			writing = false
			if failed {
				return failure
			}
			for _, tag := range tags {
				written[tag] = true
			}
			return nil
		}
		failed := 0
		var commits sync.WaitGroup
		for i := range 500 {
			commits.Go(func() {
				time.Sleep(time.Duration(i/100) * time.Second / 2)
				err := a.add(uint64(i+1), write)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil && !written[uint64(i+1)]:
					t.Errorf("the commit of %d succeeded and was not written", i+1)
				case errors.Is(err, failure) && written[uint64(i+1)]:
					t.Errorf("the commit of %d failed and was written", i+1)
				case err != nil:
					failed++
				}
			})
		}
		commits.Wait()
		if len(written)+failed != 500 || failed == 0 {
			t.Errorf("%d were written and %d failed, want 500 together and some of each", len(written), failed)
		}
		if writes > 10 {
			t.Errorf("%d writes for 500 commits that came in 5 crowds, want no more than 10", writes)
		}
		if a.leading || a.next != nil {
			t.Error("somebody still leads though nobody commits")
		}
	})
}
