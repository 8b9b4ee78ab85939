package ibmmq

import (
	"context"
	"errors"
	"fmt"
	"time"

	mqi "github.com/ibm-messaging/mq-golang/v5/ibmmq"

	"github.com/keyseq/keyseq/jms"
)

// control is a connection's own handle to the queue manager, by mq-golang: what mq-golang-jms20 has no call for. Calls on one handle
// must not overlap (2219); one that hangs keeps the turn.
type control struct {
	*settings
	turn  chan struct{}
	qm    mqi.MQQueueManager
	queue *mqi.MQObject // open for inquiries; nil without authority
	lock  *mqi.MQObject // open for exclusive input while active
	group bool          // the queue is shared by the queue managers of a group (z/OS)
}

// dial connects the control handle. What the attributes of the queue forbid is jms.ErrConfig.
func dial(ctx context.Context, s *settings) (*control, error) {
	k, err := bounded(ctx, s.connectWithin, func() (*control, error) {
		qm, err := mqi.Connx(s.cf.QMName, s.control())
		var ret *mqi.MQReturn
		stands := errors.As(err, &ret) && ret.MQCC == mqi.MQCC_WARNING
		switch {
		case stands && ret.MQRC == mqi.MQRC_SSL_ALREADY_INITIALIZED:
			s.sub.Logger.Warn("this process has a TLS configuration already (2391): key repository and certificate are those of its first connection, not of this Factory",
				"queue", s.sub.Queue, "key_repository", s.cf.KeyRepository)
		case err != nil:
			if stands {
				_ = qm.Disc()
			}
			return nil, failure("MQCONNX", s.cf.QMName, err)
		}
		k := &control{settings: s, turn: make(chan struct{}, 1), qm: qm}
		if err := k.openQueue(); err != nil {
			_ = k.qm.Disc()
			return nil, err
		}
		return k, nil
	}, func(late *control) { _ = late.qm.Disc() })
	return k, s.connectError(ctx, err)
}

// connectError puts the sentinel before an error of connecting.
func (s *settings) connectError(ctx context.Context, err error) error {
	var e *ReasonError
	switch {
	case err == nil, errors.Is(err, jms.ErrConfig), ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return err
	case errors.As(err, &e):
		return wrap(e.onConnect(), s.sub.Queue, err)
	}
	return wrap(jms.ErrConnectionLost, s.sub.Queue, err)
}

func (k *control) open(name string, options int32) (*mqi.MQObject, error) {
	od := mqi.NewMQOD()
	od.ObjectType, od.ObjectName = mqi.MQOT_Q, name
	o, err := k.qm.Open(od, options|mqi.MQOO_FAIL_IF_QUIESCING)
	if err != nil {
		return nil, failure("MQOPEN", name, err)
	}
	return &o, nil
}

func (k *control) openQueue() error {
	queue, err := k.open(k.sub.Queue, mqi.MQOO_INQUIRE)
	var e *ReasonError
	if errors.As(err, &e) && e.Code == int(mqi.MQRC_NOT_AUTHORIZED) {
		k.sub.Logger.Warn("no authority to inquire the queue (+inq): its backout rule and its readers are not known", "queue", k.sub.Queue)
		return nil
	}
	if err != nil {
		return err
	}
	k.queue = queue
	return k.checkAttributes()
}

// checkAttributes looks at how the queue is defined. What an alias or a remote queue does not tell is left alone.
func (k *control) checkAttributes() error {
	number := func(selector int32) (int32, bool) {
		v, err := k.queue.Inq([]int32{selector})
		n, ok := v[selector].(int32)
		return n, err == nil && ok
	}
	if n, ok := number(mqi.MQIA_SHAREABILITY); ok && n == mqi.MQQA_NOT_SHAREABLE {
		return fmt.Errorf("%w: ibmmq: queue %q is defined NOSHARE, so that one session alone could read it: ALTER QLOCAL(%s) SHARE DEFSOPT(SHARED)",
			jms.ErrConfig, k.sub.Queue, k.sub.Queue)
	}
	if n, ok := number(mqi.MQIA_DEF_INPUT_OPEN_OPTION); ok && n == mqi.MQOO_INPUT_EXCLUSIVE {
		return fmt.Errorf("%w: ibmmq: queue %q is defined DEFSOPT(EXCL), so that one session alone could read it: ALTER QLOCAL(%s) DEFSOPT(SHARED)",
			jms.ErrConfig, k.sub.Queue, k.sub.Queue)
	}
	n, ok := number(mqi.MQIA_QSG_DISP) // only z/OS has it
	k.group = ok && n == mqi.MQQSGD_SHARED
	if n, ok := number(mqi.MQIA_MSG_DELIVERY_SEQUENCE); ok && n == mqi.MQMDS_PRIORITY {
		k.sub.Logger.Info("the queue delivers by priority: give the messages of a key the same priority, or define it MSGDLVSQ(FIFO)", "queue", k.sub.Queue)
	}
	if n, ok := number(mqi.MQIA_MAX_MSG_LENGTH); ok && int(n) > k.maxMessage {
		k.sub.Logger.Warn("the queue takes larger messages than Factory.MaxMessageSize; one of them would end the run", "queue", k.sub.Queue,
			"MAXMSGL", n, "MaxMessageSize", k.maxMessage)
	}
	return nil
}

// do makes a call on the handle, one at a time, and waits for it no longer than ctx and the limit.
func (k *control) do(ctx context.Context, limit time.Duration, call func() error) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case k.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return errSlow
	}
	_, err := bounded(ctx, limit, func() (struct{}, error) {
		defer func() { <-k.turn }()
		return struct{}{}, call()
	}, func(struct{}) {})
	return err
}

// probe asks the queue manager for a sign of life: a back-out of nothing, which needs no authority.
func (k *control) probe(ctx context.Context, limit time.Duration) error {
	return k.do(ctx, limit, func() error {
		if err := k.qm.Back(); err != nil {
			return failure("MQBACK", k.cf.QMName, err)
		}
		return nil
	})
}

// end gives the role up and disconnects. It waits no longer than the limit, but that goes on however long a call before it takes: a role that nobody
// gives up would be nobody's for as long as this process lives.
func (k *control) end(orderly bool, limit time.Duration) error {
	done := make(chan error, 1)
	go func() {
		k.turn <- struct{}{} // kept: nothing follows
		err := k.release(orderly)
		_ = k.qm.Disc()
		done <- err
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return errSlow
	}
}

// tokenText is the body of the message that says that the last active instance ended in order.
const tokenText = "keyseq: the active instance ended in order"

// take tries to become the active instance, and reports whether the one before it ended in order: then it has left its token, which is
// taken away. The token must be gone before anything is received, or the end of this instance would look orderly too.
func (k *control) take() (orderly bool, err error) {
	lock, err := k.open(k.lockQueue, mqi.MQOO_INPUT_EXCLUSIVE)
	if err != nil {
		return false, err
	}
	for {
		md, gmo := mqi.NewMQMD(), mqi.NewMQGMO()
		gmo.Options = mqi.MQGMO_NO_SYNCPOINT | mqi.MQGMO_NO_WAIT | mqi.MQGMO_ACCEPT_TRUNCATED_MSG
		_, err := lock.Get(md, gmo, make([]byte, len(tokenText)))
		if err == nil || codeOf(err) == int(mqi.MQRC_TRUNCATED_MSG_ACCEPTED) {
			orderly = true
			continue
		}
		if e := failure("MQGET", k.lockQueue, err); e.class() != classEmpty {
			_ = lock.Close(0)
			return false, e
		}
		k.lock = lock
		return orderly, nil
	}
}

// release gives the role up. With orderly it leaves the token first.
func (k *control) release(orderly bool) error {
	if k.lock == nil {
		return nil
	}
	var putErr error
	if orderly {
		od, md, pmo := mqi.NewMQOD(), mqi.NewMQMD(), mqi.NewMQPMO()
		od.ObjectType, od.ObjectName = mqi.MQOT_Q, k.lockQueue
		md.Persistence, md.Format = mqi.MQPER_PERSISTENT, mqi.MQFMT_STRING
		pmo.Options = mqi.MQPMO_NO_SYNCPOINT | mqi.MQPMO_NEW_MSG_ID
		if err := k.qm.Put1(od, md, pmo, []byte(tokenText)); err != nil {
			putErr = failure("MQPUT1", k.lockQueue, err)
		}
	}
	err := k.lock.Close(0)
	k.lock = nil
	if err != nil {
		return errors.Join(putErr, failure("MQCLOSE", k.lockQueue, err))
	}
	return putErr
}
