// Command rabbitmq shows two instances of a consumer on one RabbitMQ queue with a single active consumer: one works, the other stands by.
// The active one is killed with kill -9 in the middle of its work; the other takes over, and every key goes on in order. At the end the
// recorded histories of all processes are audited; the exit status is 1 if order was broken or a message lost.
//
//	scripts/rabbitmq start                    # or: docker compose up -d --wait
//	AMQP_URL=$(scripts/rabbitmq url) go run ./examples/rabbitmq
//
// The active instance is killed when you press Enter; where nobody can, after a third of the work. The parts also run alone:
//
//	go run ./examples/rabbitmq produce        # publishes 2,000 messages of 50 orders
//	go run ./examples/rabbitmq consume A      # consumes until interrupted; start a second one as B, and kill either
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	exchange = "keyseq.example"        // messages come here, with the order's number as routing key
	queue    = "keyseq.example.orders" // and are all read from here
	orders   = 50                      // keys
	versions = 40                      // messages of each
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	url := cmp.Or(os.Getenv("AMQP_URL"), "amqp://guest:guest@127.0.0.1:5672/")
	var err error
	switch args := append(os.Args[1:], "", ""); args[0] {
	case "produce":
		_, err = produce(ctx, url)
	case "consume":
		err = consume(ctx, url, cmp.Or(args[1], "A"), args[2])
	case "":
		err = demo(ctx, url)
	default:
		err = fmt.Errorf("unknown command %q: produce, consume NAME, or nothing for the demo", args[0])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// arguments of the queue. A quorum queue loses nothing that was acknowledged when its broker is killed; the single active consumer keeps
// the order when there is more than one instance.
var arguments = amqp.Table{amqp.QueueTypeArg: amqp.QueueTypeQuorum, amqp.SingleActiveConsumerArg: true}
