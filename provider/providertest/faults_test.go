package providertest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/keyseq/keyseq"
	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/providertest"
)

// fault is a provider that breaks one rule. It must fail exactly the case that is named.
type fault struct {
	name, fails string
	bend
	real   bool // runs in real time
	broker func(b *providertest.Broker)

	manager bool // of RunManager
	config  func(c *keyseq.Config)
}

// lateReturn is a loss whose messages come back after 3 s.
func lateReturn(holding int) func(c *bentConn) {
	return func(c *bentConn) {
		c.locked(func() {
			if c.holding() == holding {
				for s := range c.sessions {
					if s.held != nil {
						c.hide(s.held)
						s.held = nil
					}
				}
				time.AfterFunc(3*time.Second, func() { c.locked(c.unhide) })
			}
		})
		c.refConn.Break()
	}
}

// prefetch hides messages behind the first when exactly so many have been sent: most[7] of 7, say.
func prefetch(most map[int]int) func(ctx context.Context, s *bentSession) (*jms.Message, error) {
	return func(ctx context.Context, s *bentSession) (*jms.Message, error) {
		s.c.locked(func() {
			if q := s.refSession.c.q; len(q.messages) == s.c.b.serial && len(q.messages) > most[s.c.b.serial] {
				for _, m := range q.messages[1 : 1+most[s.c.b.serial]] {
					if m.holder == nil {
						s.c.hide(m)
					}
				}
			}
		})
		return s.refSession.Receive(ctx)
	}
}

func release(ctx context.Context, c *bentConn) error { c.locked(c.unhide); return c.refConn.Close(ctx) }

// changed is a fault in what is received.
func changed(change func(s *bentSession, m *jms.Message)) bend {
	return bend{receive: func(ctx context.Context, s *bentSession) (*jms.Message, error) {
		m, err := s.refSession.Receive(ctx)
		if err == nil {
			change(s, m)
		}
		return m, err
	}}
}

// never is a channel that nobody closes. It is made anew, because it may not leave its bubble.
func never() <-chan struct{} { return make(chan struct{}) }

func faults() []fault {
	return slices.Concat(faultsOfReceiving(), faultsOfSettling(), faultsOfEnding(), faultsOfDeclaring())
}

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
				s.c.b.mu.Lock()
				held, err := s.held, s.refSession.c.alive()
				s.c.b.mu.Unlock()
				if held == nil {
					return err
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
				s.last = s.held
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

func faultsOfEnding() []fault {
	return []fault{
		{name: "close of a session keeps its message", fails: "rule08/SessionGivesBack", bend: bend{
			closeSession: func(ctx context.Context, s *bentSession) error {
				if s.held != nil {
					return nil
				}
				return s.refSession.Close(ctx)
			}}},
		{name: "close of a connection gives back to the tail", fails: "rule08/ConnectionGivesBack", bend: bend{
			closeConn: func(ctx context.Context, c *bentConn) error {
				c.locked(func() {
					if c.holding() >= 4 && c.rolls == 0 && c.commits == 0 {
						q := c.q
						q.messages = append(q.messages[1:], q.messages[0])
					}
				})
				return c.refConn.Close(ctx)
			}}},
		{name: "the second close fails", fails: "rule08/Twice", bend: bend{
			closeConn: func(ctx context.Context, c *bentConn) error {
				c.b.mu.Lock()
				again := c.refConn.closed
				c.b.mu.Unlock()
				if again {
					return errors.New("bent: already closed")
				}
				return c.refConn.Close(ctx)
			}}},
		{name: "close during calls commits what is held", fails: "rule08/DuringCalls", bend: bend{
			commit: slowCommit,
			closeConn: func(ctx context.Context, c *bentConn) error {
				c.locked(func() {
					if c.opened < 8 {
						return
					}
					for s := range c.sessions {
						if s.held != nil {
							c.q.messages = slices.DeleteFunc(c.q.messages, func(m *refMessage) bool { return m == s.held })
						}
					}
				})
				return c.refConn.Close(ctx)
			}}},
		{name: "a commit hangs when close comes", fails: "rule08/DuringCalls", bend: bend{
			commit: func(ctx context.Context, s *bentSession, out []jms.Outgoing) error {
				err := slowCommit(ctx, s, out)
				if errors.Is(err, jms.ErrConnectionLost) && s.c.refConn.Err() == nil {
					<-ctx.Done()
				}
				return err
			}}},
		{name: "a goroutine is left", fails: "rule08/NothingLeftRunning", real: true, bend: bend{
			connect: func(ctx context.Context, b *refBroker, sub jms.Subscription) (jms.Connection, error) {
				go func() { <-never() }()
				return b.Connect(ctx, sub)
			}}},
		{name: "a receive keeps the others out", fails: "rule09/CommitWhileReceiving", bend: bend{
			receive: func(ctx context.Context, s *bentSession) (*jms.Message, error) {
				defer s.c.exclusive()()
				return s.refSession.Receive(ctx)
			},
			commit: func(ctx context.Context, s *bentSession, out []jms.Outgoing) error {
				defer s.c.exclusive()()
				return s.refSession.Commit(ctx, out...)
			}}},
		{name: "with many sessions some sends are doubled", fails: "rule09/FiftySessions", bend: bend{
			commit: func(ctx context.Context, s *bentSession, out []jms.Outgoing) error {
				s.c.b.mu.Lock()
				if s.c.opened > 20 && s.c.commits%100 == 0 {
					out = append(out, out...)
				}
				s.c.b.mu.Unlock()
				return s.refSession.Commit(ctx, out...)
			}}},
		{name: "Err tells of a loss that was not", fails: "rule10/OpenWhileConnected",
			bend: bend{err: func(*bentConn) error { return jms.ErrConnectionLost }}},
		{name: "nobody hears of a loss", fails: "rule10/ClosedAtLoss", bend: bend{done: func(c *bentConn) <-chan struct{} {
			if !c.single {
				return never()
			}
			return c.refConn.Done()
		}}},
		{name: "a loss does not end a receive", fails: "rule10/EndsReceive", bend: bend{
			receive: func(ctx context.Context, s *bentSession) (*jms.Message, error) {
				start := time.Now()
				m, err := s.refSession.Receive(ctx)
				if errors.Is(err, jms.ErrConnectionLost) && s.c.refConn.Err() != nil && time.Since(start) > 0 {
					<-ctx.Done()
				}
				return m, err
			}}},
		{name: "nobody hears that the role is lost", fails: "rule10/ClosedAtLossOfRole", bend: bend{done: func(c *bentConn) <-chan struct{} {
			if c.single {
				return never()
			}
			return c.refConn.Done()
		}}},
	}
}

func slowCommit(ctx context.Context, s *bentSession, out []jms.Outgoing) error {
	time.Sleep(time.Millisecond)
	return s.refSession.Commit(ctx, out...)
}

// exclusive lets one call at a time pass. It is no mutex, because those stop virtual time.
func (c *bentConn) exclusive() (leave func()) {
	c.b.mu.Lock()
	if c.oneAtATime == nil {
		c.oneAtATime = make(chan struct{}, 1)
	}
	one := c.oneAtATime
	c.b.mu.Unlock()
	one <- struct{}{}
	return func() { <-one }
}

func faultsOfDeclaring() []fault {
	declares := func(change func(caps *jms.Capabilities)) bend { return bend{capabilities: change} }
	return []fault{
		{name: "returns at once, with a delay", fails: "declared/Coherent",
			bend: declares(func(caps *jms.Capabilities) { caps.ReturnDelay = time.Second })},
		{name: "IDs change when a message comes again", fails: "declared/StableIDs", bend: changed(func(_ *bentSession, m *jms.Message) {
			if m.Redelivered {
				m.ID += "+"
			}
		})},
		{name: "IDs repeat", fails: "declared/StableIDs", bend: changed(func(_ *bentSession, m *jms.Message) { m.ID = "0" })},
		{name: "deliveries are not counted", fails: "declared/DeliveryCount",
			bend: changed(func(_ *bentSession, m *jms.Message) { m.DeliveryCount = 1 })},
		{name: "deliveries are counted and not declared", fails: "declared/DeliveryCount",
			bend: declares(func(caps *jms.Capabilities) { caps.DeliveryCount = false })},
		{name: "sends come before the acknowledgement", fails: "declared/AtomicSends", bend: bend{
			commit: func(ctx context.Context, s *bentSession, out []jms.Outgoing) error {
				other := &refSession{c: s.refSession.c}
				if err := other.Commit(ctx, out...); err != nil {
					return err
				}
				if len(out) == 1 && strings.HasPrefix(string(out[0].Body), "round") {
					time.Sleep(time.Millisecond)
				}
				return s.refSession.Commit(ctx)
			}}},
		{name: "sends come after the acknowledgement", fails: "declared/AtomicSends", bend: bend{
			capabilities: func(caps *jms.Capabilities) { caps.AtomicSends = false },
			commit: func(ctx context.Context, s *bentSession, out []jms.Outgoing) error {
				if len(out) == 1 && strings.HasPrefix(string(out[0].Body), "round") {
					if err := s.refSession.Commit(ctx); err != nil {
						return err
					}
					time.Sleep(time.Millisecond)
				}
				return s.refSession.Commit(ctx, out...)
			}}},
		{name: "a loss returns late", fails: "declared/ReturnsAfterLoss", bend: bend{cut: lateReturn(3)}},
		{name: "a loss returns later than the delay", fails: "declared/ReturnsAfterLoss", bend: bend{
			capabilities: func(caps *jms.Capabilities) { caps.ReturnsAtOnce, caps.ReturnDelay = false, time.Second },
			cut:          lateReturn(3)}},
		{name: "messages are hidden", fails: "declared/Push", bend: bend{receive: prefetch(map[int]int{7: 2}), closeConn: release}},
		{name: "push is declared and nothing is pushed", fails: "declared/Push",
			bend: declares(func(caps *jms.Capabilities) { caps.Push = true })},
		{name: "the prefetch has no bound", fails: "declared/MaxInFlight", bend: bend{
			capabilities: func(caps *jms.Capabilities) { caps.Push = true },
			receive:      prefetch(map[int]int{7: 2, 12: 11}), closeConn: release}},
		{name: "no more than 100 sessions", fails: "declared/CheapSessions", bend: bend{
			openSession: func(ctx context.Context, c *bentConn) (jms.Session, error) {
				c.b.mu.Lock()
				n := c.opened
				c.b.mu.Unlock()
				if n > 100 {
					return nil, fmt.Errorf("bent: enough: %w", jms.ErrBusy)
				}
				return c.refConn.OpenSession(ctx)
			}}},
		{name: "messages are taken away early", fails: "declared/MaxHold", bend: bend{
			receive: func(ctx context.Context, s *bentSession) (*jms.Message, error) {
				m, err := s.refSession.Receive(ctx)
				if err == nil {
					s.c.b.mu.Lock()
					held := s.held
					s.c.b.mu.Unlock()
					time.AfterFunc(30*time.Minute, func() {
						s.c.locked(func() {
							if s.held == held && held != nil {
								s.giveBack()
							}
						})
					})
				}
				return m, err
			}}},
		{name: "the role is given up before the messages", fails: "declared/SingleActiveConsumer", bend: bend{
			closeConn: func(ctx context.Context, c *bentConn) error {
				if c.single {
					c.locked(func() { c.q.line = slices.DeleteFunc(c.q.line, func(o *refConn) bool { return o == c.refConn }) })
					time.Sleep(time.Second)
				}
				return c.refConn.Close(ctx)
			}}},
		{name: "standing by is deaf to its context", fails: "declared/Elector", bend: bend{
			awaitActive: func(ctx context.Context, c *bentConn) error { return c.refConn.AwaitActive(context.WithoutCancel(ctx)) }}},
		{name: "the backout queue does not exist", fails: "declared/Inquirer",
			bend: bend{backout: func(*bentConn) (string, int, error) { return "NO.SUCH.QUEUE", 3, nil }}},
		{name: "a look makes the queue", fails: "declared/QueueChecker", bend: bend{
			checkQueue: func(c *bentConn, queue string) error {
				err := c.refConn.CheckQueue(context.Background(), queue)
				if err != nil {
					c.locked(func() { c.b.queues[queue] = &refQueue{} })
				}
				return err
			}}},
		{name: "a start is called clean while messages are locked", fails: "declared/CleanStarter", bend: bend{cut: lateReturn(2)}},
	}
}
