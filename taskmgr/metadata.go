package taskmgr

import (
	"encoding/base64"
	"encoding/binary"
)

// The metadata of a committed offset, as Java's TopicPartitionMetadata has it:
// base64 of a version byte and the partition's time, so that time goes on where
// the last owner left it.
const metadataVersion = 2

// encodeMetadata returns the metadata of a partition whose time is
// partitionTime, in milliseconds.
func encodeMetadata(partitionTime int64) string {
	b := binary.BigEndian.AppendUint64([]byte{metadataVersion}, uint64(partitionTime))
	return base64.StdEncoding.EncodeToString(b)
}

// decodeMetadata returns the partition time in a commit's metadata, and -1 where
// there is none that we understand: as in Java, time then begins anew. Version 1
// has the time alone, version 2 may have processors' metadata behind it.
func decodeMetadata(metadata string) int64 {
	b, err := base64.StdEncoding.DecodeString(metadata)
	if err != nil || len(b) < 9 || b[0] < 1 || b[0] > metadataVersion {
		return -1
	}
	return int64(binary.BigEndian.Uint64(b[1:]))
}
