package faulty

import (
	"context"

	"github.com/keyseq/keyseq/jms"
)

// wrap adds to a wrapped connection the optional interfaces that the inner one has. A jms.Predecessor that is no jms.Elector is asked by nobody, so
// it is not passed on.
func wrap(f *Factory, inner jms.Connection, sub jms.Subscription) jms.Connection {
	c := &conn{f: f, inner: inner, sub: sub, caps: inner.Capabilities(), over: make(chan struct{}), done: make(chan struct{})}
	e, isE := inner.(jms.Elector)
	i, isI := inner.(jms.Inquirer)
	q, isQ := inner.(jms.QueueChecker)
	s, isS := inner.(jms.CleanStarter)
	p, isP := inner.(jms.Predecessor)
	elector, inquirer, checker, starter := elector{c, e}, inquirer{c, i}, checker{c, q}, starter{c, s}
	if isE && isP {
		return wrapElected(c, struct {
			jms.Elector
			jms.Predecessor
		}{elector, predecessor{c, p}}, inquirer, checker, starter, isI, isQ, isS)
	}
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

// elected is an elector that also knows its predecessor.
type elected interface {
	jms.Elector
	jms.Predecessor
}

func wrapElected(c *conn, e elected, inquirer inquirer, checker checker, starter starter, isI, isQ, isS bool) jms.Connection {
	which := 0
	for bit, is := range []bool{isI, isQ, isS} {
		if is {
			which |= 1 << bit
		}
	}
	return [...]jms.Connection{
		struct {
			*conn
			elected
		}{c, e},
		struct {
			*conn
			elected
			jms.Inquirer
		}{c, e, inquirer},
		struct {
			*conn
			elected
			jms.QueueChecker
		}{c, e, checker},
		struct {
			*conn
			elected
			jms.Inquirer
			jms.QueueChecker
		}{c, e, inquirer, checker},
		struct {
			*conn
			elected
			jms.CleanStarter
		}{c, e, starter},
		struct {
			*conn
			elected
			jms.Inquirer
			jms.CleanStarter
		}{c, e, inquirer, starter},
		struct {
			*conn
			elected
			jms.QueueChecker
			jms.CleanStarter
		}{c, e, checker, starter},
		struct {
			*conn
			elected
			jms.Inquirer
			jms.QueueChecker
			jms.CleanStarter
		}{c, e, inquirer, checker, starter},
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

type predecessor struct {
	c     *conn
	inner jms.Predecessor
}

func (p predecessor) EndedInOrder(ctx context.Context) (bool, error) {
	if err := p.c.usable(); err != nil {
		return false, err
	}
	return p.inner.EndedInOrder(ctx)
}

func (p predecessor) EndsInDisorder() { p.inner.EndsInDisorder() }
