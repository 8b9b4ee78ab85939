package ibmmq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ibm-messaging/mq-golang-jms20/jms20subset"
	mqi "github.com/ibm-messaging/mq-golang/v5/ibmmq"

	"github.com/keyseq/keyseq/jms"
)

const (
	// openAtOnce bounds the connections that are made side by side, so that a restart does not end in a storm of them.
	openAtOnce = 4
	// openTries is how often a session is tried that the queue manager refuses, openPause the first pause between two tries; it grows fourfold.
	// The manager takes a refusal for a limit that holds for a minute, so one bad moment must not look like one.
	openTries = 3
	openPause = 50 * time.Millisecond
)

// handle is a context of mq-golang-jms20 with a consumer on the queue.
type handle struct {
	ctx      jms20subset.JMSContext
	consumer jms20subset.JMSConsumer
	number   int64 // IBM's connection handle
	known    bool  // the number is

	// Set by the trace hook and for it, always on the goroutine of a call on this handle.
	hooked   bool              // the hook runs for this handle
	seen     *seen             // in the MQGET under way
	impo     *mqi.MQIMPO       // for all inquiries
	pd       *mqi.MQPD         // for all inquiries
	bytes    map[string][]byte // properties to add in the MQPUT1 under way; nil when that is done
	bytesErr error
}

// unwatch must come before the connection handle is given up: IBM's client may give its number to another.
func (h *handle) unwatch() {
	if h.known {
		watched.CompareAndDelete(h.number, h)
	}
}

// openHandle connects one session. What is refused for a reason that may pass is tried again before it is an error.
func (c *connection) openHandle(ctx context.Context, buffer int) (*handle, error) {
	pause := openPause
	for try := 1; ; try++ {
		h, err := c.tryHandle(ctx, buffer)
		if err == nil || try == openTries || !errors.Is(err, jms.ErrBusy) || errors.Is(err, errSlow) {
			return h, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
		case <-c.done:
		case <-c.closing:
		}
		timer.Stop()
		if gone := c.gone(); gone != nil {
			return nil, gone
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		pause *= 4
	}
}

// tryHandle connects once, bounded in time, a few side by side.
func (c *connection) tryHandle(ctx context.Context, buffer int) (*handle, error) {
	timer := time.NewTimer(c.connectWithin)
	defer timer.Stop()
	select {
	case c.opening <- struct{}{}:
	case <-timer.C: // those before it hang: whoever waits has other things to do
		return nil, wrap(jms.ErrBusy, c.sub.Queue, fmt.Errorf("connecting a session: %w", errSlow))
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-c.done:
		return nil, c.gone()
	case <-c.closing:
		return nil, c.gone()
	}
	h, err := bounded(ctx, c.connectWithin, func() (*handle, error) {
		defer func() { <-c.opening }()
		return c.dialSession(buffer)
	}, func(late *handle) {
		late.unwatch()
		late.ctx.Close()
	})
	if err == nil || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return h, err
	}
	sentinel := jms.ErrConnectionLost
	var e *ReasonError
	if errors.As(err, &e) {
		sentinel = e.onConnect()
	}
	// The control connection was made with the same settings: if it is gone, that is the reason, whatever this code says (of TLS, for example,
	// whose configuration goes with the last connection of the process). If it stands, the sessions that there are go on.
	if sentinel != jms.ErrBusy && !c.alive() {
		return nil, c.gone()
	}
	if sentinel == jms.ErrConnectionLost {
		sentinel = jms.ErrBusy
	}
	return nil, wrap(sentinel, c.sub.Queue, err)
}

// dialSession makes the two calls of a session's connection.
func (c *connection) dialSession(buffer int) (*handle, error) {
	jctx, ex := c.context(buffer)
	if ex != nil {
		return nil, failure("MQCONNX", c.cf.QMName, ex)
	}
	h := &handle{ctx: jctx}
	if h.number, h.known = handleOf(jctx); h.known {
		watched.Store(h.number, h)
	}
	consumer, ex := jctx.CreateConsumer(jctx.CreateQueue(c.sub.Queue))
	if ex != nil {
		h.unwatch()
		jctx.Close()
		return nil, failure("MQOPEN", c.sub.Queue, ex)
	}
	h.consumer = consumer
	return h, nil
}
