package rabbitmq

import (
	"crypto/tls"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/keyseq/keyseq/jms"
)

// Every wrong setting is reported at once, before anything is dialled.
func TestWrongSettings(t *testing.T) {
	f := Factory{
		URL: "amqp://u:p@127.0.0.1:1/", TLS: &tls.Config{}, Heartbeat: 1500 * time.Millisecond, ConsumerTimeout: time.Millisecond, Password: "x",
		Arguments: map[string]any{"x-single-active-consumer": false, "bad": struct{}{}},
	}
	_, err := f.Connect(t.Context(), jms.Subscription{MaxInFlight: 70000, SingleActiveConsumer: true})
	if !errors.Is(err, jms.ErrConfig) {
		t.Fatalf("Connect = %v, want ErrConfig", err)
	}
	for _, want := range []string{
		"Factory.TLS", "Factory.Heartbeat is 1.5s", "Factory.ConsumerTimeout is 1ms", "Factory.Password is set without", "no name",
		"MaxInFlight is 70000", "Factory.Arguments", "x-single-active-consumer: false",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q:\n%v", want, err)
		}
	}
	good := Factory{URL: "amqp://u:p@127.0.0.1:1/"}
	for _, n := range []int{0, 1, 65535} {
		if _, err := good.settings(jms.Subscription{Queue: "q", MaxInFlight: n}); err != nil {
			t.Errorf("MaxInFlight %d is refused: %v", n, err)
		}
	}
	for _, n := range []int{-1, 65536} {
		if _, err := good.settings(jms.Subscription{Queue: "q", MaxInFlight: n}); !errors.Is(err, jms.ErrConfig) {
			t.Errorf("MaxInFlight %d = %v, want ErrConfig", n, err)
		}
	}
	if _, err := good.settings(jms.Subscription{Queue: strings.Repeat("q", 256)}); !errors.Is(err, jms.ErrConfig) {
		t.Errorf("a name of 256 bytes = %v, want ErrConfig", err)
	}
}

// The user's own maps and configuration are not changed.
func TestSettingsAreCopies(t *testing.T) {
	f := Factory{URL: "amqps://h/", TLS: &tls.Config{}, Arguments: map[string]any{"x-max-length": 5}}
	s, err := f.settings(jms.Subscription{Queue: "q", SingleActiveConsumer: true})
	if err != nil {
		t.Fatal(err)
	}
	if s.arguments["x-max-length"] != int64(5) || s.arguments["x-single-active-consumer"] != true || s.tls == f.TLS {
		t.Errorf("settings are %v", s.arguments)
	}
	if len(f.Arguments) != 1 || f.Arguments["x-max-length"] != 5 {
		t.Errorf("the factory's arguments became %v", f.Arguments)
	}
}

// No password may appear in an error, however broken the URL is.
func TestURLIsNeverShown(t *testing.T) {
	const secret = "s3cr3t"
	for _, url := range []string{
		"amqp://user:" + secret + "@127.0.0.1:1/",      // nobody listens
		"amqp://user:" + secret + "#@127.0.0.1:1/",     // not percent-encoded: the password looks like a port
		"amqp://user:" + secret + "/x@127.0.0.1:1/",    // the same
		"amqp://user:" + secret + " @127.0.0.1/",       // a blank
		"http://user:" + secret + "@127.0.0.1:1/",      // another scheme
		"amqp://user:%zz" + secret + "@127.0.0.1:1/",   // wrong encoding
		"amqp://user:" + secret + "@127.0.0.1:999999/", // no such port
		"amqp://user:" + secret + "@[::1/",
		secret,
		"amqp://user:" + secret + "@127.0.0.1:1/?heartbeat=" + secret,
	} {
		f := Factory{URL: url}
		var log strings.Builder
		_, err := f.Connect(t.Context(), jms.Subscription{Queue: "q"})
		if err == nil {
			t.Errorf("Connect to %q succeeded", url)
			continue
		}
		if strings.Contains(err.Error()+log.String(), secret) {
			t.Errorf("the error shows the password: %v", err)
		}
	}
}
