package providertest_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/providertest"
)

func faultsOfReceiving() []fault {
	return []fault{
		{name: "an unknown queue is an error of no kind", fails: "rule01/UnknownQueue", bend: bend{
			connect: func(ctx context.Context, b *refBroker, sub jms.Subscription) (jms.Connection, error) {
				c, err := b.Connect(ctx, sub)
				if errors.Is(err, jms.ErrConfig) {
					err = errors.New(err.Error())
				}
				return c, err
			}}},
		{name: "connect ignores its context", fails: "rule01/EndedContext", bend: bend{
			connect: func(ctx context.Context, b *refBroker, sub jms.Subscription) (jms.Connection, error) {
				return b.Connect(context.WithoutCancel(ctx), sub)
			}}},
		{name: "no answer is a configuration error", fails: "rule01/Unreachable",
			broker: func(b *providertest.Broker) { b.Unreachable = newRefBroker(jms.Capabilities{}) }},
		{name: "connect waits for the role", fails: "rule01/RoleIsNotAwaited", bend: bend{
			connect: func(ctx context.Context, b *refBroker, sub jms.Subscription) (jms.Connection, error) {
				c, err := b.Connect(ctx, sub)
				if err == nil {
					err = c.(jms.Elector).AwaitActive(ctx)
				}
				return c, err
			}}},
		{name: "closing an idle session turns the queue over", fails: "rule02/QueueOrder", bend: bend{
			closeSession: func(ctx context.Context, s *bentSession) error {
				s.c.locked(func() {
					q := s.refSession.c.q
					if s.held == nil && s.commits > 0 && len(q.messages) > 3 {
						q.messages = append(q.messages[1:], q.messages[0])
					}
				})
				return s.refSession.Close(ctx)
			}}},
		{name: "another connection sees a held message", fails: "rule02/HeldIsInvisible", bend: bend{
			receive: func(ctx context.Context, s *bentSession) (m *jms.Message, err error) {
				s.c.b.mu.Lock()
				if all := s.refSession.c.q.messages; len(all) == 1 && all[0].holder != nil && all[0].holder.c != s.refSession.c &&
					all[0].deliveries == 1 && s.c.b.serial == 1 {
					all[0].deliveries++
					m = &jms.Message{Body: all[0].Body}
				}
				s.c.b.mu.Unlock()
				if m != nil {
					return m, nil
				}
				return s.refSession.Receive(ctx)
			},
			commit: func(ctx context.Context, s *bentSession, out []jms.Outgoing) error {
				s.c.locked(func() { s.c.b.serial++ }) // only before the first commit
				return s.refSession.Commit(ctx, out...)
			}}},
		{name: "bodies are cut at 32 KiB", fails: "rule02/Bodies",
			bend: changed(func(_ *bentSession, m *jms.Message) { m.Body = m.Body[:min(len(m.Body), 32<<10)] })},
		{name: "integers arrive as floats", fails: "rule02/Properties", bend: changed(func(_ *bentSession, m *jms.Message) {
			for name, v := range m.Properties {
				if i, ok := v.(int64); ok {
					m.Properties[name] = float64(i)
				}
			}
		})},
		{name: "the priority is dropped", fails: "rule02/Headers", bend: changed(func(_ *bentSession, m *jms.Message) { m.Priority = 4 })},
		{name: "a buffer is used again", fails: "rule02/CompleteCopies", bend: changed(func(s *bentSession, m *jms.Message) {
			s.buf = append(s.buf[:0], m.Body...)
			m.Body = s.buf
		})},
		{name: "the TTL is dropped", fails: "rule02/Expiry", bend: bend{
			commit: func(ctx context.Context, s *bentSession, out []jms.Outgoing) error {
				for i := range out {
					out[i].TTL = 0
				}
				return s.refSession.Commit(ctx, out...)
			}}},
		{name: "receive polls every 5 s", fails: "rule03/WakesOnArrival", bend: bend{
			receive: func(ctx context.Context, s *bentSession) (*jms.Message, error) {
				for {
					short, cancel := context.WithTimeout(ctx, time.Nanosecond)
					m, err := s.refSession.Receive(short)
					cancel()
					if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
						return m, err
					}
					select {
					case <-time.After(5 * time.Second):
					case <-s.c.gone:
					case <-ctx.Done():
					}
				}
			}}},
		{name: "receive is deaf to its context", fails: "rule03/EndsWithContext", bend: deaf},
		{name: "receive is deaf to its context, in real time", fails: "rule03/EndsWithContext", bend: deaf, real: true},
		{name: "a message is dropped at the end of the context", fails: "rule03/KeepsMessageAtContextEnd", bend: bend{
			receive: func(ctx context.Context, s *bentSession) (*jms.Message, error) {
				m, err := s.refSession.Receive(ctx)
				if err == nil && ctx.Err() != nil {
					return nil, ctx.Err()
				}
				return m, err
			}}},
		{name: "close does not end a receive", fails: "rule03/EndsWithConnection", bend: bend{
			receive: func(ctx context.Context, s *bentSession) (*jms.Message, error) {
				m, err := s.refSession.Receive(ctx)
				if errors.Is(err, jms.ErrConnectionLost) && s.c.refConn.Err() == nil {
					<-ctx.Done()
				}
				return m, err
			}}},
		{name: "a message goes back when the context of its receive ends", fails: "rule04/HeldMessageOutlivesReceive", bend: bend{
			receive: func(ctx context.Context, s *bentSession) (*jms.Message, error) {
				m, err := s.refSession.Receive(ctx)
				s.stop = context.AfterFunc(ctx, func() {
					time.AfterFunc(50*time.Millisecond, func() { s.c.locked(s.giveBack) })
				})
				return m, err
			},
			commit: func(ctx context.Context, s *bentSession, out []jms.Outgoing) error {
				if s.stop != nil {
					s.stop()
				}
				return s.refSession.Commit(ctx, out...)
			}}},
		{name: "a session dies with the context of its commit", fails: "rule04/SessionOutlivesCommit", bend: bend{
			commit: func(ctx context.Context, s *bentSession, out []jms.Outgoing) error {
				if s.kept != nil && s.kept.Err() != nil {
					return fmt.Errorf("bent: %w", jms.ErrSessionLost)
				}
				s.kept = ctx
				return s.refSession.Commit(ctx, out...)
			}}},
		{name: "a connection dies with the context of connect", fails: "rule04/ConnectionOutlivesConnect", bend: bend{
			connect: func(ctx context.Context, b *refBroker, sub jms.Subscription) (jms.Connection, error) {
				c, err := b.Connect(ctx, sub)
				if err == nil {
					context.AfterFunc(ctx, func() { c.Close(context.Background()) })
				}
				return c, err
			}}},
	}
}

var deaf = bend{receive: func(ctx context.Context, s *bentSession) (*jms.Message, error) {
	return s.refSession.Receive(context.WithoutCancel(ctx))
}}
