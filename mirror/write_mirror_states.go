package mirror

import (
	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// WriteMirrorStatesRequest sets the states of a mirror's partitions, and removes
// topics from it (KIP-1279).
type WriteMirrorStatesRequest struct {
	// APIKey is the request's key, which is not assigned yet.
	APIKey int16
	// Version is the message's version; there is only 0.
	Version int16

	// MirrorName is the mirror.
	MirrorName string
	// Topics are the partitions with their states, to be set.
	Topics []Topic[WritePartition]
	// RemovedTopics are topics that the mirror is to have no more.
	RemovedTopics []string
	// UnknownTags are fields that later versions have added.
	UnknownTags kmsg.Tags
}

// WritePartition is a partition's new state.
type WritePartition struct {
	PartitionIndex int32
	// LastMirroredOffset is the offset of the last mirrored record, −1 for none.
	LastMirroredOffset int64
	// State is the number of the partition's state; see [StateNumbers].
	State       int8
	UnknownTags kmsg.Tags
}

// WriteMirrorStatesResponse answers a WriteMirrorStatesRequest.
type WriteMirrorStatesResponse struct {
	// APIKey is the request's key, which is not assigned yet.
	APIKey int16
	// Version is the message's version; there is only 0.
	Version int16

	// ThrottleMillis is for how long the client is to send nothing more to the
	// broker, in milliseconds.
	ThrottleMillis int32
	// ErrorCode is the error of the request as a whole, or 0.
	ErrorCode int16
	// Topics are the results of the partitions that were to be set.
	Topics []Topic[WritePartitionResult]
	// UnknownTags are fields that later versions have added.
	UnknownTags kmsg.Tags
}

// WritePartitionResult says whether a partition's state was set.
type WritePartitionResult struct {
	PartitionIndex int32
	// ErrorCode is the partition's error, or 0.
	ErrorCode   int16
	UnknownTags kmsg.Tags
}

// NewWriteMirrorStatesRequest returns a request that changes nothing yet.
func NewWriteMirrorStatesRequest(keys Keys, mirror string) *WriteMirrorStatesRequest {
	return &WriteMirrorStatesRequest{APIKey: keys.WriteMirrorStates, MirrorName: mirror}
}

// The methods of [kmsg.Request].

func (m *WriteMirrorStatesRequest) Key() int16         { return m.APIKey }
func (*WriteMirrorStatesRequest) MaxVersion() int16    { return 0 }
func (m *WriteMirrorStatesRequest) SetVersion(v int16) { m.Version = v }
func (m *WriteMirrorStatesRequest) GetVersion() int16  { return m.Version }
func (*WriteMirrorStatesRequest) IsFlexible() bool     { return true }

func (m *WriteMirrorStatesRequest) ResponseKind() kmsg.Response {
	return &WriteMirrorStatesResponse{APIKey: m.APIKey, Version: m.Version}
}

func (m *WriteMirrorStatesRequest) AppendTo(dst []byte) []byte {
	dst = kbin.AppendCompactString(dst, m.MirrorName)
	dst = appendTopics(dst, m.Topics, func(dst []byte, p *WritePartition) []byte {
		dst = kbin.AppendInt32(dst, p.PartitionIndex)
		dst = kbin.AppendInt64(dst, p.LastMirroredOffset)
		dst = kbin.AppendInt8(dst, p.State)
		return appendTags(dst, &p.UnknownTags)
	})
	dst = appendArray(dst, m.RemovedTopics, func(dst []byte, t *string) []byte {
		return kbin.AppendCompactString(dst, *t)
	})
	return appendTags(dst, &m.UnknownTags)
}

func (m *WriteMirrorStatesRequest) ReadFrom(src []byte) error {
	r := reader{Reader: kbin.Reader{Src: src}}
	m.MirrorName = r.CompactString()
	m.Topics = readTopics(&r, func(r *reader, p *WritePartition) {
		p.PartitionIndex = r.Int32()
		p.LastMirroredOffset = r.Int64()
		p.State = r.Int8()
		p.UnknownTags = kmsg.ReadTags(r)
	})
	m.RemovedTopics = readArray(&r, "RemovedTopics", func(r *reader, t *string) { *t = r.CompactString() })
	m.UnknownTags = kmsg.ReadTags(&r)
	return r.finish("WriteMirrorStatesRequest")
}

// The methods of [kmsg.Response] and [kmsg.ThrottleResponse].

func (m *WriteMirrorStatesResponse) Key() int16         { return m.APIKey }
func (*WriteMirrorStatesResponse) MaxVersion() int16    { return 0 }
func (m *WriteMirrorStatesResponse) SetVersion(v int16) { m.Version = v }
func (m *WriteMirrorStatesResponse) GetVersion() int16  { return m.Version }
func (*WriteMirrorStatesResponse) IsFlexible() bool     { return true }

func (m *WriteMirrorStatesResponse) Throttle() (int32, bool) { return m.ThrottleMillis, true }
func (m *WriteMirrorStatesResponse) SetThrottle(ms int32)    { m.ThrottleMillis = ms }

func (m *WriteMirrorStatesResponse) RequestKind() kmsg.Request {
	return &WriteMirrorStatesRequest{APIKey: m.APIKey, Version: m.Version}
}

func (m *WriteMirrorStatesResponse) AppendTo(dst []byte) []byte {
	dst = kbin.AppendInt32(dst, m.ThrottleMillis)
	dst = kbin.AppendInt16(dst, m.ErrorCode)
	dst = appendTopics(dst, m.Topics, func(dst []byte, p *WritePartitionResult) []byte {
		dst = kbin.AppendInt32(dst, p.PartitionIndex)
		dst = kbin.AppendInt16(dst, p.ErrorCode)
		return appendTags(dst, &p.UnknownTags)
	})
	return appendTags(dst, &m.UnknownTags)
}

func (m *WriteMirrorStatesResponse) ReadFrom(src []byte) error {
	r := reader{Reader: kbin.Reader{Src: src}}
	m.ThrottleMillis = r.Int32()
	m.ErrorCode = r.Int16()
	m.Topics = readTopics(&r, func(r *reader, p *WritePartitionResult) {
		p.PartitionIndex = r.Int32()
		p.ErrorCode = r.Int16()
		p.UnknownTags = kmsg.ReadTags(r)
	})
	m.UnknownTags = kmsg.ReadTags(&r)
	return r.finish("WriteMirrorStatesResponse")
}
