package keyseq_test

import (
	"errors"
	"fmt"

	"github.com/keyseq/keyseq"
)

// A key of your own: two properties, so that the payments of an account are handled in order within a currency only.
func ExampleKeyExtractorFunc() {
	key := keyseq.KeyExtractorFunc(func(m *keyseq.Message) (string, error) {
		account, ok := m.Property("account")
		if !ok {
			return "", errors.New("no property account") // see Config.OnKeyError
		}
		currency, ok := m.Property("currency")
		if !ok {
			currency = "EUR"
		}
		return account + "/" + currency, nil
	})
	fmt.Println(key.ExtractKey(&keyseq.Message{Properties: map[string]any{"account": "4711", "currency": "CHF"}}))
	fmt.Println(key.ExtractKey(&keyseq.Message{Properties: map[string]any{"account": "4711"}}))
	// Output:
	// 4711/CHF <nil>
	// 4711/EUR <nil>
}
