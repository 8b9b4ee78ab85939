package keyseq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/keyseq/keyseq/jms"
)

// reconnect tries for ever, with a growing pause; it gives up only on a wish or on jms.ErrConfig.
func (r *run) reconnect() (*link, error) {
	m := r.m
	for {
		if r.attempts > 0 {
			pause := m.pause(m.cfg.Reconnect, r.attempts)
			if !sleep(r.wanted, pause) {
				return nil, nil
			}
		} else if r.want.Load() != wishRead {
			return nil, nil
		}
		r.attempts++
		l, err := m.connect(r.wanted)
		if err == nil {
			r.watch(l)
			return l, nil
		}
		if r.want.Load() != wishRead {
			return nil, nil
		}
		if errors.Is(err, jms.ErrConfig) {
			return nil, err
		}
		m.log.Warn("cannot connect; trying again: see whether the broker runs and address, credentials and network are right", "queue", m.queue, "attempt", r.attempts, "error", err)
		m.setState(StateConnecting, err)
	}
}

// activate waits until this instance may read: it is the active one, and nothing that an earlier reader held is still locked.
func (r *run) activate(l *link) error {
	m := r.m
	elector, elected := m.elector(l)
	if elected {
		m.setState(StateStandby, nil)
		err := r.await(l, elector.AwaitActive)
		if err != nil {
			if !errors.Is(err, jms.ErrConfig) && r.want.Load() == wishRead {
				r.linkLost(l, fmt.Errorf("%w: waiting to become active: %w", jms.ErrConnectionLost, err))
			}
			return err
		}
	}
	m.activated(l)
	delay := r.quarantine(l, elected)
	if delay > 0 {
		m.setState(StateStandby, nil)
		m.log.Info("waiting before the first receive, for what an earlier reader may still hold or run", "queue", m.queue, "wait", delay)
		wait := time.NewTimer(delay)
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-l.gone:
			return l.cause()
		case <-r.wanted.Done():
			return nil // nothing is read; the next run waits anew
		}
	}
	m.mu.Lock()
	m.everRead = true
	m.mu.Unlock()
	m.d.SetLimits(r.limits(l))
	m.log.Info("reading", "queue", m.queue, "broker", l.caps.Broker, "workers", m.cfg.Workers, "max_in_flight", l.maxInFlight,
		"return_delay", l.returnDelay, "max_hold", l.maxHold, "dead_letter_queue", m.deadLetterQueue(l), "epoch", l.epoch)
	return nil
}

// quarantine is how long to wait before the first receive on a link, for two reasons: what an earlier reader held may still be locked, and
// where there is an election, tasks of the predecessor may still be ending. In a process that has read before, its own losses are
// covered by their deadline; another instance may have been active in between only where there is an election.
func (r *run) quarantine(l *link, elected bool) time.Duration {
	m := r.m
	m.mu.Lock()
	first := !m.everRead
	m.mu.Unlock()
	var locked, ending time.Duration
	if (first || elected) && l.returnDelay > 0 && !r.ask("whether an earlier reader may still hold messages", func(ctx context.Context) (bool, error) {
		starter, ok := l.conn.(jms.CleanStarter)
		if !ok {
			return false, nil
		}
		return starter.CleanStart(ctx)
	}) {
		locked = l.returnDelay
	}
	if elected && m.cfg.TakeoverDelay > 0 && !r.ask("how the active instance before this one ended", func(ctx context.Context) (bool, error) {
		predecessor, ok := l.conn.(jms.Predecessor)
		if !ok {
			return false, nil
		}
		return predecessor.EndedInOrder(ctx)
	}) {
		ending = m.cfg.TakeoverDelay
	}
	return max(locked, ending)
}

// ask puts a question to the broker; no answer is no.
func (r *run) ask(what string, question func(context.Context) (bool, error)) bool {
	yes, err := bounded(r.wanted, r.m.cfg.CallTimeout, question, nil)
	if err != nil {
		r.m.log.Warn("the broker does not say "+what+": waiting", "queue", r.m.queue, "error", err)
	}
	return yes && err == nil
}

// await makes a call that may wait for ever, until a wish is made. One that does not return then is left alone.
func (r *run) await(l *link, call func(context.Context) error) error {
	ctx, cancel := context.WithCancel(r.wanted)
	defer cancel()
	back := make(chan error, 1)
	go func() { back <- call(ctx) }()
	select {
	case err := <-back:
		return err
	case <-l.gone:
		return l.cause()
	case <-r.wanted.Done():
	}
	grace := time.NewTimer(r.m.cfg.CallTimeout)
	defer grace.Stop()
	select {
	case err := <-back:
		return err
	case <-grace.C:
		return r.wanted.Err()
	}
}

// firstMessage notes that a link has delivered. Where the broker does not say who is active, this is how it shows; tasks of the
// predecessor then still have TakeoverDelay to end. False: reading was stopped meanwhile, and the message must not be handled yet.
func (rd *reader) firstMessage() bool {
	r, m := rd.r, rd.r.m
	rd.l.served.Store(true)
	if _, elected := m.elector(rd.l); elected || !m.cfg.SingleActiveConsumer {
		return true
	}
	m.confirm()
	if m.cfg.TakeoverDelay == 0 {
		return true
	}
	m.log.Info("active: waiting before the first task", "queue", m.queue, "wait", m.cfg.TakeoverDelay)
	r.ring()
	return sleep(rd.ctx, m.cfg.TakeoverDelay)
}

// elector is the connection's, if there is an election.
func (m *SequenceManager) elector(l *link) (jms.Elector, bool) {
	if !m.cfg.SingleActiveConsumer {
		return nil, false
	}
	e, ok := l.conn.(jms.Elector)
	return e, ok
}

// activated gives the link its epoch.
func (m *SequenceManager) activated(l *link) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.epoch = max(m.epoch+1, uint64(time.Now().UnixNano()))
	l.epoch = m.epoch
}
