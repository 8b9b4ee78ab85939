package keyqueue

// Key is the queue of one key while it has work. A blocked key starts nothing and is never forgotten until Release.
type Key[T any] struct {
	chain        *Key[T] // next in the same bucket, or in the free list
	after, ahead *Key[T] // neighbours in a list of the round
	hash         uint64
	name         string
	head, tail   *node[T]
	due          int64 // when paused: end of the pause, in nanoseconds since the dispatcher was made
	n            int32 // items, the head included
	place        int32 // when paused: index in the heap
	tries        uint16
	state        keyState
	spot         spot
	blocked      bool
	listed       bool // blocked, and known to who gives back: Leaving or BlockWhere returned it
	again        bool // it was blocked once more while listed: give back once more before Release
	lone         bool // nothing joins it: see AddAlone
}

type keyState uint8

const (
	stateIdle keyState = iota
	stateReady
	stateRunning
	statePaused
	stateResting
)

// Name is the key. It is valid while the key is held by the caller's own turn or block.
func (k *Key[T]) Name() string { return k.name }

type node[T any] struct {
	next *node[T]
	size int
	item T
}

// push appends an item to a key.
func (t *table[T]) push(k *Key[T], item T, size int) {
	n := t.freeNodes
	if n == nil {
		slab := make([]node[T], nodeSlab)
		for i := 1; i < len(slab); i++ {
			slab[i].next = t.freeNodes
			t.freeNodes = &slab[i]
		}
		n = &slab[0]
	} else {
		t.freeNodes = n.next
	}
	n.item, n.size, n.next = item, size, nil
	if k.tail == nil {
		k.head = n
	} else {
		k.tail.next = n
	}
	k.tail = n
	k.n++
}

// pop removes the head of a key and returns its size.
func (t *table[T]) pop(k *Key[T]) int {
	n := k.head
	k.head = n.next
	if k.head == nil {
		k.tail = nil
	}
	k.n--
	return t.free(n)
}

func (t *table[T]) free(n *node[T]) int {
	size := n.size
	*n = node[T]{next: t.freeNodes}
	t.freeNodes = n
	return size
}

// behind cuts off and returns all items of a key but the first keep (0 or 1), newest first.
func (t *table[T]) behind(k *Key[T], keep int) (items []T, size int64) {
	n := k.head
	if keep > 0 && n != nil {
		n = n.next
	}
	count := int(k.n) - keep
	if n == nil || count <= 0 {
		return nil, 0
	}
	items = make([]T, count)
	for n != nil {
		next := n.next
		count--
		items[count] = n.item
		size += int64(t.free(n))
		n = next
	}
	if keep > 0 {
		k.head.next, k.tail, k.n = nil, k.head, 1
	} else {
		k.head, k.tail, k.n = nil, nil, 0
	}
	return items, size
}
