// Package mqistandin is a stand-in for IBM's MQ client library, for tests: the
// real mq-golang and mq-golang-jms20 are compiled against its headers, linked
// with its library and run on its queue manager, where IBM's client can not be
// had. docs/mqistandin.md says what it models and what not.
//
// Without the build tag mqistandin the package is empty, so nothing of it can
// get into a program. `make test` in provider/ibmmq sets the tag and the cgo
// flags; by hand:
//
//	cd provider/ibmmq
//	eval "$(make -s flags)"
//	go test -count=1 -tags mqistandin ./...
//
// The functions act on the queue manager chosen by [Use]: by default the one
// inside the test's own process, or one in a process of its own that
// [StartQueueManager] starts and several client processes share.
package mqistandin
