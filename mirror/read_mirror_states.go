package mirror

import (
	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ReadMirrorStatesRequest asks for the states of a mirror's partitions (KIP-1279).
type ReadMirrorStatesRequest struct {
	// APIKey is the request's key, which is not assigned yet.
	APIKey int16
	// Version is the message's version; there is only 0.
	Version int16

	// MirrorName is the mirror.
	MirrorName string
	// Topics are the topics asked for; none are all of the mirror. A topic
	// without partitions is asked for with all of them.
	Topics []Topic[ReadPartition]
	// NeedPartitionStates asks for the partitions' states, not only for the
	// topics. KIP-1279's default is true, which NewReadMirrorStatesRequest sets.
	NeedPartitionStates bool
	// UnknownTags are fields that later versions have added.
	UnknownTags kmsg.Tags
}

// ReadPartition is a partition asked for.
type ReadPartition struct {
	PartitionIndex int32
	UnknownTags    kmsg.Tags
}

// ReadMirrorStatesResponse answers a ReadMirrorStatesRequest.
type ReadMirrorStatesResponse struct {
	// APIKey is the request's key, which is not assigned yet.
	APIKey int16
	// Version is the message's version; there is only 0.
	Version int16

	// ThrottleMillis is for how long the client is to send nothing more to the
	// broker, in milliseconds.
	ThrottleMillis int32
	// ErrorCode is the error of the request as a whole, or 0.
	ErrorCode int16
	// Topics are the topics, without partitions where they weren't asked for.
	Topics []Topic[ReadPartitionResult]
	// UnknownTags are fields that later versions have added.
	UnknownTags kmsg.Tags
}

// ReadPartitionResult is what the broker has of a partition.
type ReadPartitionResult struct {
	PartitionIndex int32
	// LastMirroredOffset is the offset of the last mirrored record, −1 for none.
	LastMirroredOffset int64
	// State is the number of the partition's state; see [StateNumbers].
	State int8
	// ErrorCode is the partition's error, or 0.
	ErrorCode   int16
	UnknownTags kmsg.Tags
}

// NewReadMirrorStatesRequest returns a request for all partitions of a mirror.
func NewReadMirrorStatesRequest(keys Keys, mirror string) *ReadMirrorStatesRequest {
	return &ReadMirrorStatesRequest{APIKey: keys.ReadMirrorStates, MirrorName: mirror, NeedPartitionStates: true}
}

// The methods of [kmsg.Request].

func (m *ReadMirrorStatesRequest) Key() int16         { return m.APIKey }
func (*ReadMirrorStatesRequest) MaxVersion() int16    { return 0 }
func (m *ReadMirrorStatesRequest) SetVersion(v int16) { m.Version = v }
func (m *ReadMirrorStatesRequest) GetVersion() int16  { return m.Version }
func (*ReadMirrorStatesRequest) IsFlexible() bool     { return true }

func (m *ReadMirrorStatesRequest) ResponseKind() kmsg.Response {
	return &ReadMirrorStatesResponse{APIKey: m.APIKey, Version: m.Version}
}

func (m *ReadMirrorStatesRequest) AppendTo(dst []byte) []byte {
	dst = kbin.AppendCompactString(dst, m.MirrorName)
	dst = appendTopics(dst, m.Topics, func(dst []byte, p *ReadPartition) []byte {
		dst = kbin.AppendInt32(dst, p.PartitionIndex)
		return appendTags(dst, &p.UnknownTags)
	})
	dst = kbin.AppendBool(dst, m.NeedPartitionStates)
	return appendTags(dst, &m.UnknownTags)
}

func (m *ReadMirrorStatesRequest) ReadFrom(src []byte) error {
	r := reader{Reader: kbin.Reader{Src: src}}
	m.MirrorName = r.CompactString()
	m.Topics = readTopics(&r, func(r *reader, p *ReadPartition) {
		p.PartitionIndex = r.Int32()
		p.UnknownTags = kmsg.ReadTags(r)
	})
	m.NeedPartitionStates = r.Bool()
	m.UnknownTags = kmsg.ReadTags(&r)
	return r.finish("ReadMirrorStatesRequest")
}

// The methods of [kmsg.Response] and [kmsg.ThrottleResponse].

func (m *ReadMirrorStatesResponse) Key() int16         { return m.APIKey }
func (*ReadMirrorStatesResponse) MaxVersion() int16    { return 0 }
func (m *ReadMirrorStatesResponse) SetVersion(v int16) { m.Version = v }
func (m *ReadMirrorStatesResponse) GetVersion() int16  { return m.Version }
func (*ReadMirrorStatesResponse) IsFlexible() bool     { return true }

func (m *ReadMirrorStatesResponse) Throttle() (int32, bool) { return m.ThrottleMillis, true }
func (m *ReadMirrorStatesResponse) SetThrottle(ms int32)    { m.ThrottleMillis = ms }

func (m *ReadMirrorStatesResponse) RequestKind() kmsg.Request {
	return &ReadMirrorStatesRequest{APIKey: m.APIKey, Version: m.Version, NeedPartitionStates: true}
}

func (m *ReadMirrorStatesResponse) AppendTo(dst []byte) []byte {
	dst = kbin.AppendInt32(dst, m.ThrottleMillis)
	dst = kbin.AppendInt16(dst, m.ErrorCode)
	dst = appendTopics(dst, m.Topics, func(dst []byte, p *ReadPartitionResult) []byte {
		dst = kbin.AppendInt32(dst, p.PartitionIndex)
		dst = kbin.AppendInt64(dst, p.LastMirroredOffset)
		dst = kbin.AppendInt8(dst, p.State)
		dst = kbin.AppendInt16(dst, p.ErrorCode)
		return appendTags(dst, &p.UnknownTags)
	})
	return appendTags(dst, &m.UnknownTags)
}

func (m *ReadMirrorStatesResponse) ReadFrom(src []byte) error {
	r := reader{Reader: kbin.Reader{Src: src}}
	m.ThrottleMillis = r.Int32()
	m.ErrorCode = r.Int16()
	m.Topics = readTopics(&r, func(r *reader, p *ReadPartitionResult) {
		p.PartitionIndex = r.Int32()
		p.LastMirroredOffset = r.Int64()
		p.State = r.Int8()
		p.ErrorCode = r.Int16()
		p.UnknownTags = kmsg.ReadTags(r)
	})
	m.UnknownTags = kmsg.ReadTags(&r)
	return r.finish("ReadMirrorStatesResponse")
}
