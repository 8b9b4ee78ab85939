package providertest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/keyseq/keyseq/jms"
)

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
					held := s.holds()
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
