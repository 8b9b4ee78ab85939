package providertest

import (
	"regexp"
	"runtime"
	"strings"
)

var bubbleOf = regexp.MustCompile(`^goroutine \d+ \[[^\]]*(synctest bubble \d+)`)

// goroutines gives the stacks of all goroutines but the caller's, by their number. In a bubble these are the goroutines of the
// bubble.
func goroutines() map[string]string {
	buf := make([]byte, 1<<20)
	n := runtime.Stack(buf, true)
	for n == len(buf) {
		buf = make([]byte, 2*len(buf))
		n = runtime.Stack(buf, true)
	}
	stacks := strings.Split(string(buf[:n]), "\n\n") // the caller's comes first
	bubble := bubbleOf.FindStringSubmatch(stacks[0])
	all := map[string]string{}
	for _, stack := range stacks[1:] {
		other := bubbleOf.FindStringSubmatch(stack)
		if bubble != nil && (other == nil || other[1] != bubble[1]) {
			continue
		}
		number, _, _ := strings.Cut(stack, " [")
		all[number] = stack
	}
	return all
}
