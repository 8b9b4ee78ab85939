module github.com/keyseq/keyseq/provider/ibmmq

go 1.26

require (
	github.com/ibm-messaging/mq-golang-jms20 v1.11.0
	github.com/ibm-messaging/mq-golang/v5 v5.6.2
	github.com/keyseq/keyseq v0.1.0
	go.uber.org/goleak v1.3.0
)

replace github.com/keyseq/keyseq => ../..
