package ibmmq

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/ibm-messaging/mq-golang-jms20/jms20subset"
	"github.com/ibm-messaging/mq-golang-jms20/mqjms"
	mqi "github.com/ibm-messaging/mq-golang/v5/ibmmq"

	"github.com/keyseq/keyseq/jms"
)

const (
	maxName        = 48        // of a queue or queue manager
	maxChannelName = 20        // of a channel
	maxApplication = 28        // of an application tag
	maxConnections = 264       // of a list of host(port), with its commas
	maxCipher      = 32        // of a CipherSpec
	maxRepository  = 256       // of the path of a key database
	maxLabel       = 64        // of a certificate label
	maxMessage     = 100 << 20 // the largest that a queue manager allows
	controlSuffix  = " control"
	lockSuffix     = ".LOCK"
)

// settings are a Factory and a Subscription, checked and complete.
type settings struct {
	cf            mqjms.ConnectionFactoryImpl
	connections   string // as IBM's CONNAME
	application   string
	heartbeat     time.Duration
	sharing       int
	maxSessions   int
	maxMessage    int
	buffer        int
	slice         time.Duration
	connectWithin time.Duration
	lockQueue     string // "": no single active consumer
	noHook        bool
	sub           jms.Subscription
}

var objectName = regexp.MustCompile(`^[A-Za-z0-9./_%]+$`)

// checkName says what is wrong with the name of a queue, queue manager or channel: longer ones would be cut in silence.
func checkName(what, name string, most int) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: ibmmq: %s has no name", jms.ErrConfig, what)
	case len(name) > most:
		return fmt.Errorf("%w: ibmmq: %s %q has %d characters: IBM MQ allows %d", jms.ErrConfig, what, name, len(name), most)
	case !objectName.MatchString(name):
		return fmt.Errorf("%w: ibmmq: %s %q: IBM MQ allows letters, digits, and . / _ %% in a name", jms.ErrConfig, what, name)
	}
	return nil
}

// settings checks everything that can be checked without the queue manager and reports all problems together.
func (f *Factory) settings(sub jms.Subscription) (*settings, error) {
	if f.problem != nil {
		return nil, f.problem
	}
	var problems []error
	wrong := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("%w: ibmmq: "+format, append([]any{jms.ErrConfig}, args...)...))
	}
	name := func(what, name string, most int) {
		if err := checkName(what, name, most); err != nil {
			problems = append(problems, err)
		}
	}
	s := &settings{
		application: cmp.Or(f.ApplicationName, sub.Client, "keyseq"), heartbeat: cmp.Or(f.Heartbeat, DefaultHeartbeat),
		sharing: cmp.Or(f.SharingConversations, DefaultSharingConversations), maxMessage: cmp.Or(f.MaxMessageSize, DefaultMaxMessageSize),
		slice: cmp.Or(f.WaitSlice, DefaultWaitSlice), connectWithin: cmp.Or(f.ConnectTimeout, DefaultConnectTimeout), noHook: f.NoTraceHook, sub: sub,
	}
	s.buffer = cmp.Or(f.BufferSize, min(DefaultBufferSize, s.maxMessage))
	name("the queue", sub.Queue, maxName)
	if f.QueueManager != "" {
		name("Factory.QueueManager", f.QueueManager, maxName)
	}
	s.connections = strings.ReplaceAll(f.Connections, " ", "")
	if !f.Bindings {
		name("Factory.Channel", f.Channel, maxChannelName)
		for _, c := range strings.Split(s.connections, ",") {
			if host, port, ok := strings.Cut(c, "("); !ok || host == "" || !strings.HasSuffix(port, ")") || !isPort(strings.TrimSuffix(port, ")")) {
				wrong("Factory.Connections has %q: write host(port), several with commas", c)
			}
		}
	}
	for _, x := range []struct {
		field, value string
		most         int
	}{{"Connections", s.connections, maxConnections}, {"TLSCipher", f.TLSCipher, maxCipher}, {"KeyRepository", f.KeyRepository, maxRepository}, {"CertificateLabel", f.CertificateLabel, maxLabel}} {
		if len(x.value) > x.most {
			wrong("Factory.%s has %d characters: IBM MQ allows %d, and would cut it", x.field, len(x.value), x.most)
		}
	}
	if f.Password != "" && f.User == "" {
		wrong("Factory.Password is set without Factory.User")
	}
	if f.KeyRepository != "" && f.TLSCipher == "" {
		wrong("Factory.KeyRepository is set without Factory.TLSCipher: the connection would not be encrypted")
	}
	if len(s.application) > maxApplication {
		s.application = s.application[:maxApplication]
	}
	if s.maxMessage < 1<<10 || s.maxMessage > maxMessage {
		wrong("Factory.MaxMessageSize is %d: must be 1 KiB to 100 MiB", s.maxMessage)
	}
	if s.buffer < 1<<10 || s.buffer > s.maxMessage {
		wrong("Factory.BufferSize is %d: must be 1 KiB to MaxMessageSize (%d)", s.buffer, s.maxMessage)
	}
	if s.slice < time.Millisecond || s.slice > MaxWaitSlice {
		wrong("Factory.WaitSlice is %v: must be 1 ms to %v", s.slice, MaxWaitSlice)
	}
	if s.heartbeat < time.Second || s.heartbeat%time.Second != 0 || s.heartbeat > 999999*time.Second {
		wrong("Factory.Heartbeat is %v: must be whole seconds, as HBINT is", s.heartbeat)
	}
	if s.sharing < 1 || s.sharing > 999 {
		wrong("Factory.SharingConversations is %d: must be 1 to 999", s.sharing)
	}
	if channels := cmp.Or(f.MaxChannels, DefaultMaxChannels); channels < 1 || channels > 65535 {
		wrong("Factory.MaxChannels is %d: must be 1 to 65535", channels)
	} else if s.maxSessions = channels*s.sharing - 1; s.maxSessions < 1 {
		wrong("MaxChannels 1 with SharingConversations 1 leaves no connection for a session beside the control connection")
	}
	if s.connectWithin < 10*time.Millisecond {
		wrong("Factory.ConnectTimeout is %v: must be 10 ms or more", s.connectWithin)
	}
	if sub.SingleActiveConsumer {
		s.lockQueue = cmp.Or(f.LockQueue, sub.Queue+lockSuffix)
		name("Factory.LockQueue", s.lockQueue, maxName)
		if s.lockQueue == sub.Queue {
			wrong("Factory.LockQueue is the queue that is read: define another one")
		}
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	s.cf = mqjms.ConnectionFactoryImpl{
		QMName: f.QueueManager, ChannelName: f.Channel, UserName: f.User, Password: f.Password, TLSCipherSpec: f.TLSCipher,
		TLSClientAuth: f.clientAuth, KeyRepository: f.KeyRepository, CertificateLabel: f.CertificateLabel, ApplName: s.application,
	}
	if f.Bindings {
		s.cf.TransportType = mqjms.TransportType_BINDINGS
	}
	return s, nil
}

func isPort(text string) bool {
	n, err := strconv.Atoi(text)
	return err == nil && n > 0 && n < 65536
}

// returnDelay is how long the queue manager may need to notice that a client is dead. IBM documents for channels that a silent partner is
// given up after twice the heartbeat below 60 s, else after the heartbeat and 60 s. A short heartbeat gets one more for the
// one under way.
func (s *settings) returnDelay() time.Duration { return min(3*s.heartbeat, s.heartbeat+time.Minute) }

// option is what mq-golang-jms20 has no field for.
func (s *settings) option(cno *mqi.MQCNO) {
	// A reconnection behind our back would hide that units of work were backed out.
	cno.Options = cno.Options&^(mqi.MQCNO_RECONNECT|mqi.MQCNO_RECONNECT_Q_MGR|mqi.MQCNO_RECONNECT_AS_DEF) | mqi.MQCNO_RECONNECT_DISABLED
	if cd := cno.ClientConn; cd != nil {
		cd.ConnectionName = s.connections
		cd.SharingConversations = int32(s.sharing)
		cd.MaxMsgLength = int32(s.maxMessage)
		cd.CertificateLabel = s.cf.CertificateLabel
	}
	// mq-golang-jms20 takes the warning that the process has its TLS configuration already for a failure. The control
	// connection has set it.
	cno.SSLConfig = nil
}

// context opens a transacted context with a buffer of that size.
func (s *settings) context(buffer int) (jms20subset.JMSContext, jms20subset.JMSException) {
	cf := s.cf
	cf.ReceiveBufferSize = buffer
	return cf.CreateContextWithSessionMode(jms20subset.JMSContextSESSIONTRANSACTED, s.option)
}

// control is the description of the control connection.
func (s *settings) control() *mqi.MQCNO {
	cno := mqi.NewMQCNO()
	name := s.application
	if most := maxApplication - len(controlSuffix); len(name) > most {
		name = name[:most]
	}
	cno.ApplName = name + controlSuffix
	if s.cf.TransportType == mqjms.TransportType_BINDINGS {
		cno.Options = mqi.MQCNO_LOCAL_BINDING
	} else {
		cno.Options = mqi.MQCNO_CLIENT_BINDING
		cd := mqi.NewMQCD()
		cd.ChannelName, cd.SSLCipherSpec = s.cf.ChannelName, s.cf.TLSCipherSpec
		cno.ClientConn = cd
	}
	if s.cf.UserName != "" {
		csp := mqi.NewMQCSP()
		csp.AuthenticationType, csp.UserId, csp.Password = mqi.MQCSP_AUTH_USER_ID_AND_PWD, s.cf.UserName, s.cf.Password
		cno.SecurityParms = csp
	}
	s.option(cno)
	if s.cf.KeyRepository != "" {
		sco := mqi.NewMQSCO()
		sco.KeyRepository, sco.CertificateLabel = s.cf.KeyRepository, s.cf.CertificateLabel
		cno.SSLConfig = sco
	}
	return cno
}
