package providertest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/keyseq/keyseq/jms"
)

func faultsOfSettling() []fault {
	return []fault{
		{name: "many sends are turned over", fails: "rule05/SendsInOrder", bend: bend{
			commit: func(ctx context.Context, s *bentSession, out []jms.Outgoing) error {
				if len(out) > 5 {
					slices.Reverse(out)
				}
				return s.refSession.Commit(ctx, out...)
			}}},
		{name: "a commit without a message sends nothing", fails: "rule05/SendsAlone", bend: bend{
			commit: func(ctx context.Context, s *bentSession, out []jms.Outgoing) error {
				if s.holds() == nil {
					s.c.b.mu.Lock()
					defer s.c.b.mu.Unlock()
					return s.refSession.c.alive()
				}
				return s.refSession.Commit(ctx, out...)
			}}},
		{name: "a commit acknowledges earlier messages too", fails: "rule05/RemovesMessage", bend: bend{
			commit: func(ctx context.Context, s *bentSession, out []jms.Outgoing) error {
				s.c.locked(func() {
					if q := s.refSession.c.q; s.held != nil && len(s.refSession.c.sessions) == 3 {
						q.messages = q.messages[slices.Index(q.messages, s.held):]
					}
				})
				return s.refSession.Commit(ctx, out...)
			}}},
		{name: "an unroutable send is a silent success", fails: "rule05/UnroutableIsAnError", bend: bend{
			commit: func(ctx context.Context, s *bentSession, out []jms.Outgoing) error {
				return s.refSession.Commit(ctx, slices.DeleteFunc(out, func(o jms.Outgoing) bool { return s.c.b.queues[o.Queue] == nil })...)
			}}},
		{name: "a rollback takes 3 s", fails: "rule06/GivesBackAtOnce", bend: bend{
			rollback: func(ctx context.Context, s *bentSession) error {
				s.c.locked(func() {
					if m := s.held; m != nil && len(s.refSession.c.q.messages) == 1 {
						s.held = nil
						s.c.hide(m)
						time.AfterFunc(3*time.Second, func() { s.c.locked(s.c.unhide) })
					}
				})
				return s.refSession.Rollback(ctx)
			}}},
		{name: "a rollback goes to the tail", fails: "rule06/KeepsPlace", bend: bend{
			rollback: func(ctx context.Context, s *bentSession) error {
				s.c.locked(func() {
					q := s.refSession.c.q
					if m := s.held; m != nil && s.c.holding() > 1 {
						q.messages = append(slices.DeleteFunc(q.messages, func(o *refMessage) bool { return o == m }), m)
					}
				})
				return s.refSession.Rollback(ctx)
			}}},
		{name: "a rollback without a message brings back the last one", fails: "rule06/WithoutMessage", bend: bend{
			commit: func(ctx context.Context, s *bentSession, out []jms.Outgoing) error {
				s.last = s.holds()
				return s.refSession.Commit(ctx, out...)
			},
			rollback: func(ctx context.Context, s *bentSession) error {
				s.c.locked(func() {
					if s.held == nil && s.last != nil && s.refSession.c.alive() == nil {
						s.last.holder = nil
						s.refSession.c.q.messages = append(s.refSession.c.q.messages, s.last)
						s.last = nil
					}
				})
				return s.refSession.Rollback(ctx)
			}}},
		{name: "nothing is marked as redelivered", fails: "rule06/MarksRedelivered",
			bend: changed(func(_ *bentSession, m *jms.Message) { m.Redelivered = false })},
		{name: "everything is marked as redelivered", fails: "rule06/MarksRedelivered",
			bend: changed(func(_ *bentSession, m *jms.Message) { m.Redelivered = true })},
		{name: "a refused commit has sent the first half", fails: "rule07/AfterErrConfig", bend: bend{
			commit: func(ctx context.Context, s *bentSession, out []jms.Outgoing) error {
				err := s.refSession.Commit(ctx, out...)
				if errors.Is(err, jms.ErrConfig) && len(out) > 1 {
					s.c.locked(func() { s.c.b.put(out[:1]) })
				}
				return err
			}}},
		{name: "a refused commit gives the message back", fails: "rule07/AfterErrConfig", bend: givesBackAfter(jms.ErrConfig)},
		{name: "a refused commit cannot be followed by another", fails: "rule07/AfterErrConfig", bend: bend{
			commit: func(ctx context.Context, s *bentSession, out []jms.Outgoing) error {
				if s.kept != nil {
					return fmt.Errorf("bent: channel is closed: %w", jms.ErrConfig)
				}
				err := s.refSession.Commit(ctx, out...)
				if errors.Is(err, jms.ErrConfig) {
					s.kept = ctx
				}
				return err
			}}},
		{name: "a busy commit gives the message back", fails: "rule07/AfterErrBusy", bend: givesBackAfter(jms.ErrBusy)},
		{name: "a lost connection fails without a kind", fails: "rule07/OnlyCloseAfterLoss", bend: bend{
			openSession: func(ctx context.Context, c *bentConn) (jms.Session, error) {
				s, err := c.refConn.OpenSession(ctx)
				if err != nil {
					err = errors.New("bent: use of closed network connection")
				}
				return s, err
			}}},
	}
}

// givesBackAfter drops the message at an error that says nothing was done.
func givesBackAfter(kind error) bend {
	return bend{commit: func(ctx context.Context, s *bentSession, out []jms.Outgoing) error {
		err := s.refSession.Commit(ctx, out...)
		if errors.Is(err, kind) {
			s.c.locked(s.giveBack)
		}
		return err
	}}
}
