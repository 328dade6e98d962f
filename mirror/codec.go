package mirror

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Topic is a topic in one of the messages, with what the message says of its
// partitions.
type Topic[P any] struct {
	// Name is the topic's name.
	Name string
	// Partitions are the partitions; nil and empty are the same.
	Partitions []P
	// UnknownTags are fields that later versions have added.
	UnknownTags kmsg.Tags
}

// reader reads a message. The first thing that is wrong sticks.
type reader struct {
	kbin.Reader
	null string // the array that is null and must not be
}

// finish returns what was wrong with the message.
func (r *reader) finish(message string) error {
	if r.null != "" {
		return fmt.Errorf("mirror: malformed %s: %s is null", message, r.null)
	}
	if err := r.Complete(); err != nil {
		return fmt.Errorf("mirror: malformed %s: %w", message, err)
	}
	return nil
}

// readArray reads an array. Its elements are made one by one, as their bytes come,
// so that a length which the bytes don't keep costs nothing.
func readArray[T any](r *reader, name string, read func(*reader, *T)) []T {
	n := r.CompactArrayLen()
	if n < 0 && r.Ok() && r.null == "" {
		r.null = name
	}
	var all []T
	for ; n > 0 && r.Ok() && r.null == ""; n-- {
		var v T
		read(r, &v)
		all = append(all, v)
	}
	return all
}

func readTopics[P any](r *reader, read func(*reader, *P)) []Topic[P] {
	return readArray(r, "Topics", func(r *reader, t *Topic[P]) {
		t.Name = r.CompactString()
		t.Partitions = readArray(r, "Partitions", read)
		t.UnknownTags = kmsg.ReadTags(r)
	})
}

func appendArray[T any](dst []byte, all []T, add func([]byte, *T) []byte) []byte {
	dst = kbin.AppendCompactArrayLen(dst, len(all))
	for i := range all {
		dst = add(dst, &all[i])
	}
	return dst
}

func appendTopics[P any](dst []byte, topics []Topic[P], add func([]byte, *P) []byte) []byte {
	return appendArray(dst, topics, func(dst []byte, t *Topic[P]) []byte {
		dst = kbin.AppendCompactString(dst, t.Name)
		dst = appendArray(dst, t.Partitions, add)
		return appendTags(dst, &t.UnknownTags)
	})
}

func appendTags(dst []byte, tags *kmsg.Tags) []byte {
	dst = kbin.AppendUvarint(dst, uint32(tags.Len()))
	return tags.AppendEach(dst)
}
