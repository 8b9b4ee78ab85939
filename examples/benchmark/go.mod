module github.com/keyseq/keyseq/examples/benchmark

go 1.26

require (
	github.com/keyseq/keyseq v0.1.0
	github.com/keyseq/keyseq/provider/rabbitmq v0.1.0
	github.com/rabbitmq/amqp091-go v1.16.0
	go.uber.org/goleak v1.3.0
)

replace (
	github.com/keyseq/keyseq => ../..
	github.com/keyseq/keyseq/provider/rabbitmq => ../../provider/rabbitmq
)
