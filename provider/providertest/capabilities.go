package providertest

import (
	"slices"
	"strconv"
	"time"

	"github.com/keyseq/keyseq/jms"
)

var capabilityCases = []testCase{
	{0, "Coherent", "Capabilities are constant and do not contradict each other", coherent},
	{0, "StableIDs", "with StableIDs each Message.ID is set, unique, and the same when the message comes again", stableIDs},
	{0, "DeliveryCount", "with DeliveryCount a message counts its deliveries from 1; without it Message.DeliveryCount is 0", deliveryCount},
	{0, "AtomicSends", "a message is never gone without what its commit sent; with AtomicSends never the other way round either", atomicSends},
	{0, "ReturnsAfterLoss", "after a lost connection what was held is back at its place: at once with ReturnsAtOnce, else after ReturnDelay",
		returnsAfterLoss},
	{0, "Push", "with Push messages are sent ahead of Receive; without it a connection hides no message that no session of it holds", push},
	{0, "MaxInFlight", "with Push no more is prefetched than Subscription.MaxInFlight allows", prefetchBound},
	{0, "CheapSessions", "with CheapSessions a thousand sessions can be open", cheapSessions},
	{0, "MaxHold", "with MaxHold a message can be held nearly that long", maxHold},
}

func coherent(c *kase) {
	l := c.connect()
	caps := l.caps
	c.numbers(0, 1)
	s := c.open(l)
	c.take(s)
	c.commit(s)
	if again := l.Capabilities(); again != caps {
		c.broken("Capabilities were %+v and became %+v", caps, again)
	}
	if caps.ReturnsAtOnce && caps.ReturnDelay != 0 {
		c.broken("ReturnsAtOnce is declared with a ReturnDelay of %v", caps.ReturnDelay)
	}
	if caps.MaxInFlight < 0 || caps.ReturnDelay < 0 || caps.MaxHold < 0 {
		c.broken("Capabilities hold a negative number: %+v", caps)
	}
}

// again gives the held message of a session back and receives it once more.
func (c *kase) again(l *link, s jms.Session) (*link, jms.Session, *jms.Message) {
	c.Helper()
	if l.caps.RollbackInPlace {
		c.rollback(s)
	} else {
		c.close(l)
		l = c.connect()
		s = c.open(l)
	}
	return l, s, c.take(s)
}

func stableIDs(c *kase) {
	const n = 20
	c.numbers(0, n)
	l := c.connect()
	if !l.caps.StableIDs {
		c.Skip("StableIDs is not declared, so nothing is claimed about Message.ID")
	}
	s := c.open(l)
	seen := map[string]string{}
	for i := range n {
		m := c.takeBody(s, strconv.Itoa(i))
		if m.ID == "" {
			c.broken("message %d has no ID", i)
		}
		if other, taken := seen[m.ID]; taken {
			c.broken("messages %s and %d have the same ID %q", other, i, m.ID)
		}
		seen[m.ID] = string(m.Body)
		if i%7 == 0 {
			var back *jms.Message
			if l, s, back = c.again(l, s); back.ID != m.ID {
				c.broken("message %d had ID %q and came again with %q", i, m.ID, back.ID)
			}
		}
		c.commit(s)
	}
}

func deliveryCount(c *kase) {
	c.numbers(0, 1)
	l := c.connect()
	s := c.open(l)
	m := c.takeBody(s, "0")
	for delivery := 1; ; delivery++ {
		want := 0
		if l.caps.DeliveryCount {
			want = delivery
		}
		if m.DeliveryCount != want {
			c.broken("delivery number %d says DeliveryCount %d, want %d (declared: %t)", delivery, m.DeliveryCount, want, l.caps.DeliveryCount)
		}
		if delivery == 3 {
			break
		}
		l, s, m = c.again(l, s)
	}
	c.commit(s)
}

// leftFor receives one message on l, and what it can of the other n-1 on a second connection, which must be least.
func (c *kase) leftFor(l *link, n, least int) []string {
	c.Helper()
	c.numbers(0, n)
	s := c.open(l)
	c.takeBody(s, "0")
	c.pause(c.h.Quiet) // a prefetch has time to arrive
	return c.drain(c.b.Queue, least)
}

func push(c *kase) {
	l := c.connect()
	if l.caps.Push {
		c.sendsAhead(l)
		return
	}
	if got := c.leftFor(l, 7, 6); !slices.Equal(got, bodies(1, 7)) {
		c.broken("another connection received %q, want %q: one message is held, nothing else may be hidden", got, bodies(1, 7))
	}
}

// sendsAhead waits until more messages are at the client than a session holds.
func (c *kase) sendsAhead(l *link) {
	c.Helper()
	c.needs(c.b.Unsettled != nil, "Unsettled, which counts what a client has")
	c.numbers(0, 7)
	c.takeBody(c.open(l), "0")
	for end := time.Now().Add(c.h.Patience); ; c.pause(c.h.Quiet / 10) {
		n, err := within(c, c.h.Patience, "Harness.Unsettled", func() (int, error) { return c.b.Unsettled(c.ctx, c.b.Queue) })
		if err != nil {
			c.Fatalf("Harness.Unsettled: %v", err)
		}
		if n > 1 {
			return
		}
		if time.Now().After(end) {
			c.broken("Push is declared, and %v after one of 7 messages was received %d is unsettled", c.h.Patience, n)
		}
	}
}

func prefetchBound(c *kase) {
	const n, most = 12, 3
	l := c.connectWith(jms.Subscription{Queue: c.b.Queue, MaxInFlight: most})
	if !l.caps.Push {
		c.Skip("Push is not declared")
	}
	got := c.leftFor(l, n, n-most)
	if len(got) < n-most {
		c.broken("with a MaxInFlight of %d another connection received %d of %d messages: %d are hidden", most, len(got), n, n-len(got))
	}
}

func cheapSessions(c *kase) {
	l := c.connect()
	if !l.caps.CheapSessions {
		c.Skip("CheapSessions is not declared")
	}
	n := 1000
	if l.caps.MaxInFlight > 0 {
		n = min(n, l.caps.MaxInFlight)
	}
	start := time.Now()
	if got := c.openUpTo(l, n); len(got) < n {
		c.broken("the provider gave %d sessions and refused the next with ErrBusy, want %d", len(got), n)
	}
	if took := time.Since(start); took > c.h.Patience {
		c.broken("%d sessions took %v", n, took)
	}
}

func maxHold(c *kase) {
	l := c.connect()
	hold := l.caps.MaxHold
	if hold == 0 {
		c.Skip("MaxHold is not declared: no limit is known")
	}
	if !c.h.Bubble && hold > c.h.Patience {
		c.Skipf("MaxHold is %v, longer than the suite waits", hold)
	}
	c.numbers(0, 1)
	s := c.open(l)
	c.takeBody(s, "0")
	c.pause(hold / 10 * 9)
	c.commit(s)
	c.close(l)
	c.nothing(c.b.Queue, "it was committed within MaxHold")
}
