package keyseq

import (
	"bytes"
	"fmt"

	"github.com/keyseq/keyseq/jms"
)

// KeyExtractor says which key a message belongs to. It runs on the reading goroutine, one message after another: microseconds, no I/O.
// An error or a panic leads to Config.OnKeyError, "" to Config.OnEmptyKey. It must not keep or change the message.
type KeyExtractor interface {
	ExtractKey(m *Message) (string, error)
}

// KeyExtractorFunc makes a KeyExtractor of a function.
type KeyExtractorFunc func(m *Message) (string, error)

// ExtractKey calls f.
func (f KeyExtractorFunc) ExtractKey(m *Message) (string, error) { return f(m) }

// KeyFromProperty takes the key from a property of the message, as text. A property that is not there is an error, not an empty key: one
// slip in its name would turn the order of the whole queue off.
func KeyFromProperty(name string) KeyExtractor { return keyFromProperty(name) }

type keyFromProperty string

func (name keyFromProperty) ExtractKey(m *Message) (string, error) {
	if v, ok := m.Property(string(name)); ok {
		return v, nil
	}
	if err := m.PropertyErr(string(name)); err != nil {
		return "", fmt.Errorf("property %q: %w", string(name), err)
	}
	return "", fmt.Errorf("message has no property %q: check its name and what the sender sets", string(name))
}

func (name keyFromProperty) check() error {
	if name == "" {
		return &ConfigError{"KeyExtractor", "KeyFromProperty has an empty name: name the property that holds the key"}
	}
	return nil
}

// KeyFromGroupID takes the JMSXGroupID; where none is set, that is an error.
func KeyFromGroupID() KeyExtractor {
	return KeyExtractorFunc(func(m *Message) (string, error) {
		return notEmpty(m.GroupID, "group ID (JMSXGroupID)")
	})
}

// KeyFromCorrelationID takes the correlation ID; where none is set, that is an error.
func KeyFromCorrelationID() KeyExtractor {
	return KeyExtractorFunc(func(m *Message) (string, error) {
		return notEmpty(m.CorrelationID, "correlation ID")
	})
}

func notEmpty(value, what string) (string, error) {
	if value == "" {
		return "", fmt.Errorf("message has no %s: check what the sender sets and whether the provider can read it", what)
	}
	return value, nil
}

// KeyFromBodyBefore takes the body up to the first separator: of "4711.2" with "." it is "4711". A body without the separator is an error.
func KeyFromBodyBefore(separator string) KeyExtractor { return keyFromBodyBefore(separator) }

type keyFromBodyBefore string

func (separator keyFromBodyBefore) ExtractKey(m *Message) (string, error) {
	before, _, found := bytes.Cut(m.Body, []byte(separator))
	if !found {
		return "", fmt.Errorf("body of %d bytes has no separator %q", len(m.Body), string(separator))
	}
	return string(before), nil
}

func (separator keyFromBodyBefore) check() error {
	if separator == "" {
		return &ConfigError{"KeyExtractor", "KeyFromBodyBefore has an empty separator: every key would be empty"}
	}
	return nil
}

// checkedExtractor is a ready-made extractor that can be configured wrongly.
type checkedExtractor interface {
	check() error
}

// extractKey calls the user's extractor; a panic is an error.
func extractKey(e KeyExtractor, m *jms.Message) (key string, err error) {
	defer func() {
		if v := recover(); v != nil {
			key, err = "", newPanicError(v)
		}
	}()
	return e.ExtractKey(m)
}
