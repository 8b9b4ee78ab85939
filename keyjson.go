package keyseq

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// KeyFromJSON takes the key from a JSON body with a JSON pointer (RFC 6901), such as "/order/account". Strings are taken as they are, numbers
// as they are written, booleans as "true" or "false"; null, objects, arrays and what is not there are errors. Only the path to
// the value is read, so that a large body after it costs nothing. A malformed pointer is a *ConfigError of NewSequenceManager.
func KeyFromJSON(pointer string) KeyExtractor {
	path, err := parsePointer(pointer)
	return &keyFromJSON{pointer, path, err}
}

type keyFromJSON struct {
	pointer string
	path    []string
	err     error
}

func (k *keyFromJSON) check() error { return k.err }

func (k *keyFromJSON) ExtractKey(m *Message) (string, error) {
	if k.err != nil {
		return "", k.err
	}
	dec := json.NewDecoder(bytes.NewReader(m.Body))
	dec.UseNumber()
	for i, step := range k.path {
		if err := descend(dec, step); err != nil {
			return "", fmt.Errorf("JSON pointer %q, step %d: %w", k.pointer, i+1, err)
		}
	}
	token, err := dec.Token()
	if err != nil {
		return "", fmt.Errorf("JSON pointer %q: %w", k.pointer, err)
	}
	switch v := token.(type) {
	case string:
		return v, nil
	case json.Number:
		return v.String(), nil
	case bool:
		return strconv.FormatBool(v), nil
	case nil:
		return "", fmt.Errorf("JSON pointer %q: the value is null", k.pointer)
	}
	return "", fmt.Errorf("JSON pointer %q: the value is an object or array: point at a string, number or boolean", k.pointer)
}

// descend moves the decoder to the value of one step.
func descend(dec *json.Decoder, step string) error {
	token, err := dec.Token()
	if err != nil {
		return err
	}
	switch token {
	case json.Delim('{'):
		for dec.More() {
			name, err := dec.Token()
			if err != nil {
				return err
			}
			if name == step {
				return nil
			}
			if err := skip(dec); err != nil {
				return err
			}
		}
		return fmt.Errorf("object has no member %q", step)
	case json.Delim('['):
		index, err := strconv.ParseUint(step, 10, 31)
		if err != nil || step != strconv.FormatUint(index, 10) {
			return fmt.Errorf("%q is no index of an array", step)
		}
		for i := uint64(0); dec.More(); i++ {
			if i == index {
				return nil
			}
			if err := skip(dec); err != nil {
				return err
			}
		}
		return fmt.Errorf("array has no element %d", index)
	}
	return fmt.Errorf("value has no member %q: it is neither object nor array", step)
}

// skip passes over one value.
func skip(dec *json.Decoder) error {
	for depth := 0; ; {
		token, err := dec.Token()
		if err == io.EOF {
			return io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

// parsePointer splits a JSON pointer. "" points at the whole document.
func parsePointer(pointer string) ([]string, error) {
	if pointer == "" {
		return nil, nil
	}
	if pointer[0] != '/' {
		return nil, &ConfigError{"KeyExtractor", fmt.Sprintf("KeyFromJSON(%q): a JSON pointer starts with /, as in /account/id", pointer)}
	}
	path := strings.Split(pointer[1:], "/")
	for i, step := range path {
		for at := 0; at < len(step); at++ {
			if step[at] == '~' && (at+1 == len(step) || step[at+1] != '0' && step[at+1] != '1') {
				return nil, &ConfigError{"KeyExtractor", fmt.Sprintf("KeyFromJSON(%q): ~ must be written ~0, and / inside a name ~1", pointer)}
			}
		}
		path[i] = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
	}
	return path, nil
}
