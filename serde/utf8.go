package serde

import "unicode/utf8"

// stringSerde is UTF-8 as in Java, whose strings hold no malformed bytes: what
// is malformed becomes U+FFFD when it is read. A Go string may be malformed;
// it is written as it is, so that no data is lost on its way out.
type stringSerde struct{}

func (stringSerde) Append(dst []byte, v string) ([]byte, error) { return append(dst, v...), nil }

func (stringSerde) Decode(data []byte) (string, error) {
	if utf8.Valid(data) {
		return string(data), nil
	}
	return string(replaceMalformed(data)), nil
}

// replaceMalformed returns data with a U+FFFD in place of each malformed part,
// cut as Java's new String(bytes, UTF_8) cuts them. Go's own conversions differ:
// they replace byte by byte.
func replaceMalformed(data []byte) []byte {
	valid := make([]byte, 0, len(data)+utf8.UTFMax)
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		if r == utf8.RuneError && size == 1 {
			size = malformedLen(data)
		}
		valid = utf8.AppendRune(valid, r)
		data = data[size:]
	}
	return valid
}

// malformedLen returns the length in bytes of the malformed part that data
// begins with: a lead byte with the bytes that continue it as far as they are
// in range, or else one byte. Unlike in the Unicode standard's table of
// well-formed sequences, a surrogate (ED A0..BF xx) is one part, not three.
func malformedLen(data []byte) int {
	lead := data[0]
	full, low, high := 1, byte(0x80), byte(0xbf) // of the sequence, of its second byte
	switch {
	case lead == 0xe0:
		full, low = 3, 0xa0
	case lead > 0xe0 && lead <= 0xef:
		full = 3
	case lead == 0xf0:
		full, low = 4, 0x90
	case lead > 0xf0 && lead < 0xf4:
		full = 4
	case lead == 0xf4:
		full, high = 4, 0x8f
	}
	n := 1
	for n < full && n < len(data) && low <= data[n] && data[n] <= high {
		n, low, high = n+1, 0x80, 0xbf
	}
	return n
}
