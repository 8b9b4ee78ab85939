package simulation

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// logBuffer keeps what the managers log and what the schedule does, with virtual times, to be printed when a run fails.
type logBuffer struct {
	mu    sync.Mutex
	begin time.Time
	text  strings.Builder
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) since() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.begin.IsZero() {
		b.begin = time.Now()
	}
	return time.Since(b.begin)
}

func (b *logBuffer) add(who, what string) {
	at := b.since()
	b.mu.Lock()
	defer b.mu.Unlock()
	fmt.Fprintf(&b.text, "%v %s: %s\n", at, who, what)
}

func (b *logBuffer) logger(name string) *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Duration("at", b.since())
		}
		return a
	}})).With("instance", name)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
