package keyseq

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// errOverrun says that a call did not return within CallTimeout. It goes on in the background.
var errOverrun = errors.New("keyseq: call to the broker did not return in time")

// bounded makes a call that may be deaf to its context, in a goroutine of its own, and waits for it no longer than limit or ctx.
// late gets the result of a call that returned after it was given up; nil drops it. It is for the rare calls: receiving and settling
// are watched without a goroutine, see serve.go and stuck.go.
func bounded[R any](ctx context.Context, limit time.Duration, call func(context.Context) (R, error), late func(R)) (R, error) {
	type outcome struct {
		result R
		err    error
	}
	inner, cancel := context.WithTimeout(ctx, limit)
	back := make(chan outcome, 1)
	go func() {
		defer cancel()
		result, err := call(inner)
		back <- outcome{result, err}
	}()
	select {
	case o := <-back:
		return o.result, o.err
	case <-inner.Done():
	}
	// The call has been told to end: give it a moment to say what it did, then leave it alone.
	grace := time.NewTimer(min(limit/10, time.Second))
	defer grace.Stop()
	select {
	case o := <-back:
		return o.result, o.err
	case <-grace.C:
	}
	go func() {
		if o := <-back; o.err == nil && late != nil {
			late(o.result)
		}
	}()
	var none R
	if err := ctx.Err(); err != nil {
		return none, err
	}
	return none, fmt.Errorf("%w (CallTimeout %v)", errOverrun, limit)
}

// boundedErr is bounded for a call without a result.
func boundedErr(ctx context.Context, limit time.Duration, call func(context.Context) error) error {
	_, err := bounded(ctx, limit, func(ctx context.Context) (struct{}, error) { return struct{}{}, call(ctx) }, nil)
	return err
}
