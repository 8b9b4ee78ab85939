package providertest

import (
	"math/rand/v2"
	"strconv"

	"github.com/keyseq/keyseq/jms"
)

var rollbackCases = []testCase{
	{6, "GivesBackAtOnce", "a message that is rolled back comes again promptly, the same as before", givesBackAtOnce},
	{6, "KeepsPlace", "messages that are rolled back keep their places, in whatever order that happens", keepsPlace},
	{6, "WithoutMessage", "Rollback without a message does nothing", rollbackWithoutMessage},
	{6, "MarksRedelivered", "a message is marked as redelivered when it comes again, and only then", marksRedelivered},
}

// rollsBack skips the case if the provider gives back by closing the connection only.
func (c *kase) rollsBack(l *link) {
	c.Helper()
	if !l.caps.RollbackInPlace {
		c.Skip("RollbackInPlace is not declared: the manager never calls Rollback on a held message")
	}
}

func givesBackAtOnce(c *kase) {
	c.numbers(0, 1)
	l := c.connect()
	c.rollsBack(l)
	sessions := c.openUpTo(l, 2)
	for range 3 { // the session is used again
		c.takeBody(sessions[0], "0")
		c.rollback(sessions[0])
	}
	m, err := within(c, c.h.Latency, "Receive after a Rollback", func() (*jms.Message, error) { return sessions[1].Receive(c.ctx) })
	if err != nil || string(m.Body) != "0" {
		c.broken("Receive after a Rollback returned %v, %v", m, err)
	}
	c.commit(sessions[1])
	c.close(l)
	c.nothing(c.b.Queue, "it was committed after three Rollbacks")
}

func keepsPlace(c *kase) {
	const n = 8
	rounds := 4
	if c.h.Bubble {
		rounds = 20
	}
	c.numbers(0, n)
	l := c.connect()
	c.rollsBack(l)
	sessions := c.openUpTo(l, n-2)
	for round := range rounds {
		for i, s := range sessions {
			m := c.take(s)
			if string(m.Body) != strconv.Itoa(i) {
				c.broken("in round %d message %q came at place %d: those of the round before were rolled back in another order than received",
					round, short(m.Body), i)
			}
		}
		for _, i := range rand.Perm(len(sessions)) {
			c.rollback(sessions[i])
		}
	}
	// Some stay held, some are committed.
	for i, s := range sessions {
		c.takeBody(s, strconv.Itoa(i))
	}
	c.rollback(sessions[1])
	c.commit(sessions[0])
	c.takeBody(sessions[0], "1")
	c.close(l)
	c.remaining(c.b.Queue, "0 was committed, everything else rolled back or given back by Close", bodies(1, n))
}

func rollbackWithoutMessage(c *kase) {
	c.numbers(0, 2)
	l := c.connect()
	s := c.open(l)
	c.rollback(s)
	c.takeBody(s, "0")
	c.commit(s)
	c.rollback(s)
	c.rollback(s)
	c.takeBody(s, "1")
	c.commit(s)
	c.close(l)
	c.nothing(c.b.Queue, "both messages were committed; a Rollback afterwards must not bring one back")
}

func marksRedelivered(c *kase) {
	c.numbers(0, 1)
	l := c.connect()
	s := c.open(l)
	if m := c.takeBody(s, "0"); m.Redelivered {
		c.broken("the first delivery of a message on a fresh queue is marked as redelivered")
	}
	if l.caps.RollbackInPlace {
		c.rollback(s)
		if m := c.takeBody(s, "0"); !m.Redelivered {
			c.broken("the message came again after a Rollback and is not marked as redelivered")
		}
	}
	c.close(l)
	s = c.open(c.connect())
	if m := c.takeBody(s, "0"); !m.Redelivered {
		c.broken("the message came again after Close of the connection that held it and is not marked as redelivered")
	}
	c.commit(s)
}
