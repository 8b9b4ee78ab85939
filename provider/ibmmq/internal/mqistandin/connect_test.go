//go:build mqistandin

package mqistandin_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ibm-messaging/mq-golang-jms20/jms20subset"
	mqi "github.com/ibm-messaging/mq-golang/v5/ibmmq"

	"github.com/keyseq/keyseq/provider/ibmmq/internal/mqistandin"
)

// A connection that is made and whose answer is lost: the queue manager counts it until it notices, or the reason ended it.
func TestConnectAnswerIsLost(t *testing.T) {
	onBoth(t, func(t *testing.T) {
		mqistandin.DetectAfter(-1)
		mqistandin.FailAfter("MQCONNX", mqistandin.ConnectionBroken, 1)
		_, err := factory().CreateContext()
		gives(t, err, "2009")
		equal(t, mqistandin.Connections(), 1)
		equal(t, mqistandin.Unnoticed(), 1)
		equal(t, mqistandin.Notice(), 1)
		equal(t, mqistandin.Connections(), 0)

		mqistandin.FailAfter("MQCONNX", mqistandin.QMgrStopping, 1)
		_, err = factory().CreateContext()
		gives(t, err, "2162")
		equal(t, mqistandin.Connections(), 0)
		open(t, autoAck) // once it was
	})
}

// Connecting that hangs, before or after the connection is there.
func TestHeldConnect(t *testing.T) {
	for _, done := range []bool{false, true} {
		t.Run(fmt.Sprint("done ", done), func(t *testing.T) {
			onBoth(t, func(t *testing.T) {
				mqistandin.Hold("MQCONNX", done)
				t.Cleanup(mqistandin.Release)
				end := make(chan jms20subset.JMSException, 1)
				go func() {
					ctx, err := factory().CreateContext()
					if err == nil {
						defer ctx.Close()
					}
					end <- err
				}()
				soon(t, "a held call", func() bool { return mqistandin.Held() == 1 })
				equal(t, mqistandin.Connections() == 1, done)
				select {
				case err := <-end:
					t.Fatal("returned", err)
				default:
				}
				mqistandin.Release()
				ok(t, <-end)
			})
		})
	}
}

func TestNoFailures(t *testing.T) {
	mqistandin.Use("")
	mqistandin.Reset()
	mqistandin.FailNext("MQCONNX", 2009, 0)
	mqistandin.FailAfter("MQCONNX", 2009, 0)
	open(t, autoAck)
}

// encrypted is a connection by mq-golang, without a key repository if that is "".
func encrypted(t *testing.T, repository string) (mqi.MQQueueManager, int) {
	t.Helper()
	cno, cd, csp := mqi.NewMQCNO(), mqi.NewMQCD(), mqi.NewMQCSP()
	csp.AuthenticationType, csp.UserId, csp.Password = mqi.MQCSP_AUTH_USER_ID_AND_PWD, "app", "passw0rd"
	cd.ChannelName, cd.ConnectionName, cd.SSLCipherSpec, cd.CertificateLabel = "DEV.APP.SVRCONN", "localhost(1414)", "ANY_TLS12_OR_HIGHER", "theirs"
	cno.Options, cno.ClientConn, cno.SecurityParms, cno.ApplName = mqi.MQCNO_CLIENT_BINDING, cd, csp, "encrypted"
	if repository != "" {
		cno.SSLConfig = mqi.NewMQSCO()
		cno.SSLConfig.KeyRepository, cno.SSLConfig.CertificateLabel = repository, "mine"
	}
	qm, err := mqi.Connx("QM1", cno)
	if err == nil {
		return qm, 0
	}
	ret := err.(*mqi.MQReturn)
	if ret.MQCC == mqi.MQCC_WARNING {
		return qm, int(ret.MQRC)
	}
	return qm, -int(ret.MQRC)
}

// The process has one TLS environment: the first encrypted connection makes it, further ones are warned if they say what it should be, and it is
// gone when the last one is.
func TestOneTLSEnvironment(t *testing.T) {
	onBoth(t, func(t *testing.T) {
		t.Setenv("MQSSLKEYR", "")
		disc := func(qm mqi.MQQueueManager) {
			t.Helper()
			if err := qm.Disc(); err != nil {
				t.Fatal(err)
			}
		}
		_, code := encrypted(t, "")
		equal(t, code, -2381)
		first, code := encrypted(t, "/key/one")
		equal(t, code, 0)
		second, code := encrypted(t, "/key/two")
		equal(t, code, 2391)
		if err := second.Back(); err != nil {
			t.Error("a warned connection cannot be used:", err)
		}
		third, code := encrypted(t, "")
		equal(t, code, 0)
		mqistandin.FailNext("MQCONNX", 2538, 1)
		_, code = encrypted(t, "") // does not count
		equal(t, code, -2538)
		for _, qm := range []mqi.MQQueueManager{first, second, third} {
			disc(qm)
		}
		again, code := encrypted(t, "/key/two")
		equal(t, code, 0)
		disc(again)
	})
}

func TestPassed(t *testing.T) {
	mqistandin.Use("")
	mqistandin.Reset()
	qm, code := encrypted(t, "/key/one")
	equal(t, code, 0)
	defer qm.Disc()
	got := mqistandin.Passed("encrypted")
	for name, want := range map[string]string{
		"MQCD.ChannelName": "DEV.APP.SVRCONN", "MQCD.ConnectionName": "localhost(1414)", "MQCD.SSLCipherSpec": "ANY_TLS12_OR_HIGHER",
		"MQCD.CertificateLabel": "theirs", "MQSCO.KeyRepository": "/key/one", "MQSCO.CertificateLabel": "mine",
		"MQCSP.CSPUserId": "app", "MQCSP.CSPPassword": "passw0rd", "MQCSP.AuthenticationType": fmt.Sprint(mqi.MQCSP_AUTH_USER_ID_AND_PWD),
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	open(t, autoAck)
	for name := range mqistandin.Passed("test") {
		if strings.HasPrefix(name, "MQSCO.") {
			t.Errorf("%s was passed by a connection without TLS", name)
		}
	}
}
