package avroserde

import (
	"errors"
	"fmt"
	"io"
	"math/bits"
	"sync"

	"github.com/hamba/avro/v2"
)

// codecs are hamba/avro under limits that go by the size of the data: what is malformed
// must not have it allocate more than the data could be worth.
type codecs struct {
	config Config
	apis   [64 - minBits]lazyAPI
}

// lazyAPI is the library under the limit for data of a size.
type lazyAPI struct {
	once    sync.Once
	api     avro.API
	readers sync.Pool
	writers sync.Pool
}

// minBits is the size of the smallest limit as a power of two: 64 KiB.
const minBits = 16

// oneBlock is more elements than arrays and maps have. Java writes all of them as one
// block, whose size it does not tell.
const oneBlock = 1 << 30

func newCodecs(c Config) *codecs { return &codecs{config: c} }

// of returns the library for data of that many bytes. No string in it, and no array of
// what takes at least a byte, can be longer than that.
func (c *codecs) of(size int) *lazyAPI {
	class := max(0, bits.Len(uint(max(size, 1)-1))-minBits)
	l := &c.apis[class]
	l.once.Do(func() {
		limit := 1 << (class + minBits)
		l.api = avro.Config{
			MaxByteSliceSize: limit, MaxSliceAllocSize: limit,
			DisableBlockSizeHeader: true, BlockLength: oneBlock,
		}.Freeze()
		for name, value := range c.config.Types {
			l.api.Register(name, value)
		}
		l.api.RegisterTypeConverters(c.config.Converters...)
		l.readers.New = func() any { return avro.NewReader(nil, 0, avro.WithReaderConfig(l.api)) }
		l.writers.New = func() any { return avro.NewWriter(nil, 512, avro.WithWriterConfig(l.api)) }
	})
	return l
}

func (c *codecs) append(dst []byte, schema avro.Schema, v any) (_ []byte, err error) {
	l := c.of(0)
	w := l.writers.Get().(*avro.Writer)
	defer func() {
		if p := recover(); p != nil { // w is not to be used again
			err = fmt.Errorf("the Avro library panicked: %v", p)
			return
		}
		l.writers.Put(w)
	}()
	w.Reset(nil)
	w.Error = nil
	w.WriteVal(schema, v)
	if w.Error != nil {
		return nil, w.Error
	}
	return append(dst, w.Buffer()...), nil
}

func (c *codecs) decode(schema avro.Schema, data []byte, v any) (err error) {
	l := c.of(len(data))
	r := l.readers.Get().(*avro.Reader)
	defer func() {
		if p := recover(); p != nil { // r is not to be used again
			err = fmt.Errorf("malformed, the Avro library panicked: %v", p)
			return
		}
		r.Reset(nil) // keeps no data
		l.readers.Put(r)
	}()
	r.Reset(data)
	r.Error = nil
	r.ReadVal(schema, v)
	if errors.Is(r.Error, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	if r.Error != nil {
		return r.Error
	}
	if r.Peek(); r.Error == nil {
		return errors.New("there is more after the value: was it written with another schema?")
	}
	return nil
}
