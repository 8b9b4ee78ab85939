package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// broker is a private node in a folder of its own.
type broker struct {
	script, dir string
	url         string
	address     string
}

func (b *broker) start() error {
	out, err := b.output("start")
	if err != nil {
		return err
	}
	b.url = strings.TrimSpace(out)
	u, err := url.Parse(b.url)
	if err != nil {
		return err
	}
	b.address = u.Host
	return nil
}

func (b *broker) command(args ...string) error {
	_, err := b.output(args...)
	return err
}

func (b *broker) output(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, b.script, args...)
	c.Env = append(os.Environ(), "KEYSEQ_RABBITMQ_DIR="+b.dir)
	var complaints strings.Builder
	c.Stderr = &complaints
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", b.script, strings.Join(args, " "), err, complaints.String())
	}
	return string(out), nil
}

// through is the broker's URL with another address.
func (b *broker) through(address string) string { return strings.Replace(b.url, b.address, address, 1) }

// dial connects, and tries again while the broker is not there.
func (b *broker) dial(ctx context.Context) (*amqp.Connection, *amqp.Channel, error) {
	for {
		conn, err := amqp.DialConfig(b.url, amqp.Config{Heartbeat: heartbeat})
		if err == nil {
			var ch *amqp.Channel
			if ch, err = conn.Channel(); err == nil {
				if err = ch.Confirm(false); err == nil {
					return conn, ch, nil
				}
			}
			_ = conn.Close()
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return nil, nil, fmt.Errorf("no connection: %w", err)
		}
	}
}

// left counts the messages of the queue, those that consumers hold included.
func (b *broker) left(queue string) (int, error) {
	out, err := b.output("ctl", "-q", "list_queues", "name", "messages")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == queue {
			return strconv.Atoi(f[1])
		}
	}
	return 0, fmt.Errorf("the queue %s is gone", queue)
}
