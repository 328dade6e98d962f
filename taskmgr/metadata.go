package taskmgr

import (
	"encoding/base64"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/odradek-go/odradek/internal/javahash"
)

// offsetMetadata is the metadata of a committed offset, Java's
// TopicPartitionMetadata: what goes on where the last owner left it. It is base64
// of a version byte, the time in 8 bytes and, if there is one, the processor
// metadata: the number of entries in 4 bytes, and for each the key's length in 4
// bytes, the key and the value in 8.
type offsetMetadata struct {
	// time is the partition's, in milliseconds, −1 where there is none.
	time int64

	// processors is what processors want to know again (KIP-825), by keys of
	// their own. It is the task's, and stands in each of its partitions.
	processors map[string]int64
}

const metadataVersion = 2

func (m offsetMetadata) encode() string {
	b := binary.BigEndian.AppendUint64([]byte{metadataVersion}, uint64(m.time))
	if len(m.processors) > 0 {
		b = binary.BigEndian.AppendUint32(b, uint32(len(m.processors)))
		for _, key := range javahash.Strings(slices.Sorted(maps.Keys(m.processors))) {
			b = binary.BigEndian.AppendUint32(b, uint32(len(key)))
			b = append(b, key...)
			b = binary.BigEndian.AppendUint64(b, uint64(m.processors[key]))
		}
	}
	return base64.StdEncoding.EncodeToString(b)
}

// decodeMetadata understands versions 1, which has the time alone, and 2. As in
// Java, what it doesn't understand counts as not there, and begins anew.
func decodeMetadata(metadata string) offsetMetadata {
	none := offsetMetadata{time: -1}
	b, err := base64.StdEncoding.DecodeString(metadata)
	if err != nil || len(b) < 9 || b[0] < 1 || b[0] > metadataVersion {
		return none
	}
	m := offsetMetadata{time: int64(binary.BigEndian.Uint64(b[1:]))}
	if b[0] == metadataVersion {
		m.processors = decodeProcessors(b[9:])
	}
	return m
}

func decodeProcessors(b []byte) map[string]int64 {
	if len(b) < 4 {
		return nil
	}
	n, b := int64(binary.BigEndian.Uint32(b)), b[4:]
	if n > int64(len(b)/12) {
		return nil
	}
	processors := make(map[string]int64, n)
	for range n {
		if len(b) < 4 {
			return nil
		}
		size := int64(binary.BigEndian.Uint32(b))
		if b = b[4:]; size > int64(len(b))-8 {
			return nil
		}
		processors[string(b[:size])] = int64(binary.BigEndian.Uint64(b[size:]))
		b = b[size+8:]
	}
	return processors
}
