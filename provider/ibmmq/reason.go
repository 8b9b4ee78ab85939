package ibmmq

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ibm-messaging/mq-golang-jms20/jms20subset"
	mqi "github.com/ibm-messaging/mq-golang/v5/ibmmq"

	"github.com/keyseq/keyseq/jms"
)

// ReasonError is a call that the queue manager or IBM's client refused. It stands beside one of the sentinels of package jms in every error
// of this package that a reason code led to:
//
//	var r *ibmmq.ReasonError
//	if errors.As(err, &r) && r.Code == 2035 { ... }
type ReasonError struct {
	// Code is IBM's reason code, for example 2035; 0 where mq-golang-jms20 refused by itself.
	Code int
	// Name is its symbolic name, for example MQRC_NOT_AUTHORIZED, or the text of mq-golang-jms20.
	Name string
	// Call is what was refused, for example MQGET.
	Call string
	// Object is the queue or queue manager it was about.
	Object string
}

func (e *ReasonError) Error() string {
	text := fmt.Sprintf("%s of %q: %d %s", e.Call, e.Object, e.Code, e.Name)
	if advice := reasons[e.Code].advice; advice != "" {
		text += ": " + advice
	}
	return text
}

// class is what a reason code means, whatever the call.
type class int

const (
	classUnknown    class = iota
	classEmpty            // no message
	classConnection       // this connection handle is gone; what it held comes back when the queue manager has noticed
	classStopping         // the queue manager or the channel has ended every connection
	classQuiescing        // what is held can be settled, nothing new begins
	classConfig           // no retry will mend it
	classBusy             // the same call may work later
	classMessage          // this message, not the others
	classBackedOut        // the unit of work was undone
	classReopen           // the object handle is stale
	classTooBig           // the buffer is too small for the message at the head
	classHandle           // a message handle died early, a fault of mq-golang-jms20
	classFault            // this package or another user of the connection broke a rule of the MQI
)

type reason struct {
	class  class
	advice string
}

const (
	adviceTLS     = "see AMQERR01.LOG of the client and of the queue manager; one process can use one TLS configuration only"
	adviceLimit   = "the limit of MaxChannels (qm.ini), MAXINST or MAXINSTC is reached, or the channel is stopped; set Factory.MaxChannels and SharingConversations to what this program may use"
	adviceAway    = "the queue manager cannot be reached; it is tried again"
	adviceRemoved = "the queue was deleted or altered"
)

// reasons classifies IBM's reason codes. Names come from IBM's client.
var reasons = map[int]reason{
	2001: {classConfig, "an alias queue must point to a local queue"},
	2003: {classBackedOut, "the queue manager rolled the unit of work back, as it does when its log is full"},
	2009: {classConnection, "the network or the queue manager broke the connection"},
	2010: {classTooBig, "raise MAXMSGL of the channel, and Factory.MaxMessageSize"},
	2012: {classConfig, "the client library does not allow this call"},
	2013: {classFault, ""},
	2016: {classBusy, "the queue is inhibited for reading: ALTER QLOCAL(...) GET(ENABLED) lets it go on"},
	2017: {classConfig, "too many open handles: raise MAXHANDS of the queue manager"},
	2018: {classConnection, ""},
	2019: {classReopen, ""},
	2024: {classFault, ""},
	2025: {classBusy, adviceLimit},
	2026: {classFault, ""},
	2030: {classConfig, "the message is longer than MAXMSGL of the target queue"},
	2031: {classConfig, "the message is longer than MAXMSGL of the queue manager"},
	2033: {classEmpty, ""},
	2035: {classConfig, "the user needs authority: +connect +inq on the queue manager, +get +inq on the queue, +put on targets (setmqaut, CHLAUTH)"},
	2036: {classFault, ""},
	2037: {classFault, ""},
	2041: {classReopen, adviceRemoved},
	2042: {classBusy, "another application has the queue open for exclusive input"},
	2045: {classFault, ""},
	2046: {classFault, ""},
	2048: {classConfig, "the target queue takes no persistent messages (it is temporary dynamic): send with NonPersistent"},
	2051: {classBusy, "the target queue is inhibited for writing: ALTER QLOCAL(...) PUT(ENABLED) lets it go on"},
	2052: {classReopen, adviceRemoved},
	2053: {classBusy, "the target queue is full: read it, or raise its MAXDEPTH"},
	2056: {classBusy, "no disk space for the target queue"},
	2057: {classConfig, "the object is of another type than the call needs"},
	2058: {classConfig, "the queue manager has another name: check Factory.QueueManager"},
	2059: {classStopping, adviceAway},
	2063: {classConfig, "security error: see AMQERR01.LOG of the queue manager"},
	2071: {classBusy, "out of memory"},
	2079: {classFault, ""},
	2080: {classTooBig, "raise Factory.BufferSize, and Factory.MaxMessageSize"},
	2082: {classConfig, "the base queue of the alias does not exist"},
	2085: {classConfig, "the queue does not exist on this queue manager: define it, or check its name"},
	2086: {classConfig, "the object's queue manager is not known"},
	2087: {classConfig, "the remote queue manager is not known"},
	2090: {classFault, ""},
	2101: {classConfig, "the object is damaged: see AMQERR01.LOG of the queue manager"},
	2102: {classBusy, "the queue manager is short of a resource, perhaps of log space"},
	2110: {classMessage, "the format cannot be converted"},
	2111: {classMessage, "the character set cannot be converted"},
	2115: {classMessage, "the character set cannot be converted"},
	2119: {classMessage, "the data could not be converted"},
	2120: {classMessage, "the converted data is too long"},
	2123: {classUnknown, ""},
	2124: {classUnknown, ""},
	2152: {classConfig, "the object's name is wrong"},
	2161: {classQuiescing, "the queue manager is quiescing"},
	2162: {classStopping, "the queue manager is stopping"},
	2189: {classBusy, "the cluster queue cannot be resolved now"},
	2190: {classMessage, "the string was cut when it was converted"},
	2192: {classBusy, "the disk of the queue manager is full"},
	2194: {classConfig, "the object's name is not valid"},
	2195: {classConnection, "unexpected error: see the FDC files"},
	2202: {classQuiescing, "the connection is quiescing"},
	2203: {classStopping, "the connection is stopping"},
	2206: {classFault, ""},
	2219: {classBusy, "another call was under way on the connection, as that of a finalizer of mq-golang-jms20 can be"},
	2222: {classStopping, adviceAway},
	2223: {classStopping, adviceAway},
	2277: {classConfig, "the channel definition is wrong"},
	2278: {classConfig, "the client connection's fields are wrong"},
	2362: {classMessage, "the backout threshold is reached"},
	2371: {classConfig, adviceTLS},
	2380: {classConfig, adviceTLS},
	2381: {classConfig, adviceTLS},
	2382: {classConfig, adviceTLS},
	2391: {classConfig, adviceTLS},
	2392: {classConfig, adviceTLS},
	2393: {classConfig, adviceTLS},
	2396: {classConfig, adviceTLS},
	2398: {classConfig, adviceTLS},
	2399: {classConfig, adviceTLS},
	2400: {classConfig, adviceTLS},
	2401: {classConfig, adviceTLS},
	2442: {classMessage, "the property's name is not allowed"},
	2460: {classHandle, ""},
	2465: {classMessage, "the property's name is too long"},
	2469: {classMessage, "mq-golang reads properties of up to 1024 bytes"},
	2471: {classEmpty, ""},
	2472: {classMessage, "the property's value has no such format"},
	2485: {classConfig, "MAXMSGL of the channel is too small"},
	2495: {classConfig, "a library of IBM's client is missing"},
	2499: {classFault, ""},
	2500: {classFault, ""},
	2537: {classBusy, adviceLimit},
	2538: {classStopping, adviceAway},
	2539: {classConfig, "the channel is not defined as a server-connection channel that fits this client"},
	2540: {classConfig, "the queue manager has no such server-connection channel: check Factory.Channel"},
	2543: {classStopping, "this is the standby instance; the next host of Factory.Connections is tried"},
	2544: {classStopping, ""},
	2545: {classStopping, ""},
	2546: {classStopping, ""},
	2547: {classStopping, ""},
	2548: {classStopping, ""},
	2549: {classConnection, "the call was interrupted"},
	2555: {classStopping, ""},
	2556: {classStopping, ""},
	2577: {classConfig, "a channel authentication rule blocks this client (CHLAUTH)"},
	2584: {classConfig, "the client is not privileged to do so"},
	2589: {classConfig, "IBM's client is not installed completely"},
	2591: {classConfig, adviceTLS},
	2592: {classConfig, adviceTLS},
	2593: {classConfig, adviceTLS},
	2594: {classConfig, "the password protection of client and queue manager do not fit"},
	2601: {classStopping, ""},
}

// codeOf finds the reason code in an error of mq-golang or mq-golang-jms20, which does not unwrap; 0 if there is none.
func codeOf(err error) int {
	if ret, ok := err.(*mqi.MQReturn); ok { // as it is for each message
		return int(ret.MQRC)
	}
	var ret *mqi.MQReturn
	if errors.As(err, &ret) {
		return int(ret.MQRC)
	}
	var ex jms20subset.JMSException
	if errors.As(err, &ex) {
		// One of its codes carries a tab, and some are names.
		if code, convErr := strconv.Atoi(strings.TrimSpace(ex.GetErrorCode())); convErr == nil {
			return code
		}
	}
	return 0
}

// failure is the ReasonError of a call that failed.
func failure(call, object string, err error) *ReasonError {
	e := &ReasonError{Code: codeOf(err), Call: call, Object: object}
	var ex jms20subset.JMSException
	switch {
	case e.Code > 2000:
		e.Name = mqi.MQItoString("RC", e.Code)
		if !strings.HasPrefix(e.Name, "MQRC") {
			e.Name = "an unknown reason code"
		}
	case errors.As(err, &ex):
		e.Name = strings.TrimSpace(ex.GetErrorCode() + " " + ex.GetReason())
	default:
		e.Name = err.Error()
	}
	return e
}

func (e *ReasonError) class() class { return reasons[e.Code].class }

// severed says that the connection handle is gone for certain. Other codes of classConnection leave room for a unit of work that is still open,
// and MQDISC would commit it.
func (e *ReasonError) severed() bool {
	return e.class() == classStopping || e.Code == 2009 || e.Code == 2018
}

// wrap puts a sentinel of package jms before a failure.
func wrap(sentinel error, queue string, err error) error {
	return fmt.Errorf("%w: ibmmq: queue %q: %w", sentinel, queue, err)
}

// onConnect is what a failure means while connecting or opening, where nothing is held yet.
func (e *ReasonError) onConnect() error {
	switch e.class() {
	case classConfig, classMessage, classFault:
		return jms.ErrConfig
	case classBusy:
		return jms.ErrBusy
	}
	return jms.ErrConnectionLost
}
