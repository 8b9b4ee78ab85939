package ibmmq_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	mqi "github.com/ibm-messaging/mq-golang/v5/ibmmq"

	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/orderaudit"
	"github.com/keyseq/keyseq/provider/ibmmq"
)

// What TLS does on the wire only IBM's client can show. Here: what it is asked for, field by field, and what becomes of its answers.

func encrypted(f *ibmmq.Factory) {
	f.TLSCipher, f.KeyRepository, f.CertificateLabel = "ANY_TLS12_OR_HIGHER", "/var/keys/payments", "payments"
}

// MQSCO, MQCD and MQCSP are filled as IBM documents them: the key repository once for the process, by the control connection; cipher and
// certificate on each connection; user and password in MQCSP, the old fields of MQCD not used; no automatic reconnection.
func TestTLSSettingsReachIBMsClient(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	f := b.factory(encrypted, func(f *ibmmq.Factory) { f.SharingConversations, f.MaxMessageSize = 7, 1<<20 })
	b.session(b.connect(f, jms.Subscription{Client: "tls"}))
	both := map[string]string{
		"MQCD.ChannelName": f.Channel, "MQCD.ConnectionName": f.Connections, "MQCD.SSLCipherSpec": "ANY_TLS12_OR_HIGHER",
		"MQCD.CertificateLabel": "payments", "MQCD.SharingConversations": "7", "MQCD.MaxMsgLength": strconv.Itoa(1 << 20),
		"MQCD.HeartbeatInterval": "1", // mq-golang's, whatever Factory.Heartbeat says: the channel's is longer and wins
		"MQCSP.CSPUserId":        f.User, "MQCSP.CSPPassword": f.Password, "MQCSP.AuthenticationType": fmt.Sprint(mqi.MQCSP_AUTH_USER_ID_AND_PWD),
	}
	control := map[string]string{"MQSCO.KeyRepository": "/var/keys/payments", "MQSCO.CertificateLabel": "payments"}
	check := func(application string, want map[string]string) {
		t.Helper()
		got := b.passed(application)
		for name, value := range want {
			if got[name] != value {
				t.Errorf("%s of %q is %q, want %q", name, application, got[name], value)
			}
		}
		options, err := strconv.Atoi(got["MQCNO.Options"])
		if err != nil || int32(options)&mqi.MQCNO_RECONNECT_DISABLED == 0 || int32(options)&mqi.MQCNO_CLIENT_BINDING == 0 {
			t.Errorf("the options of %q are %x, %v", application, options, err)
		}
	}
	check("tls control", both)
	check("tls control", control)
	check("tls", both)
	for name := range b.passed("tls") {
		if strings.HasPrefix(name, "MQSCO.") { // would give 2391, which mq-golang-jms20 takes for a failure
			t.Errorf("a session passed %s", name)
		}
	}
}

// Without TLS nothing of it is passed, and no user without one.
func TestNoTLSUnlessAskedFor(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	b.session(b.connect(b.factory(func(f *ibmmq.Factory) { f.User, f.Password = "", "" }), jms.Subscription{Client: "plain"}))
	for _, application := range []string{"plain", "plain control"} {
		got := b.passed(application)
		if got["MQCD.SSLCipherSpec"] != "" || got["MQCD.CertificateLabel"] != "" {
			t.Errorf("%q passed a cipher %q and a certificate %q", application, got["MQCD.SSLCipherSpec"], got["MQCD.CertificateLabel"])
		}
		for name := range got {
			if strings.HasPrefix(name, "MQSCO.") || strings.HasPrefix(name, "MQCSP.") {
				t.Errorf("%q passed %s", application, name)
			}
		}
	}
}

// A cipher without a key repository anywhere is a matter of configuration (2381), said with what to look at.
func TestTLSWithoutAKeyRepository(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	t.Setenv("MQSSLKEYR", "")
	_, err := b.tryConnect(b.factory(func(f *ibmmq.Factory) { f.TLSCipher = "ANY_TLS12_OR_HIGHER" }), jms.Subscription{})
	b.is(err, jms.ErrConfig, "2381", "MQRC_KEY_REPOSITORY_ERROR", "AMQERR01.LOG")
}

// Each reason code of TLS that connecting can give ends the run at once, with its name and what to look at.
func TestTLSReasons(t *testing.T) {
	for code, name := range map[int]string{
		2371: "MQRC_CHANNEL_SSL_ERROR", 2380: "MQRC_SCO_ERROR", 2381: "MQRC_KEY_REPOSITORY_ERROR", 2382: "MQRC_CRYPTO_HARDWARE_ERROR",
		2391: "MQRC_SSL_ALREADY_INITIALIZED", 2392: "MQRC_SSL_CONFIG_ERROR", 2398: "MQRC_SSL_PEER_NAME_MISMATCH", 2591: "MQRC_CIPHER_SPEC_NOT_SUITE_B",
		2393: "MQRC_SSL_INITIALIZATION_ERROR", 2396: "MQRC_SSL_NOT_ALLOWED", 2399: "MQRC_SSL_PEER_NAME_ERROR",
		2400: "MQRC_UNSUPPORTED_CIPHER_SUITE", 2401: "MQRC_SSL_CERTIFICATE_REVOKED",
	} {
		b := newBench(t)
		b.needsControls()
		before := b.connected()
		b.fail("MQCONNX", code, 1) // fails with it; as a warning 2391 is met below
		_, err := b.tryConnect(b.factory(encrypted), jms.Subscription{})
		b.is(err, jms.ErrConfig, strconv.Itoa(code), name, "AMQERR01.LOG", "one TLS configuration", b.queue)
		if n := b.connected(); n != before {
			t.Errorf("%d: %d connections are left", code, n-before)
		}
	}
}

// A second Factory with another key repository works with that of the first, because the process has one: that is said.
func TestASecondTLSConfigurationIsSaid(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	first := b.connect(b.factory(encrypted), jms.Subscription{Client: "first"})
	var mu sync.Mutex
	var log strings.Builder
	other := b.factory(encrypted, func(f *ibmmq.Factory) { f.KeyRepository = "/var/keys/other" })
	second := b.connect(other, jms.Subscription{Client: "second", Logger: textLogger(&mu, &log)})
	b.send(b.queue, "1", "2")
	b.receive(b.session(first))
	b.receive(b.session(second))
	mu.Lock()
	defer mu.Unlock()
	if !strings.Contains(log.String(), "2391") || !strings.Contains(log.String(), "/var/keys/other") {
		t.Errorf("the log is %q", log.String())
	}
}

// A manager on TLS survives the loss of all its connections: the configuration goes with the last of them, and the new control connection brings
// it again.
func TestTLSAfterALoss(t *testing.T) {
	b := newBench(t)
	b.needsControls()
	t.Setenv("MQSSLKEYR", "")
	a := inMemory(nil)
	m := b.manage(b.factory(encrypted), a)
	for round := range 3 {
		for _, body := range []string{"k", "l", "m"} {
			b.sent(a, fmt.Sprintf("%s.%d", body, round))
		}
		b.finished(a, 3*(round+1))
		a.record.Loss("", "cut", 0).Done()
		b.breakName("keyseq", true)
		b.sent(a, fmt.Sprintf("n.%d", round), fmt.Sprintf("o.%d", round))
		a.gone.Add(-2)
		b.finished(a, 3*(round+1))
	}
	b.shutdown(m, a)
	if err := m.Err(); err != nil {
		t.Error(err)
	}
	judge(t, a.record.History(), orderaudit.Options{})
}
