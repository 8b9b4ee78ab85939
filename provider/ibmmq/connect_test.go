package ibmmq_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ibm-messaging/mq-golang-jms20/mqjms"

	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/ibmmq"
)

// All wrong settings are reported at once, before any I/O.
func TestWrongSettings(t *testing.T) {
	f := &ibmmq.Factory{
		QueueManager: strings.Repeat("Q", 49), Connections: "host", Password: "x", KeyRepository: "/k", BufferSize: 10, WaitSlice: time.Minute,
		Heartbeat: 1500 * time.Millisecond, SharingConversations: 1000, MaxChannels: -1, MaxMessageSize: 1 << 30, ConnectTimeout: time.Millisecond,
		LockQueue: "my lock",
	}
	_, err := f.Connect(t.Context(), jms.Subscription{Queue: "a b", SingleActiveConsumer: true, Logger: slog.New(slog.DiscardHandler)})
	if !errors.Is(err, jms.ErrConfig) {
		t.Fatalf("Connect = %v", err)
	}
	for _, name := range []string{"QueueManager", "Connections", "Channel", "Password", "KeyRepository", "BufferSize", "WaitSlice", "Heartbeat",
		"SharingConversations", "MaxChannels", "MaxMessageSize", "ConnectTimeout", "LockQueue", `"a b"`} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%v\ndoes not name %s", err, name)
		}
	}
}

// What IBM's client would cut in silence is refused.
func TestSettingsThatWouldBeCut(t *testing.T) {
	f := &ibmmq.Factory{
		Channel: "C", Connections: strings.Repeat("host1(1414),", 22) + "host2(1414)", TLSCipher: strings.Repeat("C", 33), KeyRepository: "/" + strings.Repeat("k", 256),
		CertificateLabel: strings.Repeat("l", 65),
	}
	_, err := f.Connect(t.Context(), jms.Subscription{Queue: "Q", Logger: slog.New(slog.DiscardHandler)})
	if !errors.Is(err, jms.ErrConfig) {
		t.Fatalf("Connect = %v", err)
	}
	for _, name := range []string{"Connections has 275", "TLSCipher has 33", "KeyRepository has 257", "CertificateLabel has 65"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%v\ndoes not say that Factory.%s characters", err, name)
		}
	}
}

// Each reason code that connecting or opening can give.
func TestConnectReasons(t *testing.T) {
	for _, x := range []struct {
		code     int
		sentinel error
		name     string
	}{
		{2035, jms.ErrConfig, "authority"}, {2058, jms.ErrConfig, "QueueManager"}, {2063, jms.ErrConfig, ""}, {2540, jms.ErrConfig, "Channel"},
		{2539, jms.ErrConfig, ""}, {2577, jms.ErrConfig, "CHLAUTH"}, {2393, jms.ErrConfig, "AMQERR01.LOG"}, {2397, jms.ErrConnectionLost, ""},
		{2400, jms.ErrConfig, "TLS"}, {2277, jms.ErrConfig, ""}, {2495, jms.ErrConfig, ""}, {2537, jms.ErrBusy, "MaxChannels"},
		{2025, jms.ErrBusy, "MAXINST"}, {2059, jms.ErrConnectionLost, ""}, {2538, jms.ErrConnectionLost, ""}, {2543, jms.ErrConnectionLost, ""},
		{2161, jms.ErrConnectionLost, ""}, {2203, jms.ErrConnectionLost, ""}, {2195, jms.ErrConnectionLost, ""}, {2777, jms.ErrConnectionLost, ""},
	} {
		b := newBench(t)
		b.needsControls()
		b.fail("MQCONNX", x.code, 1)
		_, err := b.tryConnect(b.factory(), jms.Subscription{})
		b.is(err, x.sentinel, b.queue, x.name)
		if strings.Contains(err.Error(), "passw0rd") {
			t.Errorf("the error tells the password: %v", err)
		}
	}
}

// A session that cannot be had is no loss while the control connection stands: the others go on.
func TestOpenSessionReasons(t *testing.T) {
	for _, x := range []struct {
		call     string
		code     int
		sentinel error
	}{
		{"MQCONNX", 2537, jms.ErrBusy}, {"MQCONNX", 2025, jms.ErrBusy}, {"MQCONNX", 2538, jms.ErrBusy}, {"MQCONNX", 2059, jms.ErrBusy},
		{"MQCONNX", 2009, jms.ErrBusy}, {"MQCONNX", 2035, jms.ErrConfig}, {"MQOPEN", 2085, jms.ErrConfig}, {"MQOPEN", 2042, jms.ErrBusy},
		{"MQOPEN", 2025, jms.ErrBusy},
	} {
		b := newBench(t)
		b.needsControls()
		c := b.connect(b.factory(), jms.Subscription{})
		open := b.connected()
		b.fail(x.call, x.code, 3) // a shorter moment passes unnoticed
		_, err := c.OpenSession(t.Context())
		b.is(err, x.sentinel, b.queue)
		if n := b.connected(); n != open {
			t.Errorf("%s %d: %d connections are open, want %d", x.call, x.code, n, open)
		}
		if x.sentinel == jms.ErrConfig { // told at once: two failures are left
			continue
		}
		b.fail(x.call, x.code, 1)
		b.session(c)
	}
}

// One session whose connecting hangs is no loss of the others either, and what it connects late is closed.
func TestOpenSessionIsBounded(t *testing.T) {
	for name, done := range map[string]bool{"on the way": false, "on the way back": true} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.needsControls()
			c := b.connect(b.factory(func(f *ibmmq.Factory) { f.ConnectTimeout = 200 * time.Millisecond }), jms.Subscription{})
			other := b.session(c)
			open := b.connected()
			b.hold("MQCONNX", done)
			_, err := c.OpenSession(t.Context())
			b.is(err, jms.ErrBusy, "in time", b.queue)
			b.release()
			b.soon("the late connection is closed", func() bool { return b.connected() == open })
			b.send(b.queue, "1")
			b.receive(other)
			b.session(c)
		})
	}
}

// When as many connects hang as are made side by side, another does not wait for them longer than for itself.
func TestOpenSessionBehindThoseThatHang(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	c := b.connect(b.factory(func(f *ibmmq.Factory) { f.ConnectTimeout = 200 * time.Millisecond }), jms.Subscription{})
	open := b.connected()
	b.hold("MQCONNX", false)
	for range 6 {
		opened := make(chan error, 1)
		go func() {
			_, err := c.OpenSession(t.Context())
			opened <- err
		}()
		b.is(took(b, "OpenSession returns", opened), jms.ErrBusy, "in time", b.queue)
	}
	b.release()
	b.soon("the late connections are closed", func() bool { return b.connected() == open })
	b.session(c)
}

// A code of configuration says nothing when the control connection, made with the same settings, is gone: that is a loss, after which connecting
// is tried again.
func TestOpenSessionAfterTheControlConnectionIsGone(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	c := b.connect(b.factory(), jms.Subscription{Client: "gone"})
	b.breakName("gone", true)
	b.fail("MQCONNX", 2381, 1)
	_, err := c.OpenSession(t.Context())
	b.is(err, jms.ErrConnectionLost, b.queue)
}

func TestUnknownQueue(t *testing.T) {
	b := newBench(t)
	_, err := b.tryConnect(b.factory(), jms.Subscription{Queue: b.unknown})
	b.is(err, jms.ErrConfig, b.unknown, "2085", "MQRC_UNKNOWN_OBJECT_NAME")
}

func TestWrongPassword(t *testing.T) {
	b := newBench(t)
	_, err := b.tryConnect(b.factory(func(f *ibmmq.Factory) { f.Password = "wrong-secret" }), jms.Subscription{})
	b.is(err, jms.ErrConfig, "2035")
	if strings.Contains(err.Error(), "wrong-secret") {
		t.Errorf("the error tells the password: %v", err)
	}
}

// A queue that one session alone could open is refused at once (2042 would come with the second session).
func TestExclusiveQueueIsRefused(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	b.define("NOSHARE.Q:noshare,EXCL.Q:excl")
	_, err := b.tryConnect(b.factory(), jms.Subscription{Queue: "NOSHARE.Q"})
	b.is(err, jms.ErrConfig, "NOSHARE", "ALTER QLOCAL")
	_, err = b.tryConnect(b.factory(), jms.Subscription{Queue: "EXCL.Q"})
	b.is(err, jms.ErrConfig, "DEFSOPT(SHARED)")
}

// Without authority to inquire the queue is read all the same; nothing is known of its backout rule.
func TestNoAuthorityToInquire(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	b.define(b.queue + ":auth=gp")
	b.send(b.queue, "1")
	c := b.connect(b.factory(), jms.Subscription{})
	if q, n, err := c.(jms.Inquirer).Backout(t.Context()); q != "" || n != 0 || err != nil {
		t.Errorf("Backout = %q, %d, %v", q, n, err)
	}
	if clean, err := c.(jms.CleanStarter).CleanStart(t.Context()); clean || err == nil {
		t.Errorf("CleanStart = %t, %v", clean, err)
	}
	if m := b.receive(b.session(c)); string(m.Body) != "1" {
		t.Errorf("received %s", m.Body)
	}
}

func TestBackoutRule(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	c := b.connect(b.factory(), jms.Subscription{})
	if q, n, err := c.(jms.Inquirer).Backout(t.Context()); q != b.other || n != 3 || err != nil {
		t.Errorf("Backout = %q, %d, %v; want BOQNAME %s and BOTHRESH 3", q, n, err, b.other)
	}
}

// What the queue manager does not say at this moment is not taken for a queue without a backout rule, whose dead letters would stop the run.
func TestBackoutRuleIsAskedAgain(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	c := b.connect(b.factory(), jms.Subscription{})
	b.fail("MQINQ", 2102, 1)
	if q, _, err := c.(jms.Inquirer).Backout(t.Context()); err == nil {
		t.Errorf("Backout = %q while the queue manager is short of a resource", q)
	}
	if q, n, err := c.(jms.Inquirer).Backout(t.Context()); q != b.other || n != 3 || err != nil {
		t.Errorf("Backout = %q, %d, %v; want BOQNAME %s and BOTHRESH 3", q, n, err, b.other)
	}
	b.fail("MQINQ", 2068, 1) // an alias
	if q, _, err := c.(jms.Inquirer).Backout(t.Context()); q != "" || err != nil {
		t.Errorf("Backout = %q, %v of an alias", q, err)
	}
}

// The count of open handles of a shared queue (z/OS) does not include those at other queue managers of its group: no clean start.
func TestSharedQueueIsNoCleanStart(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	b.define(b.queue + ":qsgshared")
	c := b.connect(b.factory(), jms.Subscription{})
	if clean, err := c.(jms.CleanStarter).CleanStart(t.Context()); clean || err != nil {
		t.Errorf("CleanStart = %t, %v", clean, err)
	}
}

// A connect that hangs ends with its context, and what it connects late is closed.
func TestConnectIsBounded(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	before := b.connected()
	b.hold("MQCONNX", false)
	f := b.factory(func(f *ibmmq.Factory) { f.ConnectTimeout = 200 * time.Millisecond })
	began := time.Now()
	_, err := b.tryConnect(f, jms.Subscription{})
	b.is(err, jms.ErrConnectionLost, "in time")
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("Connect took %v", took)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := b.factory().Connect(ctx, jms.Subscription{Queue: b.queue, Logger: slog.New(slog.DiscardHandler)}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Connect = %v", err)
	}
	b.release()
	b.soon("the late connections are closed", func() bool { return b.connected() <= before })
}

// The three ways to a factory lead to the same queue manager.
func TestConstructors(t *testing.T) {
	b := newBench(t)
	given := b.factory()
	host, port, _ := strings.Cut(strings.TrimSuffix(given.Connections, ")"), "(")
	cf := mqjms.ConnectionFactoryImpl{QMName: given.QueueManager, Hostname: host, ChannelName: given.Channel, UserName: given.User, Password: given.Password, ApplName: "test"}
	for _, d := range port {
		cf.PortNumber = 10*cf.PortNumber + int(d-'0')
	}
	info := filepath.Join(t.TempDir(), "connection_info.json")
	key := filepath.Join(t.TempDir(), "applicationApiKey.json")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(info, `{"queueManagerName":"`+given.QueueManager+`","hostname":"`+host+`","listenerPort":`+port+`,"applicationChannelName":"`+given.Channel+`"}`)
	write(key, `{"mqUsername":"`+given.User+`","apiKey":"`+given.Password+`"}`)
	fromJSON, err := ibmmq.FromJSON(info, key)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"MQ_QUEUE_MANAGER": given.QueueManager, "MQ_CONNECTIONS": given.Connections, "MQ_CHANNEL": given.Channel,
		"MQ_USER": given.User, "MQ_PASSWORD": given.Password, "MQ_HEARTBEAT": "5s", "MQ_MAX_CHANNELS": "20"} {
		t.Setenv(name, value)
	}
	fromEnvironment, err := ibmmq.FromEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]*ibmmq.Factory{"value": ibmmq.FromJMS20(cf), "pointer": ibmmq.FromJMS20(&cf), "JSON": fromJSON, "environment": fromEnvironment} {
		caps := b.connect(f, jms.Subscription{}).Capabilities()
		delay, most := 6*time.Minute, 999
		if name == "environment" {
			delay, most = 15*time.Second, 199
		}
		if caps.ReturnDelay != delay || caps.MaxInFlight != most || caps.CheapSessions {
			t.Errorf("%s: %+v; want ReturnDelay %v and MaxInFlight %d", name, caps, delay, most)
		}
	}
	_, err = ibmmq.FromJMS20[*mqjms.ConnectionFactoryImpl](nil).Connect(t.Context(), jms.Subscription{Queue: b.queue})
	b.is(err, jms.ErrConfig, "nil")
	t.Setenv("MQ_HEARTBEAT", "5")
	t.Setenv("MQ_BUFFER_SIZE", "big")
	_, err = ibmmq.FromEnvironment()
	b.is(err, jms.ErrConfig, "MQ_HEARTBEAT", "MQ_BUFFER_SIZE")
	_, err = ibmmq.FromJSON(filepath.Join(t.TempDir(), "missing"), "")
	b.is(err, jms.ErrConfig)
}

// ReturnDelay follows from the heartbeat.
func TestReturnDelay(t *testing.T) {
	b := newBench(t)
	for heartbeat, want := range map[time.Duration]time.Duration{0: 6 * time.Minute, time.Second: 3 * time.Second, 5 * time.Second: 15 * time.Second,
		30 * time.Second: 90 * time.Second, time.Minute: 2 * time.Minute} {
		c := b.connect(b.factory(func(f *ibmmq.Factory) { f.Heartbeat = heartbeat }), jms.Subscription{})
		if got := c.Capabilities().ReturnDelay; got != want {
			t.Errorf("heartbeat %v: ReturnDelay %v, want %v", heartbeat, got, want)
		}
		_ = c.Close(t.Context())
	}
}
