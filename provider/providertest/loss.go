package providertest

import (
	"errors"
	"time"

	"github.com/keyseq/keyseq/jms"
)

var lossCases = []testCase{
	{10, "OpenWhileConnected", "Done is open and Err is nil while the connection stands", openWhileConnected},
	{10, "ClosedAtLoss", "Done is closed when the connection is lost, also while no call waits, and Err says ErrConnectionLost", closedAtLoss},
	{10, "EndsReceive", "a waiting Receive ends with ErrConnectionLost when the connection is lost", lossEndsReceive},
	{10, "ClosedAtLossOfRole", "Done is closed when the active role is lost, and Err says why", closedAtLossOfRole},
}

func openWhileConnected(c *kase) {
	c.numbers(0, 1)
	l := c.connect()
	s := c.open(l)
	c.takeBody(s, "0")
	c.commit(s)
	c.pause(c.h.Quiet)
	select {
	case <-l.Done():
		c.broken("Done is closed, Err is %v", l.Err())
	default:
	}
	if err := l.Err(); err != nil {
		c.broken("Err is %v", err)
	}
}

func closedAtLoss(c *kase) {
	c.needs(c.b.Break != nil, "Break, which cuts a connection")
	l := c.connect()
	c.open(l)
	if l.Done() == nil {
		c.Skip("Done is nil: the provider cannot notice a loss by itself")
	}
	c.b.Break(l.Connection)
	c.lost(l.Connection, "the connection was cut", jms.ErrConnectionLost)
}

// lost waits until Done is closed.
func (c *kase) lost(conn jms.Connection, why string, want error) {
	c.Helper()
	select {
	case <-conn.Done():
	case <-time.After(c.h.Patience):
		c.broken("Done is not closed %v after %s", c.h.Patience, why)
	}
	if err := conn.Err(); err == nil || !errors.Is(err, want) {
		c.broken("Err is %v after %s, want %v", err, why, want)
	}
}

func lossEndsReceive(c *kase) {
	c.needs(c.b.Break != nil, "Break, which cuts a connection")
	l := c.connect()
	done := receiving(c.ctx, c.open(l))
	c.pause(c.h.Quiet)
	c.b.Break(l.Connection)
	select {
	case r := <-done:
		if !errors.Is(r.err, jms.ErrConnectionLost) {
			c.broken("Receive returned %v, %v", r.m, r.err)
		}
	case <-time.After(c.h.Patience):
		c.broken("Receive still waits %v after the connection was cut", c.h.Patience)
	}
}

func closedAtLossOfRole(c *kase) {
	c.needs(c.b.LoseRole != nil, "LoseRole, which takes the active role away")
	c, l := c.singleActive()
	c.open(l)
	c.b.LoseRole(l.Connection)
	if l.Done() == nil {
		c.broken("Done is nil, so nobody hears of the loss of the role")
	}
	c.lost(l.Connection, "the active role was lost", jms.ErrConnectionLost)
}
