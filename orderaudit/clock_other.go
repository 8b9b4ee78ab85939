//go:build !linux

package orderaudit

import "time"

const clockName = "wall"

func monotonic() int64 { return time.Now().UnixNano() }
