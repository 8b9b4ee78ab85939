package ibmmq

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	mqi "github.com/ibm-messaging/mq-golang/v5/ibmmq"

	"github.com/keyseq/keyseq/jms"
)

// standbyEvery is how often a standby tries to open the lock queue, give or take a quarter.
const standbyEvery = 500 * time.Millisecond

// AwaitActive implements jms.Elector. Without a single active consumer every instance is active.
func (c *connection) AwaitActive(ctx context.Context) error {
	if c.lockQueue == "" {
		return nil
	}
	for {
		if err := c.gone(); err != nil {
			return err
		}
		var orderly bool
		err := c.control.do(ctx, c.connectWithin, func() (err error) {
			orderly, err = c.control.take()
			return err
		})
		var e *ReasonError
		switch {
		case err == nil:
			c.mu.Lock()
			c.role, c.orderly = true, orderly
			c.mu.Unlock()
			return nil
		case ctx.Err() != nil:
			// The call may have become active after all; the role then ends with the connection.
			return ctx.Err()
		case errors.As(err, &e) && e.Code == int(mqi.MQRC_OBJECT_IN_USE):
		case errors.As(err, &e) && e.class() == classConfig:
			err = errors.Join(err, errors.New("define the lock queue of the single active consumer: DEFINE QLOCAL('"+c.lockQueue+"') NOSHARE DEFSOPT(EXCL)"))
			return wrap(jms.ErrConfig, c.sub.Queue, err)
		default:
			return c.lose(err)
		}
		pause := time.NewTimer(standbyEvery*3/4 + rand.N(standbyEvery/2))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return ctx.Err()
		case <-c.done:
		case <-c.closing:
		}
		pause.Stop()
	}
}

// EndedInOrder implements jms.Predecessor by the token in the lock queue.
func (c *connection) EndedInOrder(ctx context.Context) (bool, error) {
	if err := c.gone(); err != nil {
		return false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.orderly, nil
}

// EndsInDisorder implements jms.Predecessor: no token is left.
func (c *connection) EndsInDisorder() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unclean = true
}

// CleanStart implements jms.CleanStarter: a unit of work of a reader keeps the queue open for input until the queue manager has noticed that
// the reader is gone. Any reader, also one that lives, makes it false.
func (c *connection) CleanStart(ctx context.Context) (bool, error) {
	c.mu.Lock()
	own := len(c.sessions)
	c.mu.Unlock()
	if own > 0 || c.control.group { // the count below does not know of readers at other queue managers of the group
		return false, nil
	}
	v, err := c.inquire(ctx, mqi.MQIA_OPEN_INPUT_COUNT)
	if err != nil {
		return false, err
	}
	n, known := v[mqi.MQIA_OPEN_INPUT_COUNT].(int32)
	if n > 0 && c.lockQueue == "" {
		c.sub.Logger.Warn("the queue is open for input elsewhere: by a reader that is gone, or by one that lives, and then order holds only within each; SingleActiveConsumer lets one work at a time",
			"queue", c.sub.Queue, "open_input_count", n)
	}
	return known && n == 0, nil
}

// Backout implements jms.Inquirer by BOQNAME and BOTHRESH of the queue.
func (c *connection) Backout(ctx context.Context) (queue string, maxDeliveries int, err error) {
	if c.control.queue == nil { // no authority; a warning said so
		return "", 0, nil
	}
	v, err := c.inquire(ctx, mqi.MQCA_BACKOUT_REQ_Q_NAME, mqi.MQIA_BACKOUT_THRESHOLD)
	var e *ReasonError
	if errors.As(err, &e) && (e.Code == int(mqi.MQRC_SELECTOR_NOT_FOR_TYPE) || e.Code == int(mqi.MQRC_SELECTOR_ERROR)) { // an alias has no backout rule
		return "", 0, nil
	}
	if err != nil {
		return "", 0, err
	}
	queue, _ = v[mqi.MQCA_BACKOUT_REQ_Q_NAME].(string)
	most, _ := v[mqi.MQIA_BACKOUT_THRESHOLD].(int32)
	return strings.TrimSpace(queue), int(most), nil
}

var errNoAuthority = errors.New("the user may not inquire the queue: give it +inq")

func (c *connection) inquire(ctx context.Context, selectors ...int32) (map[int32]any, error) {
	if err := c.gone(); err != nil {
		return nil, err
	}
	if c.control.queue == nil {
		return nil, errNoAuthority
	}
	var values map[int32]any // the call's until it has returned in time
	err := c.control.do(ctx, c.probeLimit(), func() error {
		v, err := c.control.queue.Inq(selectors)
		if err != nil {
			return failure("MQINQ", c.sub.Queue, err)
		}
		values = v
		return nil
	})
	if err != nil {
		return nil, c.controlError(err)
	}
	return values, nil
}

// controlError is what a failed call on the control handle means.
func (c *connection) controlError(err error) error {
	var e *ReasonError
	if errors.As(err, &e) {
		switch e.class() {
		case classConnection, classStopping:
			return c.lose(e)
		}
	}
	return err
}

// CheckQueue implements jms.QueueChecker: the queue is opened for output and closed again.
func (c *connection) CheckQueue(ctx context.Context, queue string) error {
	if err := c.gone(); err != nil {
		return err
	}
	if err := checkName("the target queue", queue, maxName); err != nil {
		return err
	}
	err := c.control.do(ctx, c.connectWithin, func() error {
		o, err := c.control.open(queue, mqi.MQOO_OUTPUT)
		if err != nil {
			return err
		}
		_ = o.Close(0)
		return nil
	})
	var e *ReasonError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e) && (e.class() == classConfig || e.class() == classBusy):
		return wrap(e.onConnect(), c.sub.Queue, err)
	}
	return c.controlError(err)
}

// refusal is a send that no retry will mend and that was not the first of its commit, so that a rollback had to undo the others.
type refusal struct {
	why           *ReasonError
	size          int
	nonPersistent bool
}

// meets says that a message would be refused for the same reason.
func (r refusal) meets(out *jms.Outgoing) bool {
	return len(out.Body) >= r.size && out.NonPersistent == r.nonPersistent
}

// checkTargets looks, once for each queue, whether a commit of several messages names one that does not exist. If it were found out after the
// first put only a rollback would undo that, and the task would run again for a wrong name. What was refused in that way once (a message that is longer
// than its target takes) is refused here when it comes again, or it would go round for ever; after that it is tried again.
func (c *connection) checkTargets(ctx context.Context, out []jms.Outgoing) error {
	if len(out) < 2 {
		return nil
	}
	for i := range out {
		name := out[i].Queue
		if r, ok := c.refused.Load(name); ok && r.(refusal).meets(&out[i]) {
			c.refused.Delete(name)
			return wrap(jms.ErrConfig, c.sub.Queue, r.(refusal).why)
		}
		if _, known := c.targets.Load(name); known {
			continue
		}
		err := c.CheckQueue(ctx, name)
		if errors.Is(err, jms.ErrConfig) {
			return err
		}
		if err == nil {
			c.targets.Store(name, true)
		} // else the put tells
	}
	return nil
}
