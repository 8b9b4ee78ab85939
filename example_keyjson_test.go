package keyseq_test

import (
	"fmt"

	"github.com/keyseq/keyseq"
)

// The key is a value in a JSON body, found with a JSON pointer.
func ExampleKeyFromJSON() {
	key := keyseq.KeyFromJSON("/order/account")
	for _, body := range []string{`{"order": {"id": 7, "account": "4711"}}`, `{"order": {"account": 12}}`, `{"order": {}}`} {
		account, err := key.ExtractKey(&keyseq.Message{Body: []byte(body)})
		fmt.Printf("%q %v\n", account, err)
	}
	// Output:
	// "4711" <nil>
	// "12" <nil>
	// "" JSON pointer "/order/account", step 2: object has no member "account"
}
