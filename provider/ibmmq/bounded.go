package ibmmq

import (
	"context"
	"errors"
	"time"
)

// errSlow is a call to IBM's client that has not returned in time.
var errSlow = errors.New("the call has not returned in time; IBM's client cannot be interrupted, so it goes on in the background")

// bounded makes a call that cannot be interrupted, on a goroutine of its own. When ctx or the limit ends first, what the call gives after all goes
// to late.
func bounded[T any](ctx context.Context, limit time.Duration, call func() (T, error), late func(T)) (T, error) {
	type result struct {
		v   T
		err error
	}
	done := make(chan result)
	left := make(chan struct{})
	go func() {
		v, err := call()
		select {
		case done <- result{v, err}:
		case <-left:
			if err == nil {
				late(v)
			}
		}
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	var zero T
	var err error
	select {
	case r := <-done:
		return r.v, r.err
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
		err = errSlow
	}
	close(left)
	return zero, err
}
