package faulty_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/faulty"
)

// bare is a connection without optional interfaces and without Done.
type bare struct{ caps jms.Capabilities }

func (b bare) OpenSession(context.Context) (jms.Session, error) { return nil, errInner }
func (b bare) Capabilities() jms.Capabilities                   { return b.caps }
func (b bare) Done() <-chan struct{}                            { return nil }
func (b bare) Err() error                                       { return nil }
func (b bare) Close(context.Context) error                      { return nil }

var errInner = errors.New("from the wrapped provider")

type (
	withElector  struct{}
	withInquirer struct{}
	withChecker  struct{}
	withStarter  struct{}
)

func (withElector) AwaitActive(context.Context) error             { return errInner }
func (withInquirer) Backout(context.Context) (string, int, error) { return "BACKOUT", 7, errInner }
func (withChecker) CheckQueue(_ context.Context, q string) error {
	return fmt.Errorf("%s: %w", q, errInner)
}
func (withStarter) CleanStart(context.Context) (bool, error) { return true, errInner }

type factoryFunc func() jms.Connection

func (f factoryFunc) Connect(context.Context, jms.Subscription) (jms.Connection, error) {
	return f(), nil
}

// withPredecessor adds to a connection that has all else.
type withPredecessor struct{}

func (withPredecessor) EndedInOrder(context.Context) (bool, error) { return true, errInner }
func (withPredecessor) EndsInDisorder()                            {}

func TestPredecessorPassesThrough(t *testing.T) {
	for i, inner := range []jms.Connection{
		struct {
			bare
			withElector
			withPredecessor
		}{},
		struct {
			bare
			withElector
			withPredecessor
			withInquirer
		}{},
		struct {
			bare
			withElector
			withPredecessor
			withChecker
		}{},
		struct {
			bare
			withElector
			withPredecessor
			withInquirer
			withChecker
		}{},
		struct {
			bare
			withElector
			withPredecessor
			withStarter
		}{},
		struct {
			bare
			withElector
			withPredecessor
			withInquirer
			withStarter
		}{},
		struct {
			bare
			withElector
			withPredecessor
			withChecker
			withStarter
		}{},
		struct {
			bare
			withElector
			withPredecessor
			withInquirer
			withChecker
			withStarter
		}{},
	} {
		c, err := faulty.New(factoryFunc(func() jms.Connection { return inner })).Connect(t.Context(), sub())
		if err != nil {
			t.Fatal(err)
		}
		p, isP := c.(jms.Predecessor)
		e, isE := c.(jms.Elector)
		if !isP || !isE {
			t.Fatalf("%T: Predecessor %t, Elector %t", inner, isP, isE)
		}
		if yes, err := p.EndedInOrder(t.Context()); !yes || !errors.Is(err, errInner) {
			t.Errorf("%T: EndedInOrder: %t, %v", inner, yes, err)
		}
		if err := e.AwaitActive(t.Context()); !errors.Is(err, errInner) {
			t.Errorf("%T: AwaitActive: %v", inner, err)
		}
		got := 0
		for bit, is := range []bool{has[jms.Inquirer](c), has[jms.QueueChecker](c), has[jms.CleanStarter](c)} {
			if is {
				got |= 1 << bit
			}
		}
		if got != i {
			t.Errorf("%T: wrapped has %03b, want %03b", inner, got, i)
		}
	}
}

func has[I any](c jms.Connection) bool { _, is := c.(I); return is }

func TestOptionalInterfacesPassThrough(t *testing.T) {
	b := bare{jms.Capabilities{Broker: "bare", MaxInFlight: 3}}
	all := []jms.Connection{
		b,
		struct {
			bare
			withElector
		}{b, withElector{}},
		struct {
			bare
			withInquirer
		}{b, withInquirer{}},
		struct {
			bare
			withElector
			withInquirer
		}{bare: b},
		struct {
			bare
			withChecker
		}{bare: b},
		struct {
			bare
			withElector
			withChecker
		}{bare: b},
		struct {
			bare
			withInquirer
			withChecker
		}{bare: b},
		struct {
			bare
			withElector
			withInquirer
			withChecker
		}{bare: b},
		struct {
			bare
			withStarter
		}{bare: b},
		struct {
			bare
			withElector
			withStarter
		}{bare: b},
		struct {
			bare
			withInquirer
			withStarter
		}{bare: b},
		struct {
			bare
			withElector
			withInquirer
			withStarter
		}{bare: b},
		struct {
			bare
			withChecker
			withStarter
		}{bare: b},
		struct {
			bare
			withElector
			withChecker
			withStarter
		}{bare: b},
		struct {
			bare
			withInquirer
			withChecker
			withStarter
		}{bare: b},
		struct {
			bare
			withElector
			withInquirer
			withChecker
			withStarter
		}{bare: b},
	}
	ctx := t.Context()
	for i, inner := range all {
		c, err := faulty.New(factoryFunc(func() jms.Connection { return inner })).Connect(ctx, sub())
		if err != nil {
			t.Fatal(err)
		}
		e, isE := c.(jms.Elector)
		q, isI := c.(jms.Inquirer)
		k, isQ := c.(jms.QueueChecker)
		s, isS := c.(jms.CleanStarter)
		got := 0
		for bit, is := range []bool{isE, isI, isQ, isS} {
			if is {
				got |= 1 << bit
			}
		}
		if got != i {
			t.Errorf("%T: wrapped has %04b, want %04b", inner, got, i)
			continue
		}
		if isE && !errors.Is(e.AwaitActive(ctx), errInner) {
			t.Errorf("%04b: AwaitActive is not passed on", i)
		}
		if isI {
			if name, n, err := q.Backout(ctx); name != "BACKOUT" || n != 7 || !errors.Is(err, errInner) {
				t.Errorf("%04b: Backout: %q, %d, %v", i, name, n, err)
			}
		}
		if isQ {
			if err := k.CheckQueue(ctx, "Q"); err == nil || err.Error() != "Q: "+errInner.Error() {
				t.Errorf("%04b: CheckQueue: %v", i, err)
			}
		}
		if isS {
			if clean, err := s.CleanStart(ctx); !clean || !errors.Is(err, errInner) {
				t.Errorf("%04b: CleanStart: %t, %v", i, clean, err)
			}
		}
		if c.Capabilities() != b.caps || c.Done() != nil || c.Err() != nil {
			t.Errorf("%04b: %+v, %v, %v", i, c.Capabilities(), c.Done(), c.Err())
		}
		if _, err := c.OpenSession(ctx); !errors.Is(err, errInner) {
			t.Errorf("%04b: OpenSession: %v", i, err)
		}
	}
}
