package state

import "encoding/binary"

// The keys of window and session stores in changelogs, as Java writes them:
//
//	window   key, start in 8 bytes, sequence number in 4
//	session  key, end in 8 bytes, start in 8
//
// Numbers are big-endian. In the engine there are eight more bytes before, the
// number of the segment.
const (
	segmentSize       = 8
	windowSuffixSize  = 12
	sessionSuffixSize = 16
)

func appendWindowSuffix(dst []byte, start int64, sequence uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(dst, uint64(start)), sequence)
}

func appendSessionSuffix(dst []byte, start, end int64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, uint64(end)), uint64(start))
}

// splitWindowKey takes a window store's key apart; ok is false for what is none.
func splitWindowKey(b []byte) (key []byte, start int64, sequence uint32, ok bool) {
	n := len(b) - windowSuffixSize
	if n < 0 {
		return nil, 0, 0, false
	}
	start = int64(binary.BigEndian.Uint64(b[n:]))
	return b[:n:n], start, binary.BigEndian.Uint32(b[n+8:]), start >= 0
}

// splitSessionKey takes a session store's key apart; ok is false for what is none.
func splitSessionKey(b []byte) (key []byte, start, end int64, ok bool) {
	n := len(b) - sessionSuffixSize
	if n < 0 {
		return nil, 0, 0, false
	}
	end, start = int64(binary.BigEndian.Uint64(b[n:])), int64(binary.BigEndian.Uint64(b[n+8:]))
	return b[:n:n], start, end, start >= 0 && end >= 0
}
