package state

import (
	"encoding/binary"
	"io"
	"math"
)

// history is the layout of a [Versioned] store in its engine. There are three
// kinds of entries, told apart by their first byte:
//
//	latestVersion  key                      the latest version of a key
//	olderVersion   key length, key, time    the version from that time on
//	replacedAt     time, key length, key    one began then; what was before it
//	                                        is of no use once that has expired
//
// A version's value is one byte, 1, and the encoding, or for a tombstone the byte
// 0; the latest has its time before that. Times are 8 bytes, their order kept,
// and lengths 4.
type history struct {
	engine Engine
	key    []byte // reused
	mark   []byte
	value  []byte
	copied []byte
}

const (
	latestVersion = 1 + iota
	olderVersion
	replacedAt
)

// version is a version as stored. Its value, nil for a tombstone, is valid until
// the next call of the engine.
type version struct {
	exists    bool
	timestamp int64
	value     []byte
}

// Bytes of times in an order that has the negative ones first.
func appendTime(dst []byte, t int64) []byte {
	return binary.BigEndian.AppendUint64(dst, uint64(t)^1<<63)
}
func parseTime(b []byte) int64 { return int64(binary.BigEndian.Uint64(b) ^ 1<<63) }

func (h *history) latestKey(key []byte) []byte {
	h.key = append(append(h.key[:0], latestVersion), key...)
	return h.key
}

func (h *history) olderKey(key []byte, timestamp int64) []byte {
	h.key = binary.BigEndian.AppendUint32(append(h.key[:0], olderVersion), uint32(len(key)))
	h.key = appendTime(append(h.key, key...), timestamp)
	return h.key
}

func (h *history) markKey(timestamp int64, key []byte) []byte {
	h.mark = appendTime(append(h.mark[:0], replacedAt), timestamp)
	h.mark = append(binary.BigEndian.AppendUint32(h.mark, uint32(len(key))), key...)
	return h.mark
}

func appendVersion(dst, value []byte) []byte {
	if value == nil {
		return append(dst, 0)
	}
	return append(append(dst, 1), value...)
}

func parseVersion(raw []byte) ([]byte, error) {
	switch {
	case len(raw) == 0:
		return nil, io.ErrUnexpectedEOF
	case raw[0] == 0:
		return nil, nil
	}
	return raw[1:], nil
}

// latest returns the latest version of a key, a tombstone included.
func (h *history) latest(key []byte) (v version, err error) {
	raw, err := h.engine.Get(h.latestKey(key))
	if err != nil || raw == nil {
		return v, err
	}
	if len(raw) < 8 {
		return v, io.ErrUnexpectedEOF
	}
	v.value, err = parseVersion(raw[8:])
	v.exists, v.timestamp = true, parseTime(raw)
	return v, err
}

// before returns the newest of the older versions that began at asOf or earlier.
func (h *history) before(key []byte, asOf int64) (version, error) {
	to := append([]byte{}, h.olderKey(key, asOf)...)
	return h.first(h.olderKey(key, math.MinInt64), append(to, 0), Backward)
}

// after returns the oldest of the older versions that began later than time.
func (h *history) after(key []byte, time int64) (version, error) {
	from := append([]byte{}, h.olderKey(key, time)...)
	to := append([]byte{}, h.olderKey(key, math.MaxInt64)...)
	return h.first(append(from, 0), append(to, 0), Forward)
}

func (h *history) first(from, to []byte, order Order) (v version, err error) {
	it := h.engine.Scan(from, to, order)
	defer it.Close()
	if !it.Next() {
		return v, it.Err()
	}
	value, err := parseVersion(it.Value())
	if value != nil { // the iterator's, which ends here
		h.copied = append(h.copied[:0], value...)
		value = h.copied[:len(value):len(value)]
		if value == nil {
			value = []byte{}
		}
	}
	return version{true, parseTime(it.Key()[len(it.Key())-8:]), value}, err
}

// add puts a version. It returns the time until which it is valid, and the one
// from which on something of the key may have expired.
func (h *history) add(key, value []byte, timestamp int64) (validTo, due int64, err error) {
	latest, err := h.latest(key)
	if err != nil {
		return 0, 0, err
	}
	due = math.MaxInt64
	if latest.exists && timestamp < latest.timestamp {
		return h.insert(key, value, timestamp, latest.timestamp)
	}
	if latest.exists && timestamp > latest.timestamp {
		h.value = appendVersion(h.value[:0], latest.value)
		if err := h.engine.Put(h.olderKey(key, latest.timestamp), h.value); err != nil {
			return 0, 0, err
		}
	}
	h.value = appendVersion(appendTime(h.value[:0], timestamp), value)
	if err := h.engine.Put(h.latestKey(key), h.value); err != nil {
		return 0, 0, err
	}
	if latest.exists || value == nil {
		due, err = timestamp, h.engine.Put(h.markKey(timestamp, key), []byte{})
	}
	return ValidToUndefined, due, err
}

// insert puts a version that isn't the latest.
func (h *history) insert(key, value []byte, timestamp, latest int64) (validTo, due int64, err error) {
	next, err := h.after(key, timestamp)
	if err != nil {
		return 0, 0, err
	}
	if validTo = latest; next.exists {
		validTo = next.timestamp
	}
	h.value = appendVersion(h.value[:0], value)
	if err := h.engine.Put(h.olderKey(key, timestamp), h.value); err != nil {
		return 0, 0, err
	}
	for _, at := range [...]int64{timestamp, validTo} {
		if err := h.engine.Put(h.markKey(at, key), []byte{}); err != nil {
			return 0, 0, err
		}
	}
	return validTo, timestamp, nil
}

// expire deletes what isn't valid any more at cutoff or later, and returns the
// time from which on there is more.
func (h *history) expire(cutoff int64) (due int64, err error) {
	marks, due, err := h.marks(cutoff)
	if err != nil {
		return 0, err
	}
	for _, mark := range marks {
		at, key := parseTime(mark[1:]), mark[1+8+4:]
		if err := h.drop(key, at); err != nil {
			return 0, err
		}
		if err := h.engine.Put(mark, nil); err != nil {
			return 0, err
		}
	}
	return due, nil
}

// marks returns the marks up to cutoff, and the time of the one after.
func (h *history) marks(cutoff int64) (marks [][]byte, due int64, err error) {
	it := h.engine.Scan([]byte{replacedAt}, nil, Forward)
	defer it.Close()
	for it.Next() {
		if len(it.Key()) < 1+8+4 {
			return nil, 0, io.ErrUnexpectedEOF
		}
		if at := parseTime(it.Key()[1:]); at > cutoff {
			return marks, at, nil
		}
		marks = append(marks, append([]byte{}, it.Key()...))
	}
	return marks, math.MaxInt64, it.Err()
}

// drop deletes the versions of a key that began before a time, and one that began
// then if it is a tombstone: with nothing before it, it says nothing.
func (h *history) drop(key []byte, at int64) error {
	latest, err := h.latest(key)
	if err != nil {
		return err
	}
	if latest.exists && latest.timestamp == at && latest.value == nil {
		if err := h.engine.Put(h.latestKey(key), nil); err != nil {
			return err
		}
	}
	var gone [][]byte
	to := append(append([]byte{}, h.olderKey(key, at)...), 0)
	it := h.engine.Scan(h.olderKey(key, math.MinInt64), to, Forward)
	for it.Next() {
		if value, err := parseVersion(it.Value()); err != nil {
			it.Close()
			return err
		} else if parseTime(it.Key()[len(it.Key())-8:]) < at || value == nil {
			gone = append(gone, append([]byte{}, it.Key()...))
		}
	}
	if err := it.Err(); err != nil {
		it.Close()
		return err
	}
	if err := it.Close(); err != nil {
		return err
	}
	for _, key := range gone {
		if err := h.engine.Put(key, nil); err != nil {
			return err
		}
	}
	return nil
}

func (h *history) len() (n int, err error) {
	it := h.engine.Scan([]byte{latestVersion}, []byte{latestVersion + 1}, Forward)
	defer it.Close()
	for it.Next() {
		n++
	}
	return n, it.Err()
}
