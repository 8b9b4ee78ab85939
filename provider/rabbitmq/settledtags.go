package rabbitmq

// settledTags are the delivery tags of a channel whose acknowledgement was asked for. They tell when one acknowledgement of "all up to this tag" says the
// same as one for each: when the set has every tag up to it, so that nothing that is still held is among them.
//
// The set is one of what was settled, not of what is held: a delivery that is on its way to its session is in neither, and must not be settled
// for being unknown. It has at most one run more than there are messages held.
type settledTags struct {
	low  uint64            // every tag up to it is settled
	runs map[uint64]uint64 // above low: the first of each run of neighbours to its last, and the last to the first
	acks []ack             // what add returned last
}

// ack is one basic.ack.
type ack struct {
	tag      uint64
	multiple bool // it stands for every lower tag too
}

// add puts tags into the set that are not there yet, and returns what says to the broker that they are settled; valid until the next call. RabbitMQ takes
// a tag that was acknowledged before for an error, so each names one of tags.
func (s *settledTags) add(tags []uint64) []ack {
	for _, tag := range tags {
		s.put(tag)
	}
	s.acks = append(s.acks[:0], ack{}) // the first one is for all that are not above low
	covered := 0
	for _, tag := range tags {
		if tag <= s.low {
			covered++
			s.acks[0].tag = max(s.acks[0].tag, tag)
		} else {
			s.acks = append(s.acks, ack{tag: tag})
		}
	}
	if covered == 0 {
		return s.acks[1:]
	}
	s.acks[0].multiple = covered > 1
	return s.acks
}

// put adds a tag that is not in the set, and joins it with its neighbours. A neighbour in the set is the end of its run, because the tag is not.
func (s *settledTags) put(tag uint64) {
	first, last := tag, tag
	if f, ok := s.runs[tag-1]; ok {
		first = f
		delete(s.runs, tag-1)
	}
	if l, ok := s.runs[tag+1]; ok {
		last = l
		delete(s.runs, tag+1)
	}
	if first == s.low+1 {
		s.low = last
		delete(s.runs, last)
		return
	}
	if s.runs == nil {
		s.runs = map[uint64]uint64{}
	}
	s.runs[first], s.runs[last] = last, first
}
