package serde

// Serde converts between values of type T and their bytes.
//
// Implementations must be safe for use by several goroutines at once: an
// application's stream threads share them.
type Serde[T any] interface {
	// Append appends the encoding of v to dst and returns the extended buffer.
	// It returns nil, whatever dst holds, when v is null: a null key or value
	// (a tombstone in a changelog) is written. dst is never nil, so that an
	// empty encoding can be told from null.
	Append(dst []byte, v T) ([]byte, error)

	// Decode returns the value that data encodes. data is never nil: null is
	// not given to a serde. It may be empty, belongs to the caller, and must
	// not be kept or changed.
	Decode(data []byte) (T, error)
}

// New returns a Serde of two functions, such as a generated type's marshal
// methods. marshal may return nil for a value that is to be written as null.
func New[T any](marshal func(T) ([]byte, error), unmarshal func([]byte) (T, error)) Serde[T] {
	return funcs[T]{marshal, unmarshal}
}

type funcs[T any] struct {
	marshal   func(T) ([]byte, error)
	unmarshal func([]byte) (T, error)
}

func (f funcs[T]) Append(dst []byte, v T) ([]byte, error) {
	b, err := f.marshal(v)
	if err != nil || b == nil {
		return nil, err
	}
	return append(dst, b...), nil
}

func (f funcs[T]) Decode(data []byte) (T, error) { return f.unmarshal(data) }

// Pointer returns a Serde of *T, for which nil is null, from one of T.
func Pointer[T any](s Serde[T]) Serde[*T] { return pointer[T]{s} }

type pointer[T any] struct{ of Serde[T] }

func (p pointer[T]) Append(dst []byte, v *T) ([]byte, error) {
	if v == nil {
		return nil, nil
	}
	return p.of.Append(dst, *v)
}

func (p pointer[T]) Decode(data []byte) (*T, error) {
	v, err := p.of.Decode(data)
	if err != nil {
		return nil, err
	}
	return &v, nil
}

// For returns the standard serde of T and true, where T has one: string
// ([String]), []byte ([Bytes]), int64 ([Int64]), int32 ([Int32]), int16
// ([Int16]), float64 ([Float64]), float32 ([Float32]) and bool ([Bool]). It never
// returns [Void]: as the value of a set, struct{} would be a tombstone.
func For[T any]() (Serde[T], bool) {
	var zero T
	var s any
	switch any(zero).(type) {
	case string:
		s = String
	case []byte:
		s = Bytes
	case int64:
		s = Int64
	case int32:
		s = Int32
	case int16:
		s = Int16
	case float64:
		s = Float64
	case float32:
		s = Float32
	case bool:
		s = Bool
	}
	std, ok := s.(Serde[T])
	return std, ok
}
