package state

import "encoding/json"

// raw is the serde of bytes that are someone else's encoding. They are not copied.
type raw struct{}

func (raw) Append(dst []byte, v []byte) ([]byte, error) {
	if v == nil {
		return nil, nil
	}
	return append(dst, v...), nil
}

func (raw) Decode(data []byte) ([]byte, error) { return data, nil }

func rawCodec(headers bool) codec[[]byte, []byte] {
	c := newCodec[[]byte, []byte](raw{}, raw{})
	c.headers = headers
	return c
}

// viewed is the backing of a view of b. It takes over nothing that changes: that follows
// each time that the view gets the gate.
func (b *backing) viewed(v *view) backing {
	v.of = b
	of := backing{name: b.name, cutKey: b.cutKey, cutValue: b.cutValue, headers: b.headers, engine: v}
	if b.windows != nil {
		windows := b.windows.segments()
		of.windows = windows
		v.follow = func() { windows.follow(b.windows) }
	}
	return of
}

func (s *KeyValue[K, V]) newView(v *view) Store {
	return &KeyValue[[]byte, []byte]{backing: s.viewed(v), codec: rawCodec(s.headers)}
}

func (s *TimestampedKeyValue[K, V]) newView(v *view) Store {
	return &TimestampedKeyValue[[]byte, []byte]{backing: s.viewed(v), codec: rawCodec(s.headers)}
}

func (s *Versioned[K, V]) newView(v *view) Store {
	of := &Versioned[[]byte, []byte]{backing: s.viewed(v), codec: rawCodec(s.headers), retention: s.retention}
	of.history.engine = v
	v.follow = func() { of.observed = s.observed }
	return of
}

func (s *Window[K, V]) newView(v *view) Store {
	return &Window[[]byte, []byte]{backing: s.viewed(v), codec: rawCodec(s.headers), size: s.size, many: s.many}
}

func (s *Session[K, V]) newView(v *view) Store {
	return &Session[[]byte, []byte]{backing: s.viewed(v), codec: rawCodec(s.headers)}
}

// JSON converts the keys and values of a store between JSON and their encodings, for
// those who ask for them as text. The store need not be open, and any number of
// goroutines may do so.
type JSON interface {
	// EncodeKey returns the encoding of a key that is given as JSON.
	EncodeKey(text []byte) ([]byte, error)
	// DecodeKey returns an encoded key as JSON.
	DecodeKey(key []byte) ([]byte, error)
	// DecodeValue returns an encoded value as JSON.
	DecodeValue(value []byte) ([]byte, error)
}

func (c *codec[K, V]) EncodeKey(text []byte) ([]byte, error) {
	var k K
	if err := json.Unmarshal(text, &k); err != nil {
		return nil, err
	}
	return c.appendKey([]byte{}, k)
}

func (c *codec[K, V]) DecodeKey(key []byte) ([]byte, error) {
	k, err := c.keys.Decode(key)
	if err != nil {
		return nil, err
	}
	return json.Marshal(k)
}

func (c *codec[K, V]) DecodeValue(value []byte) ([]byte, error) {
	v, err := c.values.Decode(value)
	if err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// Readers tell the kinds of stores apart, whatever their types of keys and values.
type (
	// KeyValueReader is a [KeyValue] or a [TimestampedKeyValue].
	KeyValueReader interface {
		Viewable
		JSON() JSON
		readsKeys()
	}

	// VersionedReader is a [Versioned].
	VersionedReader interface {
		Viewable
		JSON() JSON
		readsVersions()
	}

	// WindowReader is a [Window] or a [Session].
	WindowReader interface {
		Viewable
		JSON() JSON
		readsWindows()
	}
)

func (s *KeyValue[K, V]) readsKeys()            {}
func (s *TimestampedKeyValue[K, V]) readsKeys() {}
func (s *Versioned[K, V]) readsVersions()       {}
func (s *Window[K, V]) readsWindows()           {}
func (s *Session[K, V]) readsWindows()          {}

// WindowEnd is the end of the window that starts at start, in milliseconds.
func (s *Window[K, V]) WindowEnd(start int64) int64 {
	if end := start + s.size; end >= start {
		return end
	}
	return forever
}

// JSON converts the store's keys and values.
func (s *KeyValue[K, V]) JSON() JSON { return &s.codec }

// JSON converts the store's keys and values.
func (s *TimestampedKeyValue[K, V]) JSON() JSON { return &s.codec }

// JSON converts the store's keys and values.
func (s *Versioned[K, V]) JSON() JSON { return &s.codec }

// JSON converts the store's keys, without their windows, and values.
func (s *Window[K, V]) JSON() JSON { return &s.codec }

// JSON converts the store's keys, without their sessions, and values.
func (s *Session[K, V]) JSON() JSON { return &s.codec }
