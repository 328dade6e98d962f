package protoserde

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/odradek-go/odradek/serde"
)

// New returns the serde of a generated message type: New[pb.Order]() is a
// serde.Serde[*pb.Order]. A nil message is null, an empty one is not: it has no
// bytes.
//
// Equal messages get equal bytes in one build of a program, so that a message
// can be a key as long as one program writes it: Protocol Buffers promise
// nothing across versions and languages. Fields that the reader doesn't know are
// kept and written again.
func New[T any, M interface {
	*T
	proto.Message
}]() serde.Serde[M] {
	return messageSerde[T, M]{}
}

type messageSerde[T any, M interface {
	*T
	proto.Message
}] struct{}

func (messageSerde[T, M]) Append(dst []byte, v M) ([]byte, error) {
	if v == nil {
		return nil, nil
	}
	b, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend(dst, v)
	if err != nil {
		return nil, fmt.Errorf("protoserde: marshal %s: %w", v.ProtoReflect().Descriptor().FullName(), err)
	}
	return b, nil
}

func (messageSerde[T, M]) Decode(data []byte) (M, error) {
	v := M(new(T))
	if err := proto.Unmarshal(data, v); err != nil {
		return nil, fmt.Errorf("protoserde: unmarshal %s: %w", v.ProtoReflect().Descriptor().FullName(), err)
	}
	return v, nil
}
