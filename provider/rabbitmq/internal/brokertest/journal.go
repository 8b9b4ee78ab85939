package brokertest

import (
	"log/slog"
	"strings"
	"sync"
)

// Journal keeps what the provider logs.
type Journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *Journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *Journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// Logger writes to the journal.
func (j *Journal) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(j, nil)) }
