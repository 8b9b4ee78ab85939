package keyseq_test

import (
	"fmt"

	"github.com/keyseq/keyseq"
)

// Every wrong setting is reported at once, before anything is connected.
func ExampleConfigError() {
	_, err := keyseq.NewSequenceManager("", nil, keyseq.ListenerFuncs{}, keyseq.KeyFromProperty("account"), func(c *keyseq.Config) {
		c.Workers = 0
	})
	fmt.Println(err)
	// Output:
	// keyseq: queue is empty: name the queue to read
	// keyseq: factory is nil: pass a provider's connection factory
	// keyseq: listener ListenerFuncs.Task is nil: give it the function that handles a message
	// keyseq: Workers is 0: must be 1 to 10000
}
