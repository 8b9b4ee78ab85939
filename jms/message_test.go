package jms

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestPropertyAsText(t *testing.T) {
	unreadable := fmt.Errorf("%w: handle gone", ErrUnreadable)
	m := Message{Properties: map[string]any{
		"s": "4711", "empty": "", "b": true, "i": int64(-12), "f": 0.1, "raw": []byte("xy"), "bad": unreadable,
	}}
	for _, c := range []struct {
		name, want string
		ok         bool
	}{
		{"s", "4711", true}, {"empty", "", true}, {"b", "true", true}, {"i", "-12", true}, {"f", "0.1", true},
		{"raw", "xy", true}, {"bad", "", false}, {"absent", "", false},
	} {
		if got, ok := m.Property(c.name); got != c.want || ok != c.ok {
			t.Errorf("Property(%q) = %q, %t; want %q, %t", c.name, got, ok, c.want, c.ok)
		}
	}
	if err := m.PropertyErr("bad"); !errors.Is(err, ErrUnreadable) {
		t.Errorf("PropertyErr of an unreadable property = %v, want ErrUnreadable", err)
	}
	if err := m.PropertyErr("absent"); err != nil {
		t.Errorf("PropertyErr of an absent property = %v, want nil", err)
	}
}

func TestReturns(t *testing.T) {
	for _, c := range []struct {
		caps Capabilities
		want time.Duration
	}{
		{Capabilities{}, DefaultReturnDelay},
		{Capabilities{ReturnsAtOnce: true}, 0},
		{Capabilities{ReturnDelay: 15 * time.Second}, 15 * time.Second},
	} {
		if got := c.caps.Returns(); got != c.want {
			t.Errorf("%+v.Returns() = %v, want %v", c.caps, got, c.want)
		}
	}
}

func TestEndsSession(t *testing.T) {
	for err, want := range map[error]bool{
		ErrConnectionLost: true, ErrSessionLost: true, ErrCommitUnknown: true, ErrRolledBack: true,
		ErrBusy: false, ErrConfig: false, ErrQuiescing: false, ErrUnreadable: false,
	} {
		if got := EndsSession(fmt.Errorf("queue Q: %w", err)); got != want {
			t.Errorf("EndsSession(%v) = %t, want %t", err, got, want)
		}
	}
}
