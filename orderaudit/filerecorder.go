package orderaudit

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// OpenFile returns a Recorder that appends to the file at path, which it makes if it is not there. Every record is one line
// and one write to the file before the recording method returns, so that a killed process (kill -9) loses none; a crash of the machine
// may. Give each process a file of its own and join them with Load: a process that is killed may leave half a line. A record
// costs a few microseconds. The first error of a write is kept: Close returns it.
//
// Times are of the machine's monotonic clock on Linux, so that files of different processes of one machine compare since
// its last start; on other systems they are of the wall clock.
func OpenFile(path string) (*Recorder, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return nil, fmt.Errorf("orderaudit: cannot record: %w", err)
	}
	l := &fileLog{path: path, file: f}
	if err := l.begin(); err != nil {
		return nil, errors.Join(fmt.Errorf("orderaudit: cannot record to %s: %w", path, err), f.Close())
	}
	r := &Recorder{log: l}
	// Attempts of different processes must not be mistaken for each other. 53 bits survive JSON readers that use floats.
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	r.lastID.Store(binary.LittleEndian.Uint64(random[:]) % (1 << 21) << 32)
	return r, nil
}

// fileLog writes each record with one write(2).
type fileLog struct {
	path string
	mu   sync.Mutex
	file *os.File
	buf  []byte
	err  error // the first
}

// begin writes the header, on a line of its own even when a killed process has left half a line.
func (l *fileLog) begin() error {
	end, err := l.file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if end > 0 {
		var last [1]byte
		if _, err := l.file.ReadAt(last[:], end-1); err != nil {
			return err
		}
		if last[0] != '\n' {
			l.buf = append(l.buf, '\n')
		}
	}
	l.buf = appendHeader(l.buf, clockName)
	_, err = l.file.Write(l.buf)
	return err
}

func (l *fileLog) append(r Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.At = time.Duration(monotonic())
	l.buf = appendRecord(l.buf[:0], r)
	if _, err := l.file.Write(l.buf); err != nil && l.err == nil {
		l.err = fmt.Errorf("orderaudit: record lost: %w", err)
	}
}

func (l *fileLog) history() *History {
	h, err := Load(l.path)
	if err != nil {
		h = &History{err: err}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	h.err = errors.Join(h.err, l.err)
	return h
}

func (l *fileLog) close() error {
	err := l.file.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	if errors.Is(err, os.ErrClosed) {
		err = nil
	}
	return errors.Join(l.err, err)
}
