package ibmmq

import (
	"reflect"
	"sync"

	"github.com/ibm-messaging/mq-golang-jms20/jms20subset"
	mqi "github.com/ibm-messaging/mq-golang/v5/ibmmq"
)

// The hook belongs to the process, as mq-golang's trace functions do: there is one set, without a way to ask for it.
var (
	installing sync.Once
	watched    sync.Map // IBM's connection handle (int64) -> *handle, for those of this package
)

func installHook() {
	installing.Do(func() { mqi.SetOtelFuncs(TraceFuncs(mqi.MQOtelFuncs{})) })
}

// TraceFuncs adds what this package needs to the OpenTelemetry functions of a program, which are called as before. Install the result with
// mq-golang's SetOtelFuncs before the first connection, and set Factory.NoTraceHook so that it stays:
//
//	mq.SetOtelFuncs(ibmmq.TraceFuncs(mine))
func TraceFuncs(mine mqi.MQOtelFuncs) mqi.MQOtelFuncs {
	all := mine
	all.Open = func(o *mqi.MQObject, od *mqi.MQOD, options int32) {
		if h := watchedHandle(managerOf(o)); h != nil {
			h.hooked = true
		}
		if mine.Open != nil {
			mine.Open(o, od, options)
		}
	}
	all.GetTraceAfter = func(opts mqi.OtelOpts, o *mqi.MQObject, gmo *mqi.MQGMO, md *mqi.MQMD, data []byte, async bool) int {
		if h := watchedHandle(managerOf(o)); h != nil {
			h.look(gmo, md)
		}
		if mine.GetTraceAfter != nil {
			return mine.GetTraceAfter(opts, o, gmo, md, data, async)
		}
		return 0
	}
	all.PutTraceBefore = func(opts mqi.OtelOpts, qm *mqi.MQQueueManager, md *mqi.MQMD, pmo *mqi.MQPMO, data []byte) {
		if h := watchedHandle(reflect.ValueOf(qm)); h != nil {
			h.addBytes(pmo)
		}
		if mine.PutTraceBefore != nil {
			mine.PutTraceBefore(opts, qm, md, pmo, data)
		}
	}
	return all
}

// Where the hook finds what mq-golang does not show, looked up once: it runs for each message. -1: this version has it elsewhere.
var (
	objectManager = sync.OnceValue(func() int { return fieldOf(reflect.TypeFor[mqi.MQObject](), "qMgr") })
	managerNumber = sync.OnceValue(func() int { return fieldOf(reflect.TypeFor[mqi.MQQueueManager](), "hConn") })
)

func fieldOf(t reflect.Type, name string) int {
	if f, ok := t.FieldByName(name); ok && len(f.Index) == 1 {
		return f.Index[0]
	}
	return -1
}

// managerOf is the connection of an object.
func managerOf(o *mqi.MQObject) reflect.Value {
	i := objectManager()
	if i < 0 {
		return reflect.Value{}
	}
	return reflect.ValueOf(o).Elem().Field(i)
}

// watchedHandle finds the handle of a connection, given as a pointer to mq-golang's type.
func watchedHandle(qm reflect.Value) *handle {
	i := managerNumber()
	if i < 0 || qm.Kind() != reflect.Pointer || qm.IsNil() {
		return nil
	}
	number := qm.Elem().Field(i)
	if !number.CanInt() {
		return nil
	}
	h, _ := watched.Load(number.Int())
	found, _ := h.(*handle)
	return found
}

// handleOf is the connection handle in a context of mq-golang-jms20; false if its type is not the known one.
func handleOf(ctx jms20subset.JMSContext) (int64, bool) {
	v := reflect.Indirect(reflect.ValueOf(ctx))
	if v.Kind() != reflect.Struct {
		return 0, false
	}
	qm := v.FieldByName("qMgr")
	if qm.Kind() != reflect.Struct {
		return 0, false
	}
	h := qm.FieldByName("hConn")
	if !h.IsValid() || !h.CanInt() {
		return 0, false
	}
	return h.Int(), true
}

// seen is what the hook found in an MQGET.
type seen struct {
	md         *mqi.MQMD // the message's own; nobody else uses it afterwards
	properties map[string]any
	err        error // which properties there are cannot be told
}

// look runs within MQGET on the goroutine of Receive, while mq-golang-jms20 holds the lock of the context.
func (h *handle) look(gmo *mqi.MQGMO, md *mqi.MQMD) {
	if h.impo == nil {
		h.impo, h.pd = mqi.NewMQIMPO(), mqi.NewMQPD()
	}
	properties, err := inquire(&gmo.MsgHandle, h.impo, h.pd)
	h.seen = &seen{md: md, properties: properties, err: err}
}

// addBytes runs within MQPUT1 on the goroutine of Commit: mq-golang-jms20 has no setter for byte properties.
func (h *handle) addBytes(pmo *mqi.MQPMO) {
	for name, value := range h.bytes {
		if h.bytesErr = pmo.OriginalMsgHandle.SetMP(mqi.NewMQSMPO(), name, mqi.NewMQPD(), value); h.bytesErr != nil {
			return
		}
	}
	h.bytes = nil
}
