package streams

import (
	"fmt"
	"time"
)

// TimestampExtractor tells the event time of a record of a source topic, in
// milliseconds since the Unix epoch. The record's own timestamp is the one it has
// in the topic; partitionTime is the highest event time yet in its partition, or
// -1. A record with a negative event time is skipped; an error stops the stream
// thread.
type TimestampExtractor[K, V any] func(r Record[K, V], partitionTime int64) (int64, error)

// FailOnInvalidTimestamp takes the record's timestamp, and is an error where that
// is negative.
func FailOnInvalidTimestamp[K, V any](r Record[K, V], _ int64) (int64, error) {
	if r.Timestamp < 0 {
		return 0, fmt.Errorf("the record has the invalid timestamp %d: was it produced by a client older than Kafka 0.10?", r.Timestamp)
	}
	return r.Timestamp, nil
}

// SkipOnInvalidTimestamp takes the record's timestamp, and skips the record where
// that is negative.
func SkipOnInvalidTimestamp[K, V any](r Record[K, V], _ int64) (int64, error) {
	return r.Timestamp, nil
}

// UsePartitionTimeOnInvalidTimestamp takes the record's timestamp, or the
// partition's time where that is negative.
func UsePartitionTimeOnInvalidTimestamp[K, V any](r Record[K, V], partitionTime int64) (int64, error) {
	if r.Timestamp < 0 {
		if partitionTime < 0 {
			return 0, fmt.Errorf("the record has the invalid timestamp %d, and the partition no time yet", r.Timestamp)
		}
		return partitionTime, nil
	}
	return r.Timestamp, nil
}

// WallclockTimestampExtractor takes the time at which the record is processed.
func WallclockTimestampExtractor[K, V any](Record[K, V], int64) (int64, error) {
	return time.Now().UnixMilli(), nil
}
