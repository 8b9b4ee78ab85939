package ibmmq

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/ibm-messaging/mq-golang-jms20/mqjms"

	"github.com/keyseq/keyseq/jms"
)

// Defaults and limits of a Factory.
const (
	// DefaultWaitSlice is how long one MQGET waits. Stop, Close and a context that ends are noticed after a slice.
	DefaultWaitSlice = 500 * time.Millisecond
	// MaxWaitSlice is the longest slice: mq-golang-jms20 stalls the finalizers of the process for so long.
	MaxWaitSlice = time.Second
	// DefaultHeartbeat is HBINT of a server-connection channel where nobody has changed it.
	DefaultHeartbeat = 300 * time.Second
	// DefaultBufferSize is what mq-golang-jms20 allocates for each receive, and for each slice that brought nothing.
	DefaultBufferSize = 32 << 10
	// DefaultMaxMessageSize is MAXMSGL of queues and channels where nobody has changed it.
	DefaultMaxMessageSize = 4 << 20
	// DefaultMaxChannels is MaxChannels of qm.ini where nobody has changed it.
	DefaultMaxChannels = 100
	// DefaultSharingConversations is SHARECNV of a server-connection channel where nobody has changed it.
	DefaultSharingConversations = 10
	// DefaultConnectTimeout bounds the connection of one session.
	DefaultConnectTimeout = 30 * time.Second
)

// Factory connects to a queue manager. Set QueueManager, Connections, Channel, User and Password; everything else is optional. It does no I/O
// before Connect, and its fields must not be changed once a SequenceManager has it. Connect reports every wrong field at once, as
// jms.ErrConfig.
type Factory struct {
	// QueueManager is its name, or "" for whatever answers at Connections.
	QueueManager string
	// Connections are host(port), tried in this order; several with commas, as in IBM's CONNAME: "mq1(1414),mq2(1414)".
	Connections string
	// Channel is the server-connection channel.
	Channel string
	// User and Password go into MQCSP; "": the channel decides who this is. They never appear in errors or logs.
	User, Password string
	// Bindings connects to a queue manager on this machine, without Connections, Channel and TLS.
	Bindings bool
	// TLSCipher is a CipherSpec, for example ANY_TLS12_OR_HIGHER; "": no TLS.
	TLSCipher string
	// KeyRepository is the key database, without its extension; CertificateLabel the client's certificate in it. IBM's client has one TLS
	// configuration in a process: the first connection's.
	KeyRepository, CertificateLabel string
	// ApplicationName is shown by the queue manager's tools (APPLTAG, at most 28 characters); "": the Client of the subscription.
	// The connection that holds the lock queue appends " control".
	ApplicationName string

	// BufferSize is what is allocated for every MQGET: 1 KiB to MaxMessageSize. 0: DefaultBufferSize. A message that is larger makes the
	// session connect anew with a bigger buffer, which it keeps; set it to what most messages fit into.
	BufferSize int
	// MaxMessageSize bounds that growth: up to 100 MiB. 0: DefaultMaxMessageSize. A larger message cannot be passed over without breaking
	// the order, so it ends the run with jms.ErrConfig. MAXMSGL of the channel must not be less.
	MaxMessageSize int
	// WaitSlice is how long one MQGET waits: 1 ms to MaxWaitSlice. 0: DefaultWaitSlice.
	WaitSlice time.Duration
	// Heartbeat is HBINT of the channel, in whole seconds: what the queue manager needs to notice a dead client, and so ReturnDelay, follow from
	// it: 3 heartbeats, or one and 60 s where that is less. 0: DefaultHeartbeat, 6 minutes in all. It is not asked of the
	// channel: the longer of both ends wins, and mq-golang always asks for 1 s. Set HBINT(5) on the channel and 5 s here. With
	// HBINT(0) set Config.ReturnDelay.
	Heartbeat time.Duration
	// MaxChannels times SharingConversations is how many connections this program may open; the most messages in flight follow from it.
	// 0: DefaultMaxChannels and DefaultSharingConversations. SharingConversations is also asked of the channel (SHARECNV, at most 999).
	MaxChannels, SharingConversations int
	// LockQueue makes the single active consumer: an instance is active while it has this queue open for exclusive input. "": the name of the
	// queue with ".LOCK". Define it once: DEFINE QLOCAL('...') NOSHARE DEFSOPT(EXCL). Nobody else may use it. It keeps one
	// message while nobody is active after an orderly end.
	LockQueue string
	// ConnectTimeout bounds one connection. 0: DefaultConnectTimeout. IBM's client cannot be interrupted: an attempt that takes longer
	// goes on in the background, and what it connects is closed.
	ConnectTimeout time.Duration
	// NoTraceHook leaves mq-golang's OpenTelemetry functions alone; see the package documentation.
	NoTraceHook bool

	clientAuth string // as mq-golang-jms20 has it
	problem    error  // of a constructor, reported by Connect
}

var _ jms.ConnectionFactory = (*Factory)(nil)

// FromJMS20 makes a Factory of mq-golang-jms20's connection factory. The functions may set what that does not have:
//
//	ibmmq.FromJMS20(cf, func(f *ibmmq.Factory) { f.Heartbeat = 5 * time.Second })
func FromJMS20[CF mqjms.ConnectionFactoryImpl | *mqjms.ConnectionFactoryImpl](cf CF, configure ...func(*Factory)) *Factory {
	f := &Factory{}
	switch given := any(cf).(type) {
	case mqjms.ConnectionFactoryImpl:
		f.take(given)
	case *mqjms.ConnectionFactoryImpl:
		if given == nil {
			f.problem = fmt.Errorf("%w: ibmmq: the connection factory given to FromJMS20 is nil", jms.ErrConfig)
		} else {
			f.take(*given)
		}
	}
	for _, c := range configure {
		c(f)
	}
	return f
}

func (f *Factory) take(cf mqjms.ConnectionFactoryImpl) {
	f.QueueManager, f.Channel, f.User, f.Password = cf.QMName, cf.ChannelName, cf.UserName, cf.Password
	if cf.Hostname != "" || cf.PortNumber != 0 {
		f.Connections = cf.Hostname + "(" + strconv.Itoa(cf.PortNumber) + ")"
	}
	f.Bindings = cf.TransportType == mqjms.TransportType_BINDINGS
	f.TLSCipher, f.KeyRepository, f.CertificateLabel = cf.TLSCipherSpec, cf.KeyRepository, cf.CertificateLabel
	f.ApplicationName, f.BufferSize, f.clientAuth = cf.ApplName, cf.ReceiveBufferSize, cf.TLSClientAuth
}

// FromJSON makes a Factory of the two files that mq-golang-jms20 reads; "" is its default for each: connection_info.json and
// applicationApiKey.json in $HOME/Downloads.
func FromJSON(connectionInfo, apiKey string, configure ...func(*Factory)) (*Factory, error) {
	cf, err := mqjms.CreateConnectionFactoryFromJSON(connectionInfo, apiKey)
	if err != nil {
		return nil, fmt.Errorf("%w: ibmmq: the files of the connection: %w", jms.ErrConfig, err)
	}
	return FromJMS20(cf, configure...), nil
}

// FromEnvironment makes a Factory of MQ_QUEUE_MANAGER, MQ_CONNECTIONS, MQ_CHANNEL, MQ_USER, MQ_PASSWORD, MQ_TLS_CIPHER, MQ_KEY_REPOSITORY,
// MQ_CERTIFICATE_LABEL, MQ_APPLICATION_NAME, MQ_LOCK_QUEUE (text), MQ_HEARTBEAT (a duration: 5s), MQ_BUFFER_SIZE, MQ_MAX_MESSAGE_SIZE,
// MQ_MAX_CHANNELS and MQ_SHARING_CONVERSATIONS (numbers). What is not set is left at its default. All that cannot be read is
// reported at once.
func FromEnvironment(configure ...func(*Factory)) (*Factory, error) {
	f := &Factory{}
	for name, to := range map[string]*string{
		"MQ_QUEUE_MANAGER": &f.QueueManager, "MQ_CONNECTIONS": &f.Connections, "MQ_CHANNEL": &f.Channel, "MQ_USER": &f.User,
		"MQ_PASSWORD": &f.Password, "MQ_TLS_CIPHER": &f.TLSCipher, "MQ_KEY_REPOSITORY": &f.KeyRepository,
		"MQ_CERTIFICATE_LABEL": &f.CertificateLabel, "MQ_APPLICATION_NAME": &f.ApplicationName, "MQ_LOCK_QUEUE": &f.LockQueue,
	} {
		*to = os.Getenv(name)
	}
	var wrong []string
	for name, to := range map[string]*int{
		"MQ_BUFFER_SIZE": &f.BufferSize, "MQ_MAX_MESSAGE_SIZE": &f.MaxMessageSize, "MQ_MAX_CHANNELS": &f.MaxChannels,
		"MQ_SHARING_CONVERSATIONS": &f.SharingConversations,
	} {
		if text := os.Getenv(name); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil {
				wrong = append(wrong, name+" is no number")
			}
			*to = n
		}
	}
	if text := os.Getenv("MQ_HEARTBEAT"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			wrong = append(wrong, "MQ_HEARTBEAT is no duration such as 5s")
		}
		f.Heartbeat = d
	}
	if len(wrong) > 0 {
		return nil, fmt.Errorf("%w: ibmmq: environment: %s", jms.ErrConfig, strings.Join(wrong, "; "))
	}
	for _, c := range configure {
		c(f)
	}
	return f, nil
}

// Connect implements jms.ConnectionFactory. It opens the control connection; a queue that is opened exclusively by default (NOSHARE or
// DEFSOPT(EXCL)) is refused, because a session could not read it beside another.
func (f *Factory) Connect(ctx context.Context, sub jms.Subscription) (jms.Connection, error) {
	s, err := f.settings(sub)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !s.noHook {
		installHook()
	}
	return connect(ctx, s)
}
