module github.com/keyseq/keyseq/examples/ibmmq

go 1.26

require (
	github.com/ibm-messaging/mq-golang-jms20 v1.11.0
	github.com/keyseq/keyseq v0.1.0
	github.com/keyseq/keyseq/provider/ibmmq v0.0.0
)

require github.com/ibm-messaging/mq-golang/v5 v5.6.2 // indirect

replace (
	github.com/keyseq/keyseq => ../..
	github.com/keyseq/keyseq/provider/ibmmq => ../../provider/ibmmq
)
