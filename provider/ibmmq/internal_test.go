package ibmmq

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
	"time"

	mqi "github.com/ibm-messaging/mq-golang/v5/ibmmq"

	"github.com/keyseq/keyseq/jms"
)

// Every code of the table has the name that IBM gives it, and every code that is a matter of configuration says what to do.
func TestReasonTable(t *testing.T) {
	for code, r := range reasons {
		if name := mqi.MQItoString("RC", code); !strings.HasPrefix(name, "MQRC_") {
			t.Errorf("%d has no name: %q", code, name)
		}
		if r.class == classConfig && r.advice == "" {
			t.Errorf("%d is a matter of configuration and says nothing about it", code)
		}
	}
}

// A message descriptor's extension before the body, as a queue manager makes it for a message in a group, in both byte orders.
func TestStripExtension(t *testing.T) {
	for encoding, order := range map[int32]binary.ByteOrder{546: binary.LittleEndian, 273: binary.BigEndian} {
		h := make([]byte, extension)
		copy(h, "MDE ")
		order.PutUint32(h[4:], 2)
		order.PutUint32(h[8:], extension)
		order.PutUint32(h[12:], 273)
		order.PutUint32(h[16:], 500)
		copy(h[20:], "MQSTR   ")
		group := bytes.Repeat([]byte{0xab}, 24)
		copy(h[32:], group)
		m := &jms.Message{Body: append(h, "hello"...)}
		md := &mqi.MQMD{Format: "MQHMDE", Encoding: encoding, CodedCharSetId: 1208}
		stripExtension(m, md)
		if string(m.Body) != "hello" || !m.Text || md.CodedCharSetId != 500 || md.Encoding != 273 || !bytes.Equal(md.GroupId, group) {
			t.Errorf("encoding %d: %+v, %+v", encoding, m, md)
		}
		if id := groupID(nil, md.GroupId); id != strings.Repeat("ab", 24) {
			t.Errorf("group ID %q", id)
		}
		short := &jms.Message{Body: []byte("MDE no")}
		stripExtension(short, &mqi.MQMD{Format: "MQHMDE"})
		if string(short.Body) != "MDE no" {
			t.Error("a body that is no extension was cut")
		}
	}
	if id := groupID(map[string]any{"jms.Gid": "G7"}, make([]byte, 24)); id != "G7" {
		t.Errorf("the group of a JMS sender is %q", id)
	}
}

func TestPutTime(t *testing.T) {
	want := time.Date(2026, 11, 30, 23, 59, 58, 970_000_000, time.UTC)
	if got := putTime("20261130", "23595897"); !got.Equal(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := putTime("20280229", "00000000"); !got.Equal(time.Date(2028, 2, 29, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("the leap day is %v", got)
	}
	for _, bad := range [][2]string{{"", ""}, {"20261130", ""}, {"2026113x", "23595897"}, {"20261130", "235958xx"}, {"2026113", "023595897"},
		{"20261131", "23595897"}, {"20270229", "23595897"}, {"20261330", "23595897"}, {"20260030", "23595897"}, {"20261130", "24000000"}, {"20261130", "23605800"}, {"20261130", "23596000"}} {
		if got := putTime(bad[0], bad[1]); !got.IsZero() {
			t.Errorf("%v gave %v", bad, got)
		}
	}
}

// A body may be written to, whatever its length: it is nobody else's.
func TestBytesOf(t *testing.T) {
	for _, n := range []int{0, 1, 63, 64, 5000} {
		body := bytesOf(string(bytes.Repeat([]byte("x"), n)))
		if !bytes.Equal(body, bytes.Repeat([]byte("x"), n)) {
			t.Errorf("%d bytes became %q", n, body)
		}
		for i := range body {
			body[i] = 'y'
		}
	}
	if s := string([]byte("x")); s != "x" {
		t.Errorf("a text of one byte is %q now", s)
	}
}

// Automatic reconnection is off whatever mq-golang-jms20 set, and bindings have no channel to set.
func TestOption(t *testing.T) {
	f := &Factory{QueueManager: "QM1", Connections: "a(1), b(2)", Channel: "C", Heartbeat: 5 * time.Second, SharingConversations: 3, MaxMessageSize: 1 << 20}
	s, err := f.settings(jms.Subscription{Queue: "Q"})
	if err != nil {
		t.Fatal(err)
	}
	cno := mqi.NewMQCNO()
	cno.Options, cno.ClientConn = mqi.MQCNO_RECONNECT|mqi.MQCNO_CLIENT_BINDING, mqi.NewMQCD()
	s.option(cno)
	cd := cno.ClientConn
	if cno.Options&mqi.MQCNO_RECONNECT_DISABLED == 0 || cno.Options&mqi.MQCNO_RECONNECT != 0 || cno.Options&mqi.MQCNO_CLIENT_BINDING == 0 {
		t.Errorf("options %x", cno.Options)
	}
	if cd.ConnectionName != "a(1),b(2)" || cd.SharingConversations != 3 || cd.MaxMsgLength != 1<<20 {
		t.Errorf("%+v", cd)
	}
	f = &Factory{Bindings: true}
	if s, err = f.settings(jms.Subscription{Queue: "Q"}); err != nil {
		t.Fatal(err)
	}
	if cno := s.control(); cno.ClientConn != nil || cno.Options&mqi.MQCNO_LOCAL_BINDING == 0 {
		t.Errorf("bindings: %+v", cno)
	}
}

// What a correlation ID becomes on the way is what mq-golang-jms20 makes of it.
func TestCorrelationOnTheWay(t *testing.T) {
	for id, want := range map[string]string{"corr-1": "corr-1", "twelve chars": "twelve chars", "thirteen char": "thirteen cha", "deadbeef": "deadbeef"} {
		if got := correlation(id); got != want {
			t.Errorf("%q becomes %q, want %q", id, got, want)
		}
	}
}
