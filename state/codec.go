package state

import (
	"bytes"

	"github.com/odradek-go/odradek/serde"
)

// Bounds are a range of keys, both ends included; nil is open. The order is that
// of the keys' encodings, which for numbers isn't the numbers' own where some are
// negative.
type Bounds[K any] struct{ From, To *K }

// codec encodes a store's keys and values into buffers that it uses again.
type codec[K, V any] struct {
	keys   serde.Serde[K]
	values serde.Serde[V]
	key    []byte
	value  []byte

	headers bool // values have their headers before them
}

func newCodec[K, V any](keys serde.Serde[K], values serde.Serde[V]) codec[K, V] {
	return codec[K, V]{keys: keys, values: values, key: make([]byte, 0, 64), value: make([]byte, 0, 64)}
}

// appendKey appends a key to what dst begins with.
func (c *codec[K, V]) appendKey(dst []byte, k K) ([]byte, error) {
	key, err := c.keys.Append(dst, k)
	if err == nil && key == nil {
		err = ErrNullKey
	}
	return key, err
}

// encodeKey encodes a key. The result is valid until the next key.
func (c *codec[K, V]) encodeKey(k K) ([]byte, error) {
	key, err := c.appendKey(c.key[:0], k)
	if err == nil {
		c.key = key
	}
	return key, err
}

// encodeValue appends a value to what dst begins with; nil where it is null.
func (c *codec[K, V]) encodeValue(dst []byte, v V) ([]byte, error) {
	value, err := c.values.Append(dst, v)
	if value != nil {
		c.value = value
	}
	return value, err
}

// prefix begins a value with its headers, in a store that has them.
func (c *codec[K, V]) prefix(headers []Header) []byte {
	if !c.headers {
		return c.value[:0]
	}
	c.value = appendHeaders(c.value[:0], headers)
	return c.value
}

// cutPrefix is what prefix began, without it.
func (c *codec[K, V]) cutPrefix(raw []byte) (value []byte, err error) {
	if c.headers {
		_, raw, err = cutHeaders(raw)
	}
	return raw, err
}

// decodeHeaders reads the headers of a value, in a store that has them.
func (c *codec[K, V]) decodeHeaders(raw []byte) ([]Header, error) {
	if !c.headers || raw == nil {
		return nil, nil
	}
	return readHeaders(raw)
}

// encodeBounds encodes the ends of a range.
func (c *codec[K, V]) encodeBounds(bounds Bounds[K]) (from, to []byte, err error) {
	if bounds.From != nil {
		if from, err = c.appendKey([]byte{}, *bounds.From); err != nil {
			return nil, nil, err
		}
	}
	if bounds.To != nil {
		if to, err = c.appendKey([]byte{}, *bounds.To); err != nil {
			return nil, nil, err
		}
	}
	return from, to, nil
}

// scanBounds walks over a range of keys of a store whose engine has the keys as
// they are.
func scanBounds[K, V any](b *backing, c *codec[K, V], bounds Bounds[K], order Order) (Iterator, error) {
	if b.engine == nil {
		return nil, ErrClosed
	}
	from, to, err := c.encodeBounds(bounds)
	switch {
	case err != nil:
		return nil, err
	case from != nil && to != nil && bytes.Compare(from, to) > 0:
		return none{}, nil
	case to != nil:
		to = append(to, 0) // what is next after it
	}
	return b.scan(from, to, order), nil
}

// none has no entries.
type none struct{}

func (none) Next() bool    { return false }
func (none) Key() []byte   { return nil }
func (none) Value() []byte { return nil }
func (none) Err() error    { return nil }
func (none) Close() error  { return nil }
