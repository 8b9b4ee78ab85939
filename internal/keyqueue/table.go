package keyqueue

// Slabs: keys and nodes are made in lots, so that neither costs an allocation of its own, and kept on free lists.
const (
	keySlab     = 32
	nodeSlab    = 128
	minBuckets  = 64
	keepBuckets = 1 << 16 // a table that was never larger is not shrunk
)

// table finds the live keys: buckets of keys chained through the keys themselves. To come and to go costs a key 11 ns
// here and 52 ns with a Go map (BenchmarkTable).
type table[T any] struct {
	buckets   []*Key[T]
	mask      uint64
	live      int
	alones    uint64 // keys made by alone so far
	freeKeys  *Key[T]
	freeNodes *node[T]
}

func (t *table[T]) init() {
	t.buckets = make([]*Key[T], minBuckets)
	t.mask = minBuckets - 1
}

func (t *table[T]) find(h uint64, name string) *Key[T] {
	for k := t.buckets[h&t.mask]; k != nil; k = k.chain {
		if k.hash == h && k.name == name && !k.lone {
			return k
		}
	}
	return nil
}

func (t *table[T]) get(h uint64, name string) *Key[T] {
	if k := t.find(h, name); k != nil {
		return k
	}
	return t.insert(h, name)
}

// alone makes a key that find does not see. Numbers in a row take the place of its hash: they spread such keys evenly over the buckets,
// where they come and go like any other key, at a cost that does not grow with their number.
func (t *table[T]) alone(name string) *Key[T] {
	t.alones++
	k := t.insert(t.alones, name)
	k.lone = true
	return k
}

func (t *table[T]) insert(h uint64, name string) *Key[T] {
	if t.live >= len(t.buckets) {
		t.resize(2 * len(t.buckets))
	}
	k := t.make()
	k.hash, k.name = h, name
	b := &t.buckets[h&t.mask]
	k.chain = *b
	*b = k
	t.live++
	return k
}

func (t *table[T]) make() *Key[T] {
	k := t.freeKeys
	if k == nil {
		slab := make([]Key[T], keySlab)
		for i := 1; i < len(slab); i++ {
			slab[i].chain = t.freeKeys
			t.freeKeys = &slab[i]
		}
		k = &slab[0]
	} else {
		t.freeKeys = k.chain
	}
	return k
}

func (t *table[T]) remove(k *Key[T]) {
	p := &t.buckets[k.hash&t.mask]
	for *p != k {
		p = &(*p).chain
	}
	*p = k.chain
	*k = Key[T]{chain: t.freeKeys}
	t.freeKeys = k
	t.live--
	if t.live == 0 && len(t.buckets) > keepBuckets {
		t.init()
		t.freeKeys, t.freeNodes = nil, nil
	}
}

func (t *table[T]) resize(n int) {
	old := t.buckets
	t.buckets = make([]*Key[T], n)
	t.mask = uint64(n - 1)
	for _, k := range old {
		for k != nil {
			next := k.chain
			b := &t.buckets[k.hash&t.mask]
			k.chain = *b
			*b = k
			k = next
		}
	}
}

// each visits the keys of one bucket.
func (t *table[T]) each(bucket int, visit func(*Key[T])) {
	for k := t.buckets[bucket]; k != nil; {
		next := k.chain // visit may remove k
		visit(k)
		k = next
	}
}

// all visits every key.
func (t *table[T]) all(visit func(*Key[T])) {
	for i := 0; i < len(t.buckets); i++ { // visit may shrink the table
		t.each(i, visit)
	}
}
