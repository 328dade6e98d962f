package serde

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"
)

// Windowed is a key in a window of time: the key of a windowed aggregation's
// results. Times are in milliseconds since the Unix epoch.
type Windowed[K any] struct {
	Key   K
	Start int64 // inclusive, never negative
	End   int64 // exclusive in a time window; the last record's time, inclusive, in a session
}

// String returns the form of Java's Windowed.toString: [key@start/end].
func (w Windowed[K]) String() string { return fmt.Sprintf("[%v@%d/%d]", w.Key, w.Start, w.End) }

// BaseKeyer is implemented by the serdes of windowed keys. BaseKey returns the
// part of an encoded windowed key that encodes the key within. Sinks choose the
// partition by it, as Java's WindowedStreamPartitioner does, so that all windows
// of a key are in one partition.
type BaseKeyer interface {
	BaseKey(encoded []byte) []byte
}

// TimeWindowed returns the serde of keys in time windows, as they stand in
// topics that a program reads from and writes to (not in changelogs):
// WindowedSerdes.TimeWindowedSerde, the key and then the start in 8 bytes.
//
// The end isn't written. It is computed from size, the size of the windows
// (KIP-659), in whole milliseconds and at least one; the largest Duration stands
// for windows that never end. The serde is a [BaseKeyer].
func TimeWindowed[K any](key Serde[K], size time.Duration) Serde[Windowed[K]] {
	ms := size.Milliseconds()
	if size == math.MaxInt64 {
		ms = math.MaxInt64
	}
	return timeWindowed[K]{key, ms}
}

// SessionWindowed returns the serde of keys in session windows (KIP-94), as they
// stand in topics that a program reads from and writes to:
// WindowedSerdes.SessionWindowedSerde, the key, then the end and the start in 8
// bytes each. The serde is a [BaseKeyer].
func SessionWindowed[K any](key Serde[K]) Serde[Windowed[K]] { return sessionWindowed[K]{key} }

const (
	timeTrailer    = 8  // start
	sessionTrailer = 16 // end, start
)

type timeWindowed[K any] struct {
	key  Serde[K]
	size int64 // ms
}

func (s timeWindowed[K]) Append(dst []byte, v Windowed[K]) ([]byte, error) {
	if err := checkTimeWindow(v.Start, v.End); err != nil {
		return nil, err
	}
	dst, err := appendBaseKey(dst, s.key, v.Key)
	if err != nil {
		return nil, err
	}
	return binary.BigEndian.AppendUint64(dst, uint64(v.Start)), nil
}

func (s timeWindowed[K]) Decode(data []byte) (w Windowed[K], err error) {
	base, trailer, err := cutTrailer(data, timeTrailer)
	if err != nil {
		return w, err
	}
	start := int64(binary.BigEndian.Uint64(trailer))
	end := int64(math.MaxInt64) // where Java stops, too
	if s.size < end-start {
		end = start + s.size
	}
	if err := checkTimeWindow(start, end); err != nil {
		return w, err
	}
	key, err := s.key.Decode(base)
	if err != nil {
		return w, err
	}
	return Windowed[K]{key, start, end}, nil
}

func (timeWindowed[K]) BaseKey(encoded []byte) []byte { return baseKey(encoded, timeTrailer) }

type sessionWindowed[K any] struct{ key Serde[K] }

func (s sessionWindowed[K]) Append(dst []byte, v Windowed[K]) ([]byte, error) {
	if err := checkSession(v.Start, v.End); err != nil {
		return nil, err
	}
	dst, err := appendBaseKey(dst, s.key, v.Key)
	if err != nil {
		return nil, err
	}
	dst = binary.BigEndian.AppendUint64(dst, uint64(v.End))
	return binary.BigEndian.AppendUint64(dst, uint64(v.Start)), nil
}

func (s sessionWindowed[K]) Decode(data []byte) (w Windowed[K], err error) {
	base, trailer, err := cutTrailer(data, sessionTrailer)
	if err != nil {
		return w, err
	}
	end := int64(binary.BigEndian.Uint64(trailer))
	start := int64(binary.BigEndian.Uint64(trailer[8:]))
	if err := checkSession(start, end); err != nil {
		return w, err
	}
	key, err := s.key.Decode(base)
	if err != nil {
		return w, err
	}
	return Windowed[K]{key, start, end}, nil
}

func (sessionWindowed[K]) BaseKey(encoded []byte) []byte { return baseKey(encoded, sessionTrailer) }

func appendBaseKey[K any](dst []byte, s Serde[K], key K) ([]byte, error) {
	dst, err := s.Append(dst, key)
	if err == nil && dst == nil {
		err = errors.New("serde: the key in a windowed key is null, which it can't be")
	}
	return dst, err
}

// cutTrailer parts data into the base key and the n bytes of times after it.
func cutTrailer(data []byte, n int) (base, trailer []byte, err error) {
	at := len(data) - n
	if at < 0 {
		return nil, nil, fmt.Errorf("serde: %d bytes are not a windowed key, whose times alone have %d: does the topic hold another type?", len(data), n)
	}
	return data[:at:at], data[at:], nil
}

func baseKey(encoded []byte, trailer int) []byte {
	return encoded[:max(0, len(encoded)-trailer)]
}

func checkTimeWindow(start, end int64) error {
	if start < 0 || end <= start {
		return fmt.Errorf("serde: a time window can't be from %d to %d: its start must not be negative, its end must be later", start, end)
	}
	return nil
}

func checkSession(start, end int64) error {
	if start < 0 || end < start {
		return fmt.Errorf("serde: a session can't be from %d to %d: its start must not be negative, its end not earlier", start, end)
	}
	return nil
}
