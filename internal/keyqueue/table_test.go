package keyqueue

import "testing"

// A lone key is not found, not even by who asks for its number and its name.
func TestALoneKeyIsNotFound(t *testing.T) {
	var table table[int]
	table.init()
	k := table.alone("a")
	if table.find(k.hash, "a") != nil || table.get(k.hash, "a") == k {
		t.Error("something could join a lone key")
	}
	table.remove(k)
	if table.live != 1 {
		t.Errorf("%d keys are live, want the one that get has made", table.live)
	}
}
