package faulty

import (
	"context"

	"github.com/keyseq/keyseq/jms"
)

// wrap adds to a wrapped connection the optional interfaces that the inner one has.
func wrap(f *Factory, inner jms.Connection, sub jms.Subscription) jms.Connection {
	c := &conn{f: f, inner: inner, sub: sub, caps: inner.Capabilities(), over: make(chan struct{}), done: make(chan struct{})}
	e, isE := inner.(jms.Elector)
	i, isI := inner.(jms.Inquirer)
	q, isQ := inner.(jms.QueueChecker)
	s, isS := inner.(jms.CleanStarter)
	elector, inquirer, checker, starter := elector{c, e}, inquirer{c, i}, checker{c, q}, starter{c, s}
	which := 0
	for bit, is := range []bool{isE, isI, isQ, isS} {
		if is {
			which |= 1 << bit
		}
	}
	return [...]jms.Connection{
		c,
		struct {
			*conn
			jms.Elector
		}{c, elector},
		struct {
			*conn
			jms.Inquirer
		}{c, inquirer},
		struct {
			*conn
			jms.Elector
			jms.Inquirer
		}{c, elector, inquirer},
		struct {
			*conn
			jms.QueueChecker
		}{c, checker},
		struct {
			*conn
			jms.Elector
			jms.QueueChecker
		}{c, elector, checker},
		struct {
			*conn
			jms.Inquirer
			jms.QueueChecker
		}{c, inquirer, checker},
		struct {
			*conn
			jms.Elector
			jms.Inquirer
			jms.QueueChecker
		}{c, elector, inquirer, checker},
		struct {
			*conn
			jms.CleanStarter
		}{c, starter},
		struct {
			*conn
			jms.Elector
			jms.CleanStarter
		}{c, elector, starter},
		struct {
			*conn
			jms.Inquirer
			jms.CleanStarter
		}{c, inquirer, starter},
		struct {
			*conn
			jms.Elector
			jms.Inquirer
			jms.CleanStarter
		}{c, elector, inquirer, starter},
		struct {
			*conn
			jms.QueueChecker
			jms.CleanStarter
		}{c, checker, starter},
		struct {
			*conn
			jms.Elector
			jms.QueueChecker
			jms.CleanStarter
		}{c, elector, checker, starter},
		struct {
			*conn
			jms.Inquirer
			jms.QueueChecker
			jms.CleanStarter
		}{c, inquirer, checker, starter},
		struct {
			*conn
			jms.Elector
			jms.Inquirer
			jms.QueueChecker
			jms.CleanStarter
		}{c, elector, inquirer, checker, starter},
	}[which]
}

type elector struct {
	c     *conn
	inner jms.Elector
}

func (e elector) AwaitActive(ctx context.Context) error {
	return e.c.call(ctx, AwaitActive, func() error { return e.inner.AwaitActive(ctx) })
}

type inquirer struct {
	c     *conn
	inner jms.Inquirer
}

func (i inquirer) Backout(ctx context.Context) (string, int, error) {
	if err := i.c.usable(); err != nil {
		return "", 0, err
	}
	return i.inner.Backout(ctx)
}

type checker struct {
	c     *conn
	inner jms.QueueChecker
}

func (q checker) CheckQueue(ctx context.Context, queue string) error {
	if err := q.c.usable(); err != nil {
		return err
	}
	return q.inner.CheckQueue(ctx, queue)
}

type starter struct {
	c     *conn
	inner jms.CleanStarter
}

func (s starter) CleanStart(ctx context.Context) (bool, error) {
	if err := s.c.usable(); err != nil {
		return false, err
	}
	return s.inner.CleanStart(ctx)
}
