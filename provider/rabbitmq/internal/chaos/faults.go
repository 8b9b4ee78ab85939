package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/keyseq/keyseq/provider/rabbitmq/internal/faultproxy"
)

const killConsumer = "kill -9 of a consumer"

// slot is the place of one consumer: when its process is killed another takes the place, under another name.
type slot struct {
	r      *round
	id     string
	proxy  *faultproxy.Proxy
	starts int
	name   string
	cmd    *exec.Cmd
	ended  chan error
}

func (s *slot) launch() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	s.starts++
	s.name = fmt.Sprint(s.id, s.starts)
	log, err := os.Create(filepath.Join(s.r.dir, s.name+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	s.cmd = exec.Command(self, "consumer", "-url", s.r.b.through(s.proxy.Addr()), "-queue", s.r.queue, "-out", s.r.out, "-name", s.name,
		"-record", filepath.Join(s.r.dir, s.name+".history"), "-window", fmt.Sprint(s.r.window), "-task", s.r.task.String(), "-takeover", s.r.takeover.String(), "-exclusive="+fmt.Sprint(s.r.elect))
	s.cmd.Stderr = log
	if err := s.cmd.Start(); err != nil {
		return err
	}
	s.ended = make(chan error, 1)
	go func(cmd *exec.Cmd, ended chan error) { ended <- cmd.Wait() }(s.cmd, s.ended)
	return nil
}

// died reports a process that has ended by itself.
func (s *slot) died() error {
	select {
	case err := <-s.ended:
		s.ended <- err
		return fmt.Errorf("G8: consumer %s ended by itself: %v (its log is beside its history)", s.name, err)
	default:
		return nil
	}
}

// end tells the process to shut down, and waits.
func (s *slot) end() error {
	_ = s.cmd.Process.Signal(syscall.SIGCONT)
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-s.ended:
		s.ended <- err
		if err != nil {
			return fmt.Errorf("consumer %s did not end in order: %w (its log is beside its history)", s.name, err)
		}
		return nil
	case <-time.After(40 * time.Second):
		_ = s.cmd.Process.Kill()
		return fmt.Errorf("consumer %s has not shut down within 40 s", s.name)
	}
}

// breakSomething draws a fault and waits until it is over.
func (r *round) breakSomething() (string, error) {
	s := r.slots[r.rand.IntN(len(r.slots))]
	if err := s.died(); err != nil {
		return "", err
	}
	short, long := time.Duration(200+r.rand.IntN(1500))*time.Millisecond, time.Duration(6500+r.rand.IntN(1500))*time.Millisecond
	switch n := r.rand.IntN(100); {
	case n < 30:
		return killConsumer, r.killConsumer(s)
	case n < 38:
		return "SIGSTOP of a consumer, briefly", r.freeze(s, short)
	case n < 46:
		return "SIGSTOP of a consumer, longer than the broker waits", r.freeze(s, long)
	case n < 58:
		return "links of a consumer cut", r.lose(s.name, "links cut", func() error { s.proxy.Cut(); time.Sleep(300 * time.Millisecond); return nil })
	case n < 66:
		return "links of a consumer silent", r.lose(s.name, "links silent", func() error {
			s.proxy.Silence()
			time.Sleep(long)
			s.proxy.Speak()
			return nil
		})
	case n < 78:
		return "rolling deploy", r.deploy()
	case n < 84:
		return "kill -9 of the broker", r.lose("", "kill -9 of the broker", func() error {
			r.killed = true
			return errors.Join(r.b.command("kill"), r.b.command("start"))
		})
	case n < 88:
		return "restart of the broker", r.lose("", "restart of the broker", func() error { return r.b.command("restart") })
	case n < 94:
		return "SIGSTOP of the broker", r.lose("", "SIGSTOP of the broker", func() error {
			err := r.b.command("pause")
			time.Sleep(3 * short)
			return errors.Join(err, r.b.command("resume"))
		})
	}
	return "memory alarm", r.alarm(short)
}

// lose records a loss around what causes it.
func (r *round) lose(instance, what string, cause func() error) error {
	loss := r.record.Loss(instance, what, 0)
	defer loss.Done()
	return cause()
}

func (r *round) killConsumer(s *slot) error {
	if err := r.lose(s.name, killConsumer, func() error {
		if err := s.cmd.Process.Kill(); err != nil {
			return err
		}
		<-s.ended
		r.record.Killed(s.name)
		return nil
	}); err != nil {
		return err
	}
	return s.launch()
}

func (r *round) freeze(s *slot, d time.Duration) error {
	return r.lose(s.name, "SIGSTOP", func() error {
		if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			return err
		}
		time.Sleep(d)
		if err := s.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			return err
		}
		time.Sleep(500 * time.Millisecond) // it notices what it has lost
		return nil
	})
}

// deploy replaces every consumer, one after another, with Shutdown.
func (r *round) deploy() error {
	for _, s := range r.slots {
		r.record.InstanceStopping(s.name)
		if err := s.end(); err != nil {
			return err
		}
		if err := s.launch(); err != nil {
			return err
		}
	}
	return nil
}

func (r *round) alarm(d time.Duration) error {
	err := r.b.command("ctl", "-q", "set_vm_memory_high_watermark", "absolute", "1MB")
	time.Sleep(d)
	return errors.Join(err, r.b.command("ctl", "-q", "set_vm_memory_high_watermark", "absolute", "2GB"))
}
