package rabbitmq_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/keyseq/keyseq/jms"
	"github.com/keyseq/keyseq/provider/rabbitmq"
	"github.com/keyseq/keyseq/provider/rabbitmq/internal/brokertest"
	"github.com/keyseq/keyseq/provider/rabbitmq/internal/faultproxy"
)

// address splits the broker's URL.
func address(b *brokertest.Bench) *url.URL {
	b.Helper()
	u, err := url.Parse(b.URL)
	if err != nil {
		b.Fatal(err)
	}
	return u
}

// throughProxy is a factory whose links a test can break.
func throughProxy(b *brokertest.Bench, heartbeat time.Duration) (rabbitmq.Factory, *faultproxy.Proxy) {
	b.Helper()
	u := address(b)
	p, err := faultproxy.New(u.Host)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(p.Close)
	u.Host = p.Addr()
	return rabbitmq.Factory{URL: u.String(), Heartbeat: heartbeat}, p
}

// A link that goes silent is noticed within 1.5 heartbeats here. On a queue with a single active consumer the next connection gets nothing until the
// broker has noticed too, and then everything in order (H4). Calls end with their context, and Close gives up with its own.
func TestSilentLink(t *testing.T) {
	brokertest.OnKinds(t, func(t *testing.T, kind string) {
		b := brokertest.New(t)
		q, target := b.Queue(brokertest.Single(kind)), b.Queue(brokertest.Single(kind))
		b.Numbered(q, 9)
		const heartbeat = 2 * time.Second
		f, proxy := throughProxy(b, heartbeat)
		c := b.Connect(f, jms.Subscription{Queue: q, MaxInFlight: 5})
		sessions, _ := b.Take(c, 3)
		if err := sessions[0].Commit(t.Context(), jms.Outgoing{Queue: target, Body: []byte("a")}); err != nil {
			t.Fatal(err)
		}
		// Its acknowledgement must have reached the broker, which answers a question behind it.
		if _, err := c.(jms.CleanStarter).CleanStart(t.Context()); err != nil {
			t.Fatal(err)
		}
		proxy.Silence()
		began := time.Now()
		err := sessions[1].Commit(b.Bounded(300*time.Millisecond), jms.Outgoing{Queue: target, Body: []byte("b")})
		if took := time.Since(began); !errors.Is(err, jms.ErrCommitUnknown) || took > 2*time.Second {
			t.Errorf("Commit with a send = %v after %v; want ErrCommitUnknown with the end of its context", err, took)
		}
		if took := b.IsDone(c, 2*heartbeat); took > 2*heartbeat {
			t.Errorf("the silent link was noticed after %v, want at most 1.5 heartbeats of %v", took, heartbeat)
		}
		if err := c.Close(b.Bounded(5 * time.Second)); err != nil {
			t.Errorf("Close after the loss = %v", err)
		}
		again := b.Connect(rabbitmq.Factory{}, jms.Subscription{Queue: q})
		began = time.Now()
		if _, bodies := b.Take(again, 8); !slices.Equal(bodies, numbers(2, 9)) {
			t.Errorf("then came %v, want 2 to 9 in order", bodies)
		}
		t.Logf("the broker gave them to the next connection %v later", time.Since(began).Round(time.Millisecond))
	})
}

// tlsFront accepts TLS for the broker.
func tlsFront(b *brokertest.Bench) (string, *x509.CertPool) {
	b.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "broker"}, DNSNames: []string{"broker.test"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		b.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		b.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close() })
	target := address(b).Host
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target)
			if err != nil {
				_ = client.Close()
				continue
			}
			go func() { _, _ = io.Copy(server, client); _ = server.Close(); _ = client.Close() }()
			go func() { _, _ = io.Copy(client, server); _ = server.Close(); _ = client.Close() }()
		}
	}()
	return l.Addr().String(), pool
}

func TestTLS(t *testing.T) {
	b := brokertest.New(t)
	q := b.Queue(brokertest.Single("classic"))
	front, pool := tlsFront(b)
	u := address(b)
	u.Scheme, u.Host = "amqps", front

	for name, config := range map[string]*tls.Config{
		"unknown authority": nil, "another name": {RootCAs: pool, ServerName: "other.test"},
	} {
		_, _, err := try(b, rabbitmq.Factory{URL: u.String(), TLS: config}, jms.Subscription{Queue: q})
		if !errors.Is(err, jms.ErrConfig) || !strings.Contains(err.Error(), "not trusted") {
			t.Errorf("%s: Connect = %v, want ErrConfig that says that the certificate is not trusted", name, err)
		}
	}
	config := &tls.Config{RootCAs: pool, ServerName: "broker.test", MinVersion: tls.VersionTLS13}
	c := b.Connect(rabbitmq.Factory{URL: u.String(), TLS: config}, jms.Subscription{Queue: q})
	s := b.Session(c)
	if err := s.Commit(t.Context(), jms.Outgoing{Queue: q, Body: []byte("secret")}); err != nil {
		t.Fatal(err)
	}
	if m := b.Receive(s); string(m.Body) != "secret" {
		t.Errorf("received %q", m.Body)
	}
	if err := s.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}
