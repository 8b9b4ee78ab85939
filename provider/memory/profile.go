package memory

import (
	"errors"
	"fmt"
	"time"

	"github.com/keyseq/keyseq/jms"
)

// Profile says how a broker misbehaves. It is an Option of NewBroker. The zero value is the plain broker: sessions cost memory only, a
// commit is one transaction, and what is unsettled is back at its place at once, whatever was lost. LikeIBMMQ, LikeRabbitMQ and
// LikeQuorum are what real brokers do; change a field to get another. Capabilities follow from it.
type Profile struct {
	// Name is shown as Capabilities.Broker; "": "memory".
	Name string
	// ReturnDelay is how long what a lost connection or session held stays locked, while others receive what comes after it. 0: it is
	// back at once.
	ReturnDelay time.Duration
	// RoleFirst: with a single active consumer the next one is active at once when a connection is lost, while the messages stay locked
	// (a lock queue on a socket of its own). Otherwise the messages are back first.
	RoleFirst bool
	// Rollback is what becomes of a message that is given back alone.
	Rollback Rollback
	// ReturnOrder puts what is given back before all that was never delivered, in the order of its return. Otherwise each message
	// is back at its own place.
	ReturnOrder bool
	// Prefetch is how many messages are sent to a connection ahead of Receive, unless the subscription asks for another number; others
	// do not see them, and they count as delivered. 0: nothing is sent that was not asked for. A broker that pushes acknowledges
	// apart from the sends of a commit, and does not tell who is active.
	Prefetch int
	// AckDelay is how long after Commit an acknowledgement is processed; a connection that is lost before takes it along. Needs Prefetch.
	AckDelay time.Duration
	// NoIDs and NoDeliveryCount leave Message.ID and Message.DeliveryCount empty.
	NoIDs, NoDeliveryCount bool
	// MarkAll makes Restart mark every message as redelivered.
	MarkAll bool
	// Deaf is the length of the slices in which Receive looks at its context; other calls do not look at it at all. 0: all do, at once.
	Deaf time.Duration
	// HoldTimeout is how long a session may hold a message before the broker takes it away: in silence, or, with Prefetch, by closing the
	// connection. Capabilities.MaxHold is half of it. 0: no limit.
	HoldTimeout time.Duration
	// CostlySessions declares that a session is not cheap.
	CostlySessions bool
	// MaxSessions is how many sessions the broker allows in all; more are refused with jms.ErrBusy. 0: no limit.
	MaxSessions int
}

// Rollback is what becomes of a message that is given back alone, by Session.Rollback or Session.Close.
type Rollback int

const (
	// RollbackInPlace puts it back where it was, or, with Prefetch, behind what has been sent ahead.
	RollbackInPlace Rollback = iota
	// RollbackLosesConnection closes the connection, and all it holds goes back; the call fails with jms.ErrConnectionLost.
	RollbackLosesConnection
	// RollbackToTail puts it behind all other messages. No provider may do so: this shows who gives back alone without having looked at
	// Capabilities.RollbackInPlace. What a closed connection held is still put at the head.
	RollbackToTail
)

// LikeIBMMQ is a broker like an IBM MQ queue manager read with jms20 over a client channel with HBINT(5): pull, a session is a connection,
// what a dead client holds comes back after 15 s though others read on, the lock of the active instance is free before that, a Receive looks
// at its context each second, other calls never, and there is no delivery count. 1,000 sessions: 100 channels (qm.ini MaxChannels) of
// 10 conversations (SHARECNV).
func LikeIBMMQ() Profile {
	return Profile{
		Name: "memory like IBM MQ", ReturnDelay: 15 * time.Second, RoleFirst: true, NoDeliveryCount: true,
		Deaf: time.Second, CostlySessions: true, MaxSessions: 1000,
	}
}

// LikeRabbitMQ is a broker like a RabbitMQ classic queue: 256 messages pushed ahead, acknowledgements processed 5 ms after they were
// written, what a closed connection held back at its own place, never a single one; no IDs, no delivery count, all marked redelivered
// by a restart; a message held for 30 min (its consumer timeout) costs the connection. Without a single active consumer a dead client is noticed after 3 heartbeats of 10 s; with one nobody can read before.
func LikeRabbitMQ() Profile {
	return Profile{
		Name: "memory like RabbitMQ", ReturnDelay: 30 * time.Second, Rollback: RollbackLosesConnection, Prefetch: 256,
		AckDelay: 5 * time.Millisecond, NoIDs: true, NoDeliveryCount: true, MarkAll: true, HoldTimeout: 30 * time.Minute,
	}
}

// LikeQuorum is a broker like a RabbitMQ quorum queue: LikeRabbitMQ, but what comes back is in the order of its return, before what was
// never delivered, deliveries are counted, and a restart marks nothing.
func LikeQuorum() Profile {
	p := LikeRabbitMQ()
	p.Name, p.ReturnOrder, p.NoDeliveryCount, p.MarkAll = "memory like a quorum queue", true, false, false
	return p
}

func (p Profile) apply(b *Broker) error {
	var errs []error
	for _, f := range []struct {
		name string
		v    int64
	}{
		{"ReturnDelay", int64(p.ReturnDelay)}, {"Prefetch", int64(p.Prefetch)}, {"AckDelay", int64(p.AckDelay)},
		{"Deaf", int64(p.Deaf)}, {"HoldTimeout", int64(p.HoldTimeout)}, {"MaxSessions", int64(p.MaxSessions)},
	} {
		if f.v < 0 {
			errs = append(errs, fmt.Errorf("memory: Profile.%s is negative; use 0 for none: %w", f.name, jms.ErrConfig))
		}
	}
	if p.AckDelay > 0 && p.Prefetch == 0 {
		errs = append(errs, fmt.Errorf("memory: Profile.AckDelay needs Prefetch: %w", jms.ErrConfig))
	}
	if p.Rollback < RollbackInPlace || p.Rollback > RollbackToTail {
		errs = append(errs, fmt.Errorf("memory: Profile.Rollback is %d; use one of the constants: %w", p.Rollback, jms.ErrConfig))
	}
	b.profile = p
	return errors.Join(errs...)
}

func (p *Profile) capabilities(c *conn) jms.Capabilities {
	name := p.Name
	if name == "" {
		name = "memory"
	}
	// With a single active consumer nobody reads before a lost connection is noticed; beside a session that is lost alone others read on.
	nobodyReads := c.q.SingleActiveConsumer && !p.RoleFirst && p.Rollback != RollbackInPlace
	caps := jms.Capabilities{
		Broker:          name,
		MaxInFlight:     p.MaxSessions,
		CheapSessions:   !p.CostlySessions,
		AtomicSends:     p.Prefetch == 0,
		RollbackInPlace: p.Rollback == RollbackInPlace && !p.ReturnOrder && p.Prefetch == 0,
		ReturnsAtOnce:   p.ReturnDelay == 0 || nobodyReads,
		MaxHold:         p.HoldTimeout / 2,
		Push:            p.Prefetch > 0,
		StableIDs:       !p.NoIDs,
		DeliveryCount:   !p.NoDeliveryCount,
	}
	if p.Prefetch > 0 {
		caps.MaxInFlight = c.prefetch
	}
	if !caps.ReturnsAtOnce {
		caps.ReturnDelay = p.ReturnDelay
	}
	return caps
}
